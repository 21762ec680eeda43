package argocd

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"clustermesh.test/cluster"
)

// Files of one's own are delivered as docs/how-to/templates.md says, by a project of their own.
func TestAppsAreDelivered(t *testing.T) {
	repository, blocks := cluster.WithApps(t, "argocd", "templates/argocd-apps.yaml.j2")
	app := &application{
		Application: cluster.Read[v1alpha1.Application](t, filepath.Join(repository, "argocd", "apps-west.yaml")),
		repository:  repository,
		deadline:    time.Minute,
	}
	objects, err := app.generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 || objects[0].GetKind() != "ConfigMap" || objects[0].GetName() != "mesh" {
		t.Fatal(objects)
	}
	var project v1alpha1.AppProject
	if err := yaml.UnmarshalStrict([]byte(blocks["argocd/apps-project.yaml"]), &project); err != nil {
		t.Fatal(err)
	}
	if app.Spec.Project != project.Name || !project.IsSourcePermitted(app.Spec.GetSource()) {
		t.Errorf("not permitted: %+v", app.Spec)
	}
	destination := &v1alpha1.Cluster{Name: "west", Server: "https://west.example.com"}
	if is, err := project.IsDestinationPermitted(destination, app.Spec.Destination.Namespace, nil); err != nil || !is {
		t.Errorf("the destination is not permitted: %v", err)
	}
	for kind, want := range map[schema.GroupKind]bool{{Kind: "ConfigMap"}: true, {Kind: "Secret"}: false} {
		if project.IsGroupKindPermitted(kind, true) != want {
			t.Errorf("%v: not %v", kind, want)
		}
	}
	cluster := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}
	if project.IsGroupKindPermitted(cluster, false) {
		t.Error("cluster-scoped objects are permitted")
	}
}
