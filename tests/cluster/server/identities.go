package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files in the folder of the cluster.
const (
	authorityCertificate = "ca.crt"
	servingCertificate   = "server.crt"
	servingKey           = "server.key"
	accountKey           = "account.key"
	tokens               = "tokens.csv"
)

// Users with a token. `reader` and `stranger` have the rights that a test gives them, none at first.
// The server does not know the token of `unknown`.
var tokenUsers = map[string]string{
	"reader":   "reader-token",
	"stranger": "stranger-token",
	"unknown":  "unknown-token",
}

// writeIdentities creates every key and certificate and writes the kubeconfig. Its contexts are the
// users above and
//
//	admin      may do everything
//	expired    an admin whose certificate has expired
//	foreign    an admin whose certificate another authority has signed
//	anonymous  sends no credential
//	impostor   an admin who trusts another authority than the server's
//
// The result is the authority of the server.
func writeIdentities(dir, address string) (*x509.CertPool, error) {
	ours, err := newAuthority("cluster")
	if err != nil {
		return nil, err
	}
	other, err := newAuthority("other")
	if err != nil {
		return nil, err
	}
	account, err := newAuthority("accounts")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	before, after := now.Add(-time.Hour), now.Add(24*time.Hour)
	serving, err := ours.sign(pkix.Name{CommonName: "kube-apiserver"}, after, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}

	type object = map[string]any
	users := map[string]object{"anonymous": {}}
	list := ""
	for name, token := range tokenUsers {
		users[name] = object{"token": token}
		if name != "unknown" {
			list += fmt.Sprintf("%s,%s,%s\n", token, name, name)
		}
	}
	subject := pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}
	for _, user := range []struct {
		name   string
		signer *authority
		until  time.Time
	}{{"admin", ours, after}, {"expired", ours, before}, {"foreign", other, after}} {
		pair, err := user.signer.sign(subject, user.until, x509.ExtKeyUsageClientAuth)
		if err != nil {
			return nil, err
		}
		users[user.name] = object{"client-certificate-data": pair.certificate, "client-key-data": pair.key}
	}

	clusters := []object{
		{"name": "server", "cluster": object{"server": address, "certificate-authority-data": ours.certificate}},
		{"name": "impostor", "cluster": object{"server": address, "certificate-authority-data": other.certificate}},
	}
	contexts := []object{{"name": "impostor", "context": object{"cluster": "impostor", "user": "admin"}}}
	var credentials []object
	for name, user := range users {
		credentials = append(credentials, object{"name": name, "user": user})
		contexts = append(contexts, object{"name": name, "context": object{"cluster": "server", "user": name}})
	}
	kubeconfig, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin",
		"clusters": clusters, "users": credentials, "contexts": contexts,
	})
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		authorityCertificate: ours.certificate,
		servingCertificate:   serving.certificate,
		servingKey:           serving.key,
		accountKey:           account.key,
		tokens:               []byte(list),
		"kubeconfig":         kubeconfig,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(ours.parsed)
	return pool, nil
}

// pair is a certificate and its key, PEM-encoded.
type pair struct {
	certificate, key []byte
}

type authority struct {
	pair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	return issue(template, nil)
}

func (a *authority) sign(subject pkix.Name, until time.Time, usage x509.ExtKeyUsage) (pair, error) {
	issued, err := issue(&x509.Certificate{
		Subject:     subject,
		NotAfter:    until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a)
	if err != nil {
		return pair{}, err
	}
	return issued.pair, nil
}

// issue makes a key and a certificate for it, which signs itself if there is no signer.
func issue(template *x509.Certificate, by *authority) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100)); err != nil {
		return nil, err
	}
	template.NotBefore = time.Now().Add(-24 * time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.parsed, by.signer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &authority{
		pair: pair{
			certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		},
		parsed: parsed,
		signer: key,
	}, nil
}
