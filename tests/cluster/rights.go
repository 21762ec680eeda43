package cluster

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Grant applies what `clustermesh rbac` prints.
func Grant(t testing.TB, server *Server, arguments ...string) {
	t.Helper()
	run := Clustermesh(t, t.TempDir(), append([]string{"rbac"}, arguments...)...)
	if run.Code != 0 {
		t.Fatal(run)
	}
	for _, document := range strings.Split(run.Stdout, "---\n") {
		if err := server.Apply([]byte(document)); err != nil {
			t.Fatal(err, document)
		}
	}
}

// granted are the servers in which Flux may deliver.
var granted sync.Map

// GrantDelivery grants Flux's service account its rights, and waits until the server knows them.
func GrantDelivery(t testing.TB, server *Server) {
	t.Helper()
	if _, is := granted.LoadOrStore(server, true); is {
		return
	}
	if err := server.Apply([]byte("{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")); err != nil {
		t.Fatal(err)
	}
	Grant(t, server, "--delivery")
	review := []byte(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
		"user": "system:serviceaccount:flux-system:clustermesh",
		"resourceAttributes": {"group": "kilo.squat.ai", "resource": "peers", "verb": "delete"}}}`)
	for range 100 {
		answer, err := server.Request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", review)
		if err != nil {
			t.Fatal(err)
		}
		if answer["status"].(Object)["allowed"] == true {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the rights of `clustermesh rbac --delivery` have no effect")
}
