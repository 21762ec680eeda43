package flux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"clustermesh.test/cluster"
)

// Files of one's own are delivered as docs/how-to/templates.md says, with rights of their own, and the Peers as before.
func TestAppsAreDelivered(t *testing.T) {
	server := cluster.Start(t)
	repository, blocks := cluster.WithApps(t, "flux", "templates/flux-apps.yaml.j2")
	source := filepath.Join(repository, "flux", "gitrepository.yaml")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "  ignore: |\n")
	apps := &controllers{kustomization: cluster.Read[kustomizev1.Kustomization](t, filepath.Join(repository, "flux", "apps-west.yaml"))}
	apps.source = cluster.Read[sourcev1.GitRepository](t, source)
	if _, err := apps.build(t, repository); err == nil {
		t.Error("delivered without a change of `ignore`")
	}
	cluster.Write(t, before+blocks["flux/gitrepository.yaml"], source)
	apps.source = cluster.Read[sourcev1.GitRepository](t, source)
	// The service account of the Peers may not create a ConfigMap.
	for _, namespace := range []string{"kilo", "flux-system"} {
		if err := server.Apply([]byte("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")); err != nil {
			t.Fatal(err)
		}
	}
	account := apps.kustomization.Spec.ServiceAccountName
	apps.kustomization.Spec.ServiceAccountName = "clustermesh"
	if _, err := apps.reconcile(t, server, repository); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Error("the account of the Peers:", err)
	}
	apps.kustomization.Spec.ServiceAccountName = account
	for _, document := range strings.Split(blocks["apps-rights.yaml"], "---\n") {
		if err := server.Apply([]byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	// The server knows new rights after a moment.
	for range 50 {
		if _, err = apps.reconcile(t, server, repository); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	stored, err := server.Request("GET", "/api/v1/namespaces/kilo/configmaps/mesh", "", nil)
	if err != nil || stored["data"].(cluster.Object)["clusters"] != "east" {
		t.Errorf("%v %v", stored, err)
	}
	flux := &controllers{
		source:        apps.source,
		kustomization: cluster.Read[kustomizev1.Kustomization](t, filepath.Join(repository, "flux", "west.yaml")),
	}
	built, err := flux.build(t, repository)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Same(t, plain(built), cluster.Rendered(t, repository, "west"))
}
