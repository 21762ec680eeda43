package flux

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"clustermesh.test/cluster"
)

// The example with the most Peers for one target, and that target.
const example, target = "hub-and-spokes", "management"

func plain(objects []*unstructured.Unstructured) []cluster.Object {
	var found []cluster.Object
	for _, it := range objects {
		found = append(found, it.Object)
	}
	return cluster.Bare(found)
}

// Flux applies exactly the Peers that are rendered.
func TestBuiltAsRendered(t *testing.T) {
	for _, tree := range cluster.Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			built, err := shipped(t, tree.Target).build(t, tree.Repository)
			if err != nil {
				t.Fatal(err)
			}
			cluster.Same(t, plain(built), cluster.Rendered(t, tree.Repository, tree.Target))
		})
	}
}

// Both Kustomizations deliver the same, and keep the Peers when they are deleted.
func TestKustomizations(t *testing.T) {
	repository := cluster.Example(t, "quickstart")
	for _, file := range cluster.Files(t, "flux", "peers-*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			flux := shipped(t, "west")
			flux.kustomization = cluster.Read[kustomizev1.Kustomization](t, file)
			built, err := flux.build(t, repository)
			if err != nil {
				t.Fatal(err)
			}
			cluster.Same(t, plain(built), cluster.Rendered(t, repository, "west"))
			spec := flux.kustomization.Spec
			if spec.DeletionPolicy != kustomizev1.DeletionPolicyOrphan || !spec.Prune || !spec.Wait || spec.Force {
				t.Errorf("%+v", spec)
			}
			if spec.SourceRef.Name != flux.source.Name {
				t.Errorf("the source is called %s", spec.SourceRef.Name)
			}
		})
	}
}

// What `init` and `render` write for Flux delivers the Peers.
func TestInit(t *testing.T) {
	repository := cluster.Started(t, "flux")
	for _, target := range []string{"east", "west"} {
		flux := &controllers{
			source:        cluster.Read[sourcev1.GitRepository](t, filepath.Join(repository, "flux", "gitrepository.yaml")),
			kustomization: cluster.Read[kustomizev1.Kustomization](t, filepath.Join(repository, "flux", target+".yaml")),
		}
		built, err := flux.build(t, repository)
		if err != nil {
			t.Fatal(err)
		}
		cluster.Same(t, plain(built), cluster.Rendered(t, repository, target))
	}
}

// With `postBuild`, too, the Peers are as rendered: they contain no variable.
func TestSubstitutionChangesNothing(t *testing.T) {
	repository := cluster.Example(t, example)
	flux := shipped(t, target)
	flux.kustomization.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"name": "value"}}
	built, err := flux.build(t, repository)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Same(t, plain(built), cluster.Rendered(t, repository, target))
}

// Flux stores the Peers of every example as they are rendered, and a second reconcile changes nothing.
func TestDeliversEveryTree(t *testing.T) {
	server := cluster.Start(t)
	for _, tree := range cluster.Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			server.DeletePeers(t)
			flux := shipped(t, tree.Target)
			rendered := cluster.Rendered(t, tree.Repository, tree.Target)
			for _, changes := range []int{len(rendered), 0} {
				done, err := flux.reconcile(t, server, tree.Repository)
				if err != nil || len(done.applied) != changes || len(done.deleted) != 0 {
					t.Fatalf("%+v %v", done, err)
				}
				cluster.Same(t, server.Peers(t), rendered)
			}
		})
	}
}

// A reconcile delivers the Peers. Another one changes nothing and sends two requests for each Peer, from
// which the interval in flux/ follows. A Peer that is no longer rendered is deleted, and no other.
func TestReconciles(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, example)
	rendered := cluster.Rendered(t, repository, target)
	flux := shipped(t, target)
	first, err := flux.reconcile(t, server, repository)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.applied) != len(rendered) || len(first.deleted) != 0 {
		t.Errorf("first: %+v", first)
	}
	cluster.Same(t, server.Peers(t), rendered)

	second, err := flux.reconcile(t, server, repository)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.applied)+len(second.deleted) != 0 {
		t.Errorf("second: %+v", second)
	}
	// Discovery takes a few requests more.
	if extra := second.requests - 2*int64(len(rendered)); extra < 0 || extra > 8 {
		t.Errorf("%d requests for %d Peers", second.requests, len(rendered))
	}

	var gone []string
	for _, it := range cluster.Objects(t, filepath.Join(repository, "rendered", target, "platform--tenant-ada.yaml")) {
		gone = append(gone, cluster.Names([]cluster.Object{it})...)
	}
	cluster.Remove(t, repository, "rendered", target, "platform--tenant-ada.yaml")
	cluster.Replace(t, "- platform--tenant-ada.yaml\n", "", repository, "rendered", target, "kustomization.yaml")
	third, err := flux.reconcile(t, server, repository)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(third.deleted)
	if len(third.applied) != 0 || !slices.Equal(third.deleted, gone) {
		t.Errorf("third: %+v instead of %v", third, gone)
	}
	cluster.Same(t, server.Peers(t), cluster.Rendered(t, repository, target))
}

// A Peer that was changed by hand is restored.
func TestRestores(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, example)
	flux := shipped(t, target)
	first, err := flux.reconcile(t, server, repository)
	if err != nil {
		t.Fatal(err)
	}
	changed := first.applied[0]
	_, err = server.Request("PATCH", "/apis/kilo.squat.ai/v1alpha1/peers/"+changed, "application/merge-patch+json",
		[]byte(`{"spec": {"allowedIPs": ["0.0.0.0/0"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	second, err := flux.reconcile(t, server, repository)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(second.applied, []string{changed}) {
		t.Errorf("%+v instead of %s", second, changed)
	}
	cluster.Same(t, server.Peers(t), cluster.Rendered(t, repository, target))
}

// The rows of the table in docs/how-to/delivery.md: what Flux does with a folder that has lost something.
func TestLostFolders(t *testing.T) {
	all := cluster.Rendered(t, cluster.Project(t, "examples", example), target)
	lost := cluster.Names(cluster.Objects(t, cluster.Project(t, "examples", example, "rendered", target, "platform--tenant-ada.yaml")))
	for _, row := range []struct {
		name    string
		damage  func(t *testing.T, folder string)
		failure string
		deleted int
	}{
		{
			"absent",
			func(t *testing.T, folder string) { cluster.Remove(t, folder) },
			"kustomization path not found", 0,
		},
		{
			"no manifest",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder)
				cluster.Write(t, "", folder, ".gitkeep")
			},
			"", len(all),
		},
		{
			"resources: []",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder)
				cluster.Write(t, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
					folder, "kustomization.yaml")
			},
			"", len(all),
		},
		{
			"some Peers",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder, "platform--tenant-ada.yaml")
				cluster.Replace(t, "- platform--tenant-ada.yaml\n", "", folder, "kustomization.yaml")
			},
			"", len(lost),
		},
		{
			"a file that is listed",
			func(t *testing.T, folder string) { cluster.Remove(t, folder, "platform--tenant-ada.yaml") },
			"platform--tenant-ada.yaml", 0,
		},
		{
			"kustomization.yaml, beside another file",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder, "kustomization.yaml")
				cluster.Write(t, "a: b\n", folder, "notes.yaml")
			},
			"notes.yaml", 0,
		},
		{
			"nothing, with a hidden .sourceignore",
			func(t *testing.T, folder string) {
				cluster.Write(t, "kustomization.yaml\n*--tenant-ada.yaml\n", folder, ".sourceignore")
			},
			"", 0,
		},
		{
			"nothing, with a hidden .argocd-source.yaml",
			func(t *testing.T, folder string) {
				cluster.Write(t, "directory: {exclude: '*--tenant-ada.yaml'}\n", folder, ".argocd-source.yaml")
			},
			"", 0,
		},
	} {
		t.Run(strings.ReplaceAll(row.name, "/", " "), func(t *testing.T) {
			server := cluster.Start(t)
			server.DeletePeers(t)
			repository := cluster.Example(t, example)
			flux := shipped(t, target)
			if _, err := flux.reconcile(t, server, repository); err != nil {
				t.Fatal(err)
			}
			row.damage(t, filepath.Join(repository, "rendered", target))
			if run := cluster.Clustermesh(t, repository, "render", "--check"); run.Code != 1 {
				t.Errorf("`render --check` exits with %d: %s%s", run.Code, run.Stdout, run.Stderr)
			}
			done, err := flux.reconcile(t, server, repository)
			if row.failure == "" && err != nil || row.failure != "" && (err == nil || !strings.Contains(err.Error(), row.failure)) {
				t.Errorf("the error is %v", err)
			}
			if left := len(server.Peers(t)); len(done.deleted) != row.deleted || left != len(all)-row.deleted {
				t.Errorf("deleted %v, left %d of %d", done.deleted, left, len(all))
			}
		})
	}
}

// A cluster whose snapshot has lost its nodes: `render` refuses, so Flux changes nothing.
func TestLostNodes(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, example)
	flux := shipped(t, target)
	if _, err := flux.reconcile(t, server, repository); err != nil {
		t.Fatal(err)
	}
	cluster.LoseNodes(t, repository, "tenant-ada")
	if run := cluster.Clustermesh(t, repository, "render"); run.Code != 1 || !strings.Contains(run.Stderr, "[lost-source]") {
		t.Error(run)
	}
	done, err := flux.reconcile(t, server, repository)
	if err != nil || len(done.applied)+len(done.deleted) != 0 {
		t.Errorf("%+v %v", done, err)
	}
}

// Without `spec.ignore`, a hidden `.sourceignore` does delete Peers: the line in gitrepository.yaml is
// needed.
func TestIgnoreIsNeeded(t *testing.T) {
	repository := cluster.Example(t, example)
	cluster.Write(t, "kustomization.yaml\n*--tenant-ada.yaml\n", repository, "rendered", target, ".sourceignore")
	flux := shipped(t, target)
	flux.source.Spec.Ignore = nil
	built, err := flux.build(t, repository)
	if err != nil {
		t.Fatal(err)
	}
	if all := cluster.Rendered(t, repository, target); len(built) >= len(all) {
		t.Errorf("%d of %d", len(built), len(all))
	}
}

// A folder cannot deliver files from outside of it, whether by a link or by a path. What the error
// shows of such a file is its name.
func TestOutsideStaysOutside(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: hidden}\nstringData: {a: verysecret}\n"
	for name, resource := range map[string]string{
		"a path in the repository":  "../../secret.yaml",
		"a path out of it":          "../../../secret.yaml",
		"an absolute path":          "/etc/hostname",
		"a link in the repository":  "link.yaml",
		"a link out of it":          "away.yaml",
		"a link to a whole folder":  "folder",
		"another repository's root": "../..",
	} {
		t.Run(name, func(t *testing.T) {
			repository := cluster.Example(t, example)
			cluster.Write(t, secret, repository, "secret.yaml")
			cluster.Write(t, secret, filepath.Dir(repository), "secret.yaml")
			folder := filepath.Join(repository, "rendered", target)
			for link, to := range map[string]string{
				"link.yaml": "../../secret.yaml",
				"away.yaml": filepath.Join(filepath.Dir(repository), "secret.yaml"),
				"folder":    filepath.Dir(repository),
			} {
				if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
					t.Fatal(err)
				}
			}
			cluster.Replace(t, "resources:\n", "resources:\n- "+resource+"\n", folder, "kustomization.yaml")
			built, err := shipped(t, target).build(t, repository)
			if err == nil {
				t.Fatalf("%d objects", len(built))
			}
			if strings.Contains(err.Error(), "verysecret") {
				t.Error(err)
			}
		})
	}
}
