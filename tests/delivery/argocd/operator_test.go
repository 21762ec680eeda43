package argocd

import (
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"

	"clustermesh.test/cluster"
)

// Argo CD stores a mesh without the fields that the operator's CRD lacks, unless it applies on the server's side. Only
// kustomize honours the annotation: then the mesh is deleted.
func TestOperatorMesh(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	server.Install(t, cluster.OperatorDefinition(true))
	server.Namespace(t, "kilo-clustermesh")
	repository := cluster.OperatorMesh(t)
	app := shipped(t, repository, "west")
	app.Spec.Source.Path = "mesh"
	app.Spec.Source.Directory = nil
	delivered := func() {
		t.Helper()
		app.Spec.SyncPolicy.SyncOptions = v1alpha1.SyncOptions{"ServerSideApply=true"}
		if done, err := app.sync(t, server); err == nil || !strings.Contains(err.Error(), "field not declared in schema") {
			t.Errorf("%+v %v", done, err)
		}
		app.Spec.SyncPolicy.SyncOptions = nil
		if done, err := app.sync(t, server); err != nil || strings.Join(done.synced, " ") != "prod" || done.pruned != nil {
			t.Errorf("%+v %v", done, err)
		}
		const path = "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-clustermesh/clustermeshes/prod"
		stored, err := server.Request("GET", path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if spec := stored["spec"].(cluster.Object); len(spec) != 1 || len(spec["clusters"].([]any)) != 4 {
			t.Error(spec)
		}
	}
	kustomization := []string{repository, "mesh", "kustomization.yaml"}
	delivered()
	cluster.Write(t, "resources: [mesh.yaml]\n", kustomization...)
	delivered()
	cluster.FollowAdvice(t, repository)
	cluster.Remove(t, kustomization...)
	delivered()
	cluster.Write(t, "resources: [mesh.yaml]\n", kustomization...)
	if done, err := app.sync(t, server); err != nil || done.synced != nil || strings.Join(done.pruned, " ") != "prod" {
		t.Errorf("%+v %v", done, err)
	}
}
