package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// connect reads the administrator's credential from a kubeconfig, which is JSON here.
func connect(kubeconfig string) (*Server, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Name    string
			Cluster struct {
				Server    string
				Authority []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			Name string
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			}
		}
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	server := &Server{Kubeconfig: kubeconfig, paths: map[string]string{}}
	settings := &tls.Config{RootCAs: x509.NewCertPool()}
	for _, it := range config.Clusters {
		if it.Name == "server" {
			server.address = it.Cluster.Server
			settings.RootCAs.AppendCertsFromPEM(it.Cluster.Authority)
		}
	}
	for _, it := range config.Users {
		if it.Name == "admin" {
			pair, err := tls.X509KeyPair(it.User.Certificate, it.User.Key)
			if err != nil {
				return nil, err
			}
			settings.Certificates = append(settings.Certificates, pair)
		}
	}
	server.client = &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: settings},
	}
	return server, nil
}

// Request sends a request as the administrator and decodes the answer, which must be JSON.
func (s *Server) Request(method, path, contentType string, body []byte) (Object, error) {
	answer, status, err := s.request(method, path, contentType, body)
	// For a moment after a CRD has been established, its objects cannot be listed.
	for try := 0; status == http.StatusTooManyRequests && try < 100; try++ {
		time.Sleep(100 * time.Millisecond)
		answer, status, err = s.request(method, path, contentType, body)
	}
	return answer, err
}

func (s *Server) request(method, path, contentType string, body []byte) (Object, int, error) {
	request, err := http.NewRequest(method, s.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, err
	}
	var answer Object
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, response.StatusCode, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if response.StatusCode >= 300 {
		return nil, response.StatusCode, fmt.Errorf("%s %s: %s: %v", method, path, response.Status, answer["message"])
	}
	return answer, response.StatusCode, nil
}

// Apply stores an object by server-side apply.
func (s *Server) Apply(document []byte) error {
	return s.apply(document, "")
}

// DryRun asks the API server whether it would store an object. Unknown and duplicate fields are
// errors.
func (s *Server) DryRun(document []byte) error {
	return s.apply(document, "&dryRun=All")
}

func (s *Server) apply(document []byte, more string) error {
	head, err := parseHead(document)
	if err != nil {
		return err
	}
	path, err := s.path(head)
	if err != nil {
		return err
	}
	query := "?fieldManager=tests&force=true&fieldValidation=Strict" + more
	_, err = s.Request(http.MethodPatch, path+query, "application/apply-patch+yaml", document)
	return err
}

// path asks the API server where objects of a kind are.
func (s *Server) path(head head) (string, error) {
	group := "/apis/" + head.APIVersion
	if !strings.Contains(head.APIVersion, "/") {
		group = "/api/" + head.APIVersion
	}
	if head.Metadata.Namespace != "" {
		head.Kind = "namespaced " + head.Kind
	}
	if _, known := s.paths[group+" "+head.Kind]; !known {
		answer, err := s.Request(http.MethodGet, group, "", nil)
		if err != nil {
			return "", err
		}
		resources, _ := answer["resources"].([]any)
		for _, it := range resources {
			resource := it.(Object)
			kind, name := resource["kind"].(string), resource["name"].(string)
			if strings.Contains(name, "/") {
				continue
			}
			if resource["namespaced"] == true {
				kind = "namespaced " + kind
			}
			s.paths[group+" "+kind] = name
		}
	}
	plural, known := s.paths[group+" "+head.Kind]
	if !known {
		return "", fmt.Errorf("the API server has no %s in %s", head.Kind, group)
	}
	if head.Metadata.Namespace != "" {
		group += "/namespaces/" + head.Metadata.Namespace
	}
	return group + "/" + plural + "/" + head.Metadata.Name, nil
}

// install stores a CRD and waits until its objects can be stored.
func (s *Server) install(definition []byte) error {
	if err := s.Apply(definition); err != nil {
		return err
	}
	head, err := parseHead(definition)
	if err != nil {
		return err
	}
	path, err := s.path(head)
	if err != nil {
		return err
	}
	for range 600 {
		answer, err := s.Request(http.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		status, _ := answer["status"].(Object)
		conditions, _ := status["conditions"].([]any)
		for _, it := range conditions {
			condition := it.(Object)
			if condition["type"] == "Established" && condition["status"] == "True" {
				return nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s is not established", head.Metadata.Name)
}

// Install stores CRDs.
func (s *Server) Install(t testing.TB, definitions ...[]byte) {
	t.Helper()
	for _, it := range definitions {
		if err := s.install(it); err != nil {
			t.Fatal(err)
		}
	}
}

// Namespace creates a namespace if it does not exist.
func (s *Server) Namespace(t testing.TB, name string) {
	t.Helper()
	document := fmt.Appendf(nil, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name)
	if err := s.Apply(document); err != nil {
		t.Fatal(err)
	}
}

const peers = "/apis/kilo.squat.ai/v1alpha1/peers"

// Peers returns the Peers in the cluster, without the metadata that an API server and the delivering
// tools add.
func (s *Server) Peers(t testing.TB) []Object {
	t.Helper()
	answer, err := s.Request(http.MethodGet, peers, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	items, _ := answer["items"].([]any)
	var found []Object
	for _, it := range items {
		found = append(found, it.(Object))
	}
	return Bare(found)
}

// Versions returns the resource version of each Peer, by name: it changes with every write.
func (s *Server) Versions(t testing.TB) []string {
	t.Helper()
	answer, err := s.Request(http.MethodGet, peers, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	items, _ := answer["items"].([]any)
	for _, it := range items {
		metadata := it.(Object)["metadata"].(Object)
		versions = append(versions, fmt.Sprint(metadata["name"], " ", metadata["resourceVersion"]))
	}
	return versions
}

// identities returns the UID of each Peer, by name. A Peer that is deleted and comes again has another one.
func (s *Server) identities(t testing.TB) map[string]string {
	t.Helper()
	answer, err := s.Request(http.MethodGet, peers, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	items, _ := answer["items"].([]any)
	for _, it := range items {
		metadata := it.(Object)["metadata"].(Object)
		found[metadata["name"].(string)] = metadata["uid"].(string)
	}
	return found
}

// DeletePeers deletes all Peers, for the next test.
func (s *Server) DeletePeers(t testing.TB) {
	t.Helper()
	if _, err := s.Request(http.MethodDelete, peers, "", nil); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if len(s.Peers(t)) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("Peers are still there")
}
