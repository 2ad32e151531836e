package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// tlsFiles are the files of one side of TLS.
type tlsFiles struct {
	ca, cert, key, name string
}

// toRedis is the client's side. The client certificate (nil: none) is read anew when its files change,
// Redis' authorities are not.
func (t tlsFiles) toRedis() (*tls.Config, *watched[*tls.Certificate], error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.name}
	var err error
	if t.ca != "" {
		if c.RootCAs, err = authorities(t.ca); err != nil {
			return nil, nil, fmt.Errorf("tls-ca: %w", err)
		}
	}
	if t.cert == "" && t.key == "" {
		return c, nil, nil
	}
	own, err := watch([]string{t.cert, t.key}, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		return &pair, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("tls-cert, tls-key: %w", err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.get(), nil }
	return c, own, nil
}

// toClients is the server's side: all of it is read anew when a file changes.
func (t tlsFiles) toClients() (*watchedTLS, error) {
	files := []string{t.cert, t.key}
	if t.ca != "" {
		files = append(files, t.ca)
	}
	w, err := watch(files, func() (*tls.Config, error) {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, err
		}
		c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
		if t.ca != "" {
			if c.ClientCAs, err = authorities(t.ca); err != nil {
				return nil, err
			}
			c.ClientAuth = tls.RequireAndVerifyClientCert
			// A resumed session would bring a client past authorities that have been taken away since.
			c.SessionTicketsDisabled = true
		}
		return c, nil
	})
	if err != nil {
		return nil, fmt.Errorf("listen-cert, listen-key, listen-client-ca: %w", err)
	}
	return &watchedTLS{w}, nil
}

type watchedTLS struct{ *watched[*tls.Config] }

// config takes each handshake's settings from the files.
func (w *watchedTLS) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return w.get(), nil },
	}
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

// watchEvery is how often files are looked at, by the handshakes that need them.
const watchEvery = 10 * time.Second

// watched is what files say, read anew once they have changed. A change that can't be read (a
// certificate whose key is yet to be written) leaves the last good one in use and is looked at again.
type watched[T any] struct {
	files []string
	load  func() (T, error)
	log   *slog.Logger

	mu     sync.Mutex
	value  T
	stamps []stamp
	looked time.Time
	failed string // the last failure that was logged
}

type stamp struct {
	changed time.Time
	size    int64
}

func watch[T any](files []string, load func() (T, error)) (*watched[T], error) {
	w := &watched[T]{files: files, load: load, log: slog.New(slog.DiscardHandler), looked: time.Now()}
	var err error
	if w.stamps, err = stampsOf(files); err != nil {
		return nil, err
	}
	w.value, err = load()
	return w, err
}

func stampsOf(files []string) ([]stamp, error) {
	var all []stamp
	for _, f := range files {
		i, err := os.Stat(f)
		if err != nil {
			return nil, err
		}
		all = append(all, stamp{i.ModTime(), i.Size()})
	}
	return all, nil
}

func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) >= watchEvery {
		w.look()
	}
	return w.value
}

// reload looks at the files now.
func (w *watched[T]) reload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
}

func (w *watched[T]) look() {
	w.looked = time.Now()
	now, err := stampsOf(w.files)
	if err == nil && equal(now, w.stamps) {
		return
	}
	var fresh T
	if err == nil {
		fresh, err = w.load()
	}
	if err != nil {
		if text := err.Error(); text != w.failed {
			w.failed = text
			w.log.Error("changed files cannot be used, the last good ones stay in use", "files", w.files, "error", withoutPath(err))
		}
		return
	}
	w.value, w.stamps, w.failed = fresh, now, ""
	w.log.Info("files were read anew", "files", w.files)
}

func equal(a, b []stamp) bool {
	for i := range a {
		if !a[i].changed.Equal(b[i].changed) || a[i].size != b[i].size {
			return false
		}
	}
	return true
}

// withoutPath is an error's text; the paths are in the line already.
func withoutPath(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
