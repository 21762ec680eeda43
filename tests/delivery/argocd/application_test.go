package argocd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/app/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"clustermesh.test/cluster"
)

// The example with the most Peers for one target, and that target.
const example, target = "hub-and-spokes", "management"

// part is a file of the target, and partly the Peers.
const part = "platform--tenant-ada.yaml"

func partly(t *testing.T) []string {
	t.Helper()
	return cluster.Names(cluster.Bare(cluster.Objects(t, cluster.Project(t, "examples", example, "rendered", target, part))))
}

// Argo CD generates exactly the Peers that are rendered, by the Directory source of argocd/ and by
// Kustomize.
func TestGeneratedAsRendered(t *testing.T) {
	for _, tree := range cluster.Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			rendered := cluster.Rendered(t, tree.Repository, tree.Target)
			app := shipped(t, tree.Repository, tree.Target)
			for _, directory := range []*v1alpha1.ApplicationSourceDirectory{app.Spec.Source.Directory, nil} {
				app.Spec.Source.Directory = directory
				objects, err := app.generate()
				if err != nil {
					t.Fatal(err)
				}
				cluster.Same(t, plain(t, objects), rendered)
			}
		})
	}
}

// What `init` and `render` write for Argo CD delivers the Peers, and the project allows it.
func TestInit(t *testing.T) {
	repository := cluster.Started(t, "argocd")
	project := cluster.Read[v1alpha1.AppProject](t, filepath.Join(repository, "argocd", "project.yaml"))
	for _, target := range []string{"east", "west"} {
		app := &application{
			Application: cluster.Read[v1alpha1.Application](t, filepath.Join(repository, "argocd", target+".yaml")),
			repository:  repository,
			deadline:    time.Minute,
		}
		if app.Spec.Project != project.Name || !project.IsSourcePermitted(app.Spec.GetSource()) {
			t.Errorf("not permitted: %+v", app.Spec)
		}
		if policy := app.prunePropagation(); policy != metav1.DeletePropagationBackground {
			t.Errorf("deletes in the %s", policy)
		}
		objects, err := app.generate()
		if err != nil {
			t.Fatal(err)
		}
		cluster.Same(t, plain(t, objects), cluster.Rendered(t, repository, target))
	}
}

// Files that clustermesh did not write are not delivered.
func TestStraysStayOut(t *testing.T) {
	repository := cluster.Example(t, example)
	folder := filepath.Join(repository, "rendered", target)
	stray := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: stray}\n"
	for _, name := range []string{"stray.yaml", "stray.json", "sub/stray--stray.yaml", ".stray--stray.yaml.swp"} {
		cluster.Write(t, stray, folder, name)
	}
	objects, err := shipped(t, repository, target).generate()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Same(t, plain(t, objects), cluster.Rendered(t, repository, target))
}

// Argo CD stores the Peers of every example as they are rendered, and a second sync writes nothing.
func TestDeliversEveryTree(t *testing.T) {
	server := cluster.Start(t)
	for _, tree := range cluster.Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			server.DeletePeers(t)
			app := shipped(t, tree.Repository, tree.Target)
			var versions []string
			for range 2 {
				if done, err := app.sync(t, server); err != nil || len(done.pruned) != 0 {
					t.Fatalf("%+v %v", done, err)
				}
				cluster.Same(t, server.Peers(t), cluster.Rendered(t, tree.Repository, tree.Target))
				if now := server.Versions(t); versions == nil {
					versions = now
				} else if !slices.Equal(now, versions) {
					t.Errorf("%v instead of %v", now, versions)
				}
			}
		})
	}
}

// A sync delivers the Peers. Another one writes nothing. A Peer that is no longer rendered is deleted,
// and no other.
func TestSyncs(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, example)
	rendered := cluster.Rendered(t, repository, target)
	app := shipped(t, repository, target)
	first, err := app.sync(t, server)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.synced, cluster.Names(rendered)) || len(first.pruned) != 0 {
		t.Errorf("first: %+v", first)
	}
	cluster.Same(t, server.Peers(t), rendered)

	versions := server.Versions(t)
	second, err := app.sync(t, server)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.pruned) != 0 || !slices.Equal(server.Versions(t), versions) {
		t.Errorf("second: %+v", second)
	}

	cluster.Remove(t, repository, "rendered", target, part)
	third, err := app.sync(t, server)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(third.pruned, partly(t)) {
		t.Errorf("third: %+v instead of %v", third, partly(t))
	}
	cluster.Same(t, server.Peers(t), cluster.Rendered(t, repository, target))
}

// Two Applications in one cluster do not delete each other's Peers.
func TestPrunesOnlyItsOwn(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	hub := cluster.Example(t, example)
	if _, err := shipped(t, hub, target).sync(t, server); err != nil {
		t.Fatal(err)
	}
	quickstart := cluster.Example(t, "quickstart")
	done, err := shipped(t, quickstart, "west").sync(t, server)
	if err != nil || len(done.pruned) != 0 {
		t.Errorf("%+v %v", done, err)
	}
	want := len(cluster.Rendered(t, hub, target)) + len(cluster.Rendered(t, quickstart, "west"))
	if left := len(server.Peers(t)); left != want {
		t.Errorf("%d Peers, not %d", left, want)
	}
}

// The rows of the table in docs/how-to/delivery.md: what Argo CD does with a folder that has lost something.
func TestLostFolders(t *testing.T) {
	all := len(cluster.Rendered(t, cluster.Project(t, "examples", example), target))
	some := len(partly(t))
	for _, row := range []struct {
		name    string
		damage  func(t *testing.T, folder string)
		failure string
		pruned  int
	}{
		{
			"absent",
			func(t *testing.T, folder string) { cluster.Remove(t, folder) },
			"app path does not exist", 0,
		},
		{
			"no manifest",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder)
				cluster.Write(t, "", folder, ".gitkeep")
			},
			"", all,
		},
		{
			"resources: []",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder)
				cluster.Write(t, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
					folder, "kustomization.yaml")
			},
			"", all,
		},
		{
			"some Peers",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder, part)
				cluster.Replace(t, "- "+part+"\n", "", folder, "kustomization.yaml")
			},
			"", some,
		},
		{
			"a file that is listed",
			func(t *testing.T, folder string) { cluster.Remove(t, folder, part) },
			"", some,
		},
		{
			"kustomization.yaml, beside another file",
			func(t *testing.T, folder string) {
				cluster.Remove(t, folder, "kustomization.yaml")
				cluster.Write(t, "a: b\n", folder, "notes.yaml")
			},
			"", 0,
		},
		{
			"nothing, with a hidden .sourceignore",
			func(t *testing.T, folder string) { cluster.Write(t, part+"\n", folder, ".sourceignore") },
			"", 0,
		},
		{
			"nothing, with a hidden .argocd-source.yaml that excludes files",
			func(t *testing.T, folder string) {
				cluster.Write(t, "directory: {exclude: '"+part+"'}\n", folder, ".argocd-source.yaml")
			},
			"", some,
		},
		{
			"nothing, with a hidden .argocd-source.yaml for this Application",
			func(t *testing.T, folder string) {
				cluster.Write(t, "directory: {exclude: '"+part+"'}\n", folder, ".argocd-source-clustermesh-"+target+".yaml")
			},
			"", some,
		},
		{
			"nothing, with a hidden .argocd-source.yaml that renames Peers",
			func(t *testing.T, folder string) {
				cluster.Write(t, "kustomize: {namePrefix: other-}\n", folder, ".argocd-source.yaml")
			},
			"multiple application sources", 0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := cluster.Start(t)
			server.DeletePeers(t)
			repository := cluster.Example(t, example)
			app := shipped(t, repository, target)
			if _, err := app.sync(t, server); err != nil {
				t.Fatal(err)
			}
			row.damage(t, filepath.Join(repository, "rendered", target))
			if run := cluster.Clustermesh(t, repository, "render", "--check"); run.Code != 1 {
				t.Errorf("`render --check` exits with %d: %s%s", run.Code, run.Stdout, run.Stderr)
			}
			done, err := app.sync(t, server)
			if row.failure == "" && err != nil || row.failure != "" && (err == nil || !strings.Contains(err.Error(), row.failure)) {
				t.Errorf("the error is %v", err)
			}
			if left := len(server.Peers(t)); len(done.pruned) != row.pruned || left != all-row.pruned {
				t.Errorf("pruned %v, left %d of %d", done.pruned, left, all)
			}
			if done.refusedIfAutomated != (row.pruned == all) {
				t.Errorf("refused if automated: %v", done.refusedIfAutomated)
			}
		})
	}
}

// A cluster whose snapshot has lost its nodes: `render` refuses, so Argo CD changes nothing.
func TestLostNodes(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, example)
	app := shipped(t, repository, target)
	if _, err := app.sync(t, server); err != nil {
		t.Fatal(err)
	}
	versions := server.Versions(t)
	cluster.LoseNodes(t, repository, "tenant-ada")
	if run := cluster.Clustermesh(t, repository, "render"); run.Code != 1 || !strings.Contains(run.Stderr, "[lost-source]") {
		t.Error(run)
	}
	done, err := app.sync(t, server)
	if err != nil || len(done.pruned) != 0 || !slices.Equal(server.Versions(t), versions) {
		t.Errorf("%+v %v", done, err)
	}
}

// repo-server refuses a checkout with a link that leads out of it, and a path that does.
func TestOutsideStaysOutside(t *testing.T) {
	for name, to := range map[string]string{"absolute": "/etc/hostname", "relative": "../../../outside.yaml"} {
		t.Run(name, func(t *testing.T) {
			repository := cluster.Example(t, example)
			cluster.Write(t, "a: verysecret\n", filepath.Dir(repository), "outside.yaml")
			if err := os.Symlink(to, filepath.Join(repository, "rendered", target, "a--b.yaml")); err != nil {
				t.Fatal(err)
			}
			if err := path.CheckOutOfBoundsSymlinks(repository); err == nil {
				t.Error("the link is accepted")
			}
			objects, err := shipped(t, repository, target).generate()
			if err == nil || strings.Contains(err.Error(), "verysecret") {
				t.Errorf("%d objects, %v", len(objects), err)
			}
		})
	}
	if _, err := path.Path(cluster.Example(t, example), "../.."); err == nil {
		t.Error("a path out of the repository is accepted")
	}
}
