package hostsim

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// jwtCheck verifies bearer tokens as envoy.filters.http.jwt_authn with allow_missing and forward set.
type jwtCheck struct {
	secret   []byte
	metadata string
}

// check returns the payload of a good token, nothing for no token, or the refusal of a bad one.
func (j *jwtCheck) check(head *fields, now time.Time) (map[string]any, *reply) {
	value, ok := head.get("authorization")
	const scheme = "Bearer "
	if !ok || !strings.HasPrefix(value, scheme) {
		return nil, nil
	}
	claims, fault := j.verify(strings.TrimSpace(value[len(scheme):]), now)
	if fault == "" {
		return claims, nil
	}
	return nil, &reply{code: 401, body: []byte(fault), details: "jwt_authn_access_denied{" + strings.ReplaceAll(fault, " ", "_") + "}",
		headers: [][2]string{{"www-authenticate", `Bearer realm="http://` + head.value(":authority") + head.value(":path") + `", error="invalid_token"`}}}
}

func (j *jwtCheck) verify(token string, now time.Time) (map[string]any, string) {
	const notJWT = "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections"
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, notJWT
	}
	var header struct {
		Alg string `json:"alg"`
	}
	rawHeader, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || json.Unmarshal(rawHeader, &header) != nil {
		return nil, "Jwt header is an invalid JSON"
	}
	if header.Alg != "HS256" {
		return nil, "Jwt header [alg] is not supported"
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, "Jwt payload is an invalid Base64Url"
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	claims := map[string]any{}
	if d.Decode(&claims) != nil {
		return nil, "Jwt payload is an invalid JSON"
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, "Jwt signature is an invalid Base64Url"
	}
	if after(claims["nbf"], now) {
		return nil, "Jwt not yet valid"
	}
	if exp, ok := claims["exp"]; ok && !after(exp, now) {
		return nil, "Jwt is expired"
	}
	mac := hmac.New(sha256.New, j.secret)
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if !hmac.Equal(mac.Sum(nil), signature) {
		return nil, "Jwt verification fails"
	}
	return claims, ""
}

// after says whether a NumericDate lies in the future.
func after(v any, now time.Time) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	f, err := n.Float64()
	return err == nil && f > float64(now.UnixNano())/1e9
}
