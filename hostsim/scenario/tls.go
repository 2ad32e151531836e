package scenario

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
)

// identity is what gateways with `tls: true` show, and what clients trust.
type identity struct {
	certificate tls.Certificate
	pem         envoy.TLS
	trusted     *x509.CertPool
}

// ownIdentity makes the certificate of this process.
var ownIdentity = sync.OnceValues(func() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	id := &identity{
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem: envoy.TLS{
			Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
			Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		},
		trusted: x509.NewCertPool(),
	}
	id.trusted.AddCert(parsed)
	return id, nil
})

// clientTLS is how a client speaks to a gateway with TLS, for one protocol; nil without.
func (w *world) clientTLS(protocol string) *tls.Config {
	if w.identity == nil {
		return nil
	}
	return &tls.Config{RootCAs: w.identity.trusted, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12}
}
