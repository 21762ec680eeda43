package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mesh = `apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: real
spec:
  clusters:
    - name: east
      podCIDRs: [10.42.0.0/16]
      wireguardCIDR: 10.4.0.0/16
    - name: west
      podCIDRs: [10.244.0.0/16]
      wireguardCIDR: 10.5.0.0/16
`

// seed stores the nodes of an example in the cluster.
func seed(t *testing.T, server *Server, dump string) {
	t.Helper()
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []Object }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, node := range list.Items {
		metadata := node["metadata"].(Object)
		for _, field := range []string{"creationTimestamp", "resourceVersion", "uid", "finalizers"} {
			delete(metadata, field)
		}
		addresses := node["status"].(Object)["addresses"]
		delete(node, "status")
		if err := server.Apply(encode(t, node)); err != nil {
			t.Fatal(err)
		}
		// The status is stored by a request of its own, as a kubelet does it.
		document := encode(t, Object{"status": Object{"addresses": addresses}})
		path := fmt.Sprintf("/api/v1/nodes/%s/status", metadata["name"])
		if _, err := server.Request("PATCH", path, "application/merge-patch+json", document); err != nil {
			t.Fatal(err)
		}
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text string) Object {
	t.Helper()
	var object Object
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// snapshot takes a snapshot of `east` and returns the file's content.
func snapshot(t *testing.T, login Login) (Run, string) {
	t.Helper()
	folder := t.TempDir()
	Write(t, mesh, folder, "mesh.yaml")
	Write(t, Kubeconfig(t, map[string]Login{"east": login}), folder, "kubeconfig")
	run := Clustermesh(t, folder, "snapshot", "--kubeconfig", "kubeconfig", "east")
	text, err := os.ReadFile(filepath.Join(folder, "snapshots", "east.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return run, string(text)
}

// A service account with the rights of examples/rbac.yaml takes the snapshot that a dump gives, and
// can read nothing else.
func TestExampleRightsSuffice(t *testing.T) {
	server := Start(t)
	seed(t, server, Project(t, "examples", "quickstart", "nodes", "east.json"))
	for _, document := range Documents(t, Project(t, "examples", "rbac.yaml")) {
		if err := server.Apply(document); err != nil {
			t.Fatal(err)
		}
	}
	server.Namespace(t, "kilo-clustermesh")
	for _, document := range Documents(t, Project(t, "examples", "rbac-secrets.yaml")) {
		if err := server.DryRun(document); err != nil {
			t.Error(err)
		}
	}
	account := "/api/v1/namespaces/clustermesh/serviceaccounts/snapshot"
	answer, err := server.Request("POST", account+"/token", "application/json",
		[]byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	token := answer["status"].(Object)["token"].(string)
	run, live := snapshot(t, Login{Server: server, Context: "admin", Token: token})
	if run.Code != 0 {
		t.Fatal(run)
	}
	nodes, err := server.Request("GET", "/api/v1/nodes", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	Write(t, mesh, folder, "mesh.yaml")
	Write(t, string(encode(t, nodes)), folder, "dump.json")
	if run := Clustermesh(t, folder, "snapshot", "--from", "dump.json", "east"); run.Code != 0 {
		t.Fatal(run)
	}
	dumped, err := os.ReadFile(filepath.Join(folder, "snapshots", "east.json"))
	if err != nil {
		t.Fatal(err)
	}
	if live != string(dumped) {
		t.Errorf("the snapshot of the API server differs from that of the dump\n%s\nexpected\n%s", live, dumped)
	}
	for _, resource := range []string{"secrets", "pods", "configmaps"} {
		review, err := server.Request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json",
			encode(t, Object{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
				"spec": Object{
					"user":               "system:serviceaccount:clustermesh:snapshot",
					"resourceAttributes": Object{"verb": "list", "resource": resource},
				},
			}))
		if err != nil {
			t.Fatal(err)
		}
		if review["status"].(Object)["allowed"] != false {
			t.Errorf("the service account can list %s", resource)
		}
	}
}

// Every failure is an error with its rule, writes nothing and does not print the credential.
func TestRefusedCredentials(t *testing.T) {
	server := Start(t)
	for context, rule := range map[string]string{
		"stranger":  "forbidden",
		"anonymous": "forbidden",
		"unknown":   "unauthorized",
		"expired":   "unauthorized",
		"foreign":   "unauthorized",
		"impostor":  "untrusted-certificate",
	} {
		t.Run(context, func(t *testing.T) {
			run, written := snapshot(t, Login{Server: server, Context: context})
			if run.Code != 2 || !strings.Contains(run.Stderr, "["+rule+"]") {
				t.Errorf("not the rule %s: %+v", rule, run)
			}
			if written != "" || strings.Contains(run.Stdout+run.Stderr, context+"-token") {
				t.Errorf("%+v %s", run, written)
			}
		})
	}
}
