package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// Where the policies of guards are.
const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"
const bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/"

// The name of the policy and the binding of a guard.
const guardName = "clustermesh-peers"

// guarded is a server with users who may write Peers.
type guarded struct {
	server *Server
	client *http.Client
}

// newGuarded lets the users with tokens write Peers.
func newGuarded(t *testing.T, server *Server) guarded {
	t.Helper()
	for _, user := range []string{"reader", "stranger"} {
		binding := `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "` +
			user + `"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "` + user + `"}]}`
		if err := server.Apply([]byte(binding)); err != nil {
			t.Fatal(err)
		}
	}
	transport := server.client.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = nil
	return guarded{server, &http.Client{Transport: transport, Timeout: time.Minute}}
}

// reaction is what a user gets for a request.
type reaction struct {
	status   int
	message  string
	warnings []string
}

// ask sends a request of a user: `admin`, or one with a token.
func (it guarded) ask(t *testing.T, user, method, path, contentType string, body []byte) reaction {
	t.Helper()
	request, err := http.NewRequest(method, it.server.address+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	client := it.server.client
	if user != "admin" {
		request.Header.Set("Authorization", "Bearer "+user+"-token")
		client = it.client
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := reaction{status: response.StatusCode}
	var status struct{ Message string }
	if err := json.Unmarshal(text, &status); err == nil {
		got.message = status.Message
	}
	for _, warning := range response.Header.Values("Warning") {
		quoted := strings.TrimPrefix(warning, "299 - ")
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			quoted = unquoted
		}
		if _, sentence, found := strings.Cut(quoted, "' with binding '"); found {
			_, quoted, _ = strings.Cut(sentence, "': ")
		}
		got.warnings = append(got.warnings, quoted)
	}
	slices.Sort(got.warnings)
	return got
}

// create asks as a user to create a Peer, and stores nothing.
func (it guarded) create(t *testing.T, user string, peer Object) reaction {
	t.Helper()
	return it.ask(t, user, "POST", peers+"?dryRun=All", "application/json", encode(t, peer))
}

// install applies the manifests of a guard and waits until a Peer that it refuses is refused.
func (it guarded) install(t *testing.T, manifests string) {
	t.Helper()
	for _, document := range separator.Split(manifests, -1) {
		if err := it.server.Apply([]byte(document)); err != nil {
			t.Fatal(err, document)
		}
	}
	nobodys := Object{
		"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": Object{"name": "nobody"},
		"spec": Object{"allowedIPs": []string{}, "publicKey": ""},
	}
	for range 200 {
		got := it.create(t, "admin", nobodys)
		if got.status == http.StatusUnprocessableEntity || len(got.warnings) > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the guard has no effect")
}

// uninstall deletes the guard and waits until it has no effect.
func (it guarded) uninstall(t *testing.T, peer Object) {
	t.Helper()
	if _, err := it.server.Request("DELETE", bindings+guardName, "", nil); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if got := it.create(t, "admin", peer); got.status == http.StatusCreated {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the guard keeps its effect without its binding")
}

// apart returns the manifests of a guard under another name, which only judges Peers with a label and only warns. Guards of
// many clusters can be in one server so.
func apart(t *testing.T, manifests, name string) [][]byte {
	t.Helper()
	var documents [][]byte
	for _, document := range separator.Split(manifests, -1) {
		var object Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		object["metadata"].(Object)["name"] = name
		if object["kind"] == "ValidatingAdmissionPolicyBinding" {
			object["spec"] = Object{
				"policyName": name, "validationActions": []string{"Warn", "Audit"},
				"matchResources": Object{"objectSelector": Object{"matchLabels": Object{"guarded-by": name}}},
			}
		}
		documents = append(documents, encode(t, object))
	}
	return documents
}

// labelled returns a copy of a Peer with the label of its guard.
func labelled(t *testing.T, peer Object, name string) Object {
	t.Helper()
	copied := decode(t, string(encode(t, peer)))
	metadata := copied["metadata"].(Object)
	labels, _ := metadata["labels"].(Object)
	if labels == nil {
		labels = Object{}
		metadata["labels"] = labels
	}
	labels["guarded-by"] = name
	return copied
}

// sentence returns the sentence of a refusal, which names the policy and the binding before it.
func (it reaction) sentence() string {
	_, sentence, _ := strings.Cut(it.message, refused)
	return sentence
}

func (it reaction) String() string {
	return fmt.Sprintf("%d %s %q", it.status, it.message, it.warnings)
}
