package argocd

import (
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apptemplate "github.com/argoproj/argo-cd/v3/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v3/applicationset/generators"
	appsetutils "github.com/argoproj/argo-cd/v3/applicationset/utils"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	log "github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"clustermesh.test/cluster"
)

// checkout answers as repo-server does for a checkout.
type checkout struct{ root string }

func (c checkout) GetFiles(context.Context, string, string, string, string, bool, bool) (map[string][]byte, error) {
	return nil, nil
}

// GetDirectories lists all folders that are not hidden.
func (c checkout) GetDirectories(context.Context, string, string, string, bool, bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir(c.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || path == c.root {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		relative, err := filepath.Rel(c.root, path)
		found = append(found, relative)
		return err
	})
	return found, err
}

// registered is a cluster that Argo CD knows.
type registered struct {
	name   string
	labels map[string]string
}

// generated returns the Applications of an ApplicationSet of argocd/.
func generated(t *testing.T, name, repository string, clusters ...registered) []v1alpha1.Application {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	var secrets []runtime.Object
	for _, it := range clusters {
		labels := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
		for label, value := range it.labels {
			labels[label] = value
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "cluster-" + it.name, Labels: labels},
			Data:       map[string][]byte{"name": []byte(it.name), "server": []byte("https://" + it.name + ".example.com")},
		}
		builder = builder.WithObjects(secret)
		secrets = append(secrets, secret.DeepCopy())
	}
	for _, project := range documents[v1alpha1.AppProject](t, "AppProject") {
		builder = builder.WithObjects(project)
	}
	client := builder.Build()
	all := map[string]generators.Generator{
		"Git":      generators.NewGitGenerator(checkout{repository}, "argocd"),
		"Clusters": generators.NewClusterGenerator(context.Background(), client, kubefake.NewClientset(secrets...), "argocd"),
	}
	for _, set := range documents[v1alpha1.ApplicationSet](t, "ApplicationSet") {
		if set.Name != name {
			continue
		}
		if err := appsetutils.CheckInvalidGenerators(set); err != nil {
			t.Fatal(err)
		}
		applications, _, err := apptemplate.GenerateApplications(log.NewEntry(log.StandardLogger()), *set, all, &appsetutils.Render{}, client)
		if err != nil {
			t.Fatal(err)
		}
		return applications
	}
	t.Fatal("no ApplicationSet", name)
	return nil
}

var wanted = map[string]string{"clustermesh": "true"}

// Each labelled cluster gets its own folder, and no other cluster gets one. The Applications equal
// argocd/application.yaml and deliver what is rendered.
func TestApplicationSets(t *testing.T) {
	repository := cluster.Example(t, example)
	for name, clusters := range map[string][]registered{
		"clustermesh": {
			{"management", wanted}, {"tenant-ada", wanted},
			{"tenant-bell", nil}, {"staging", map[string]string{"clustermesh": "false"}},
		},
		"clustermesh-directories": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var targets []string
			for _, app := range generated(t, name, repository, clusters...) {
				target := app.Spec.Destination.Name
				targets = append(targets, target)
				expected := shipped(t, repository, target)
				expected.Spec.Destination.Name = target
				if got, want := encode(t, app.Spec), encode(t, expected.Spec); app.Name != expected.Name || got != want {
					t.Errorf("%s: %s\nis not\n%s", app.Name, got, want)
				}
				if len(app.Finalizers) > 0 {
					t.Errorf("%s has the finalizers %v", app.Name, app.Finalizers)
				}
				objects, err := (&application{Application: &app, repository: repository, deadline: expected.deadline}).generate()
				if err != nil {
					t.Fatal(err)
				}
				cluster.Same(t, plain(t, objects), cluster.Rendered(t, repository, target))
			}
			expected := []string{"management", "tenant-ada"}
			if clusters == nil {
				expected = []string{"management", "tenant-ada", "tenant-bell", "tenant-curie", "tenant-dijkstra"}
			}
			slices.Sort(targets)
			if !slices.Equal(targets, expected) {
				t.Errorf("%v instead of %v", targets, expected)
			}
		})
	}
}

// An ApplicationSet never deletes an Application, nor Peers.
func TestApplicationSetsKeepApplications(t *testing.T) {
	for _, set := range documents[v1alpha1.ApplicationSet](t, "ApplicationSet") {
		policy := set.Spec.SyncPolicy
		if *policy.ApplicationsSync != v1alpha1.ApplicationsSyncPolicyCreateUpdate || !policy.PreserveResourcesOnDeletion {
			t.Errorf("%s: %+v", set.Name, policy)
		}
		if !slices.Equal(set.Spec.GoTemplateOptions, []string{"missingkey=error"}) {
			t.Errorf("%s: %v", set.Name, set.Spec.GoTemplateOptions)
		}
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A cluster whose name leads to another folder gets no Peers, and not those of that folder.
func TestHostileClusterNames(t *testing.T) {
	repository := cluster.Example(t, example)
	for _, name := range []string{"../..", "..", "../../../etc", "{{.server}}"} {
		for _, app := range generated(t, "clustermesh", repository, registered{name, wanted}) {
			objects, err := (&application{Application: &app, repository: repository, deadline: time.Minute}).generate()
			if err == nil && len(objects) > 0 {
				t.Errorf("%s: %d objects from %s", name, len(objects), app.Spec.Source.Path)
			}
		}
	}
}

// The project allows Peers, from one repository, and nothing else.
func TestProject(t *testing.T) {
	project := documents[v1alpha1.AppProject](t, "AppProject")[0]
	if err := project.ValidateProject(); err != nil {
		t.Fatal(err)
	}
	source := shipped(t, "", target).Spec.GetSource()
	if !project.IsSourcePermitted(source) {
		t.Error("the repository is not permitted")
	}
	source.RepoURL = "https://git.example.com/somebody/else.git"
	if project.IsSourcePermitted(source) {
		t.Error("another repository is permitted")
	}
	for namespace, want := range map[string]bool{"kilo": true, "kube-system": false} {
		destination := &v1alpha1.Cluster{Name: target, Server: "https://management.example.com"}
		got, err := project.IsDestinationPermitted(destination, namespace, nil)
		if err != nil || got != want {
			t.Errorf("the namespace %s: %v %v", namespace, got, err)
		}
	}
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "kilo.squat.ai", Kind: "Peer"}:                            true,
		{Group: "kilo.squat.ai", Kind: "ClusterMesh"}:                     false,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Kind: "Namespace"}: false,
	} {
		if project.IsGroupKindPermitted(kind, false) != want {
			t.Errorf("%s: not %v", kind, want)
		}
	}
	for _, kind := range []schema.GroupKind{{Kind: "Secret"}, {Group: "apps", Kind: "Deployment"}, {Group: "argoproj.io", Kind: "Application"}} {
		if project.IsGroupKindPermitted(kind, true) {
			t.Errorf("%s is permitted", kind)
		}
	}
}
