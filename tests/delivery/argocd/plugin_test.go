package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/cmpserver/plugin"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/util/app/discovery"
	"github.com/argoproj/argo-cd/v3/util/cmp"
	utilio "github.com/argoproj/argo-cd/v3/util/io"

	"clustermesh.test/cluster"
)

type parameter = v1alpha1.ApplicationSourcePluginParameter

func text(name, value string) parameter { return parameter{Name: name, String_: &value} }

func list(name string, values ...string) parameter {
	return parameter{Name: name, OptionalArray: &v1alpha1.OptionalArray{Array: values}}
}

// plugged is the Application of argocd/plugin/application.yaml, with another path and parameters.
func plugged(t *testing.T, repository, path string, parameters ...parameter) *application {
	t.Helper()
	startPlugin(t)
	app := cluster.Read[v1alpha1.Application](t, cluster.Project(t, "argocd", "plugin", "application.yaml"))
	app.Spec.Source.Path = path
	app.Spec.Source.Plugin.Parameters = parameters
	return &application{Application: app, repository: repository, deadline: time.Minute}
}

// refuses checks that the Application gives nothing but an error with a text.
func refuses(t *testing.T, app *application, want string) string {
	t.Helper()
	objects, err := app.generate()
	if err == nil {
		t.Errorf("%d objects and no error; expected %q", len(objects), want)
		return ""
	}
	t.Log(err)
	if !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not contain %q: %v", want, err)
	}
	return err.Error()
}

func TestPluginConfiguration(t *testing.T) {
	config := cluster.Read[plugin.PluginConfig](t, cluster.Project(t, "argocd", "plugin", "plugin.yaml"))
	if err := plugin.ValidatePluginConfig(*config); err != nil {
		t.Fatal(err)
	}
	// With discovery it would take over Applications; with a version its name would change.
	if config.Spec.Discover.IsDefined() || config.Spec.Version != "" || config.Spec.ProvideGitCreds {
		t.Errorf("%+v", config.Spec)
	}
}

// The Application that users copy delivers as argocd/application.yaml does.
func TestPluginApplication(t *testing.T) {
	startPlugin(t)
	repository := cluster.Example(t, "quickstart")
	directory := shipped(t, repository, "west")
	app := &application{
		Application: cluster.Read[v1alpha1.Application](t, cluster.Project(t, "argocd", "plugin", "application.yaml")),
		repository:  repository,
		deadline:    time.Minute,
	}
	objects, err := app.generate()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Same(t, plain(t, objects), cluster.Rendered(t, repository, "west"))
	app.Spec.Source = directory.Spec.Source
	if got, want := encode(t, app.Spec), encode(t, directory.Spec); got != want || len(app.Finalizers) > 0 {
		t.Errorf("%s\nis not\n%s", got, want)
	}
}

// The API server accepts Argo CD's own manifests with the component, and repo-server has the sidecar.
func TestPluginComponent(t *testing.T) {
	server := cluster.Start(t)
	server.Namespace(t, "argocd")
	folder := t.TempDir()
	installation := filepath.Join(moduleFolder(t), "manifests", "install.yaml")
	content, err := os.ReadFile(installation)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Write(t, string(content), folder, "install.yaml")
	if err := os.CopyFS(filepath.Join(folder, "plugin"), os.DirFS(cluster.Project(t, "argocd", "plugin"))); err != nil {
		t.Fatal(err)
	}
	cluster.Write(t, "namespace: argocd\nresources: [install.yaml]\ncomponents: [plugin]\n", folder, "kustomization.yaml")
	built, err := exec.Command(os.Getenv("KUSTOMIZE"), "build", folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Write(t, string(built), folder, "built.yaml")
	found := 0
	for _, it := range cluster.Objects(t, filepath.Join(folder, "built.yaml")) {
		name := cluster.Names([]cluster.Object{it})[0]
		if name != "argocd-repo-server" && !strings.HasPrefix(name, "clustermesh-plugin-") {
			continue
		}
		if err := server.DryRun([]byte(encode(t, it))); err != nil {
			t.Error(err)
		}
		if text := encode(t, it); it["kind"] == "Deployment" && strings.Contains(text, "registry.example.com/clustermesh@sha256:") ||
			it["kind"] == "ConfigMap" && strings.Contains(text, "argocd, generate") {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d of the Deployment and the ConfigMap", found)
	}
}

// moduleFolder is the folder of Argo CD's module, which `.ci/delivery` downloads.
func moduleFolder(t *testing.T) string {
	t.Helper()
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-cd/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// The plugin delivers the Peers that are rendered: for a cluster by name, and for the folder of a
// cluster, with and without a rendered tree and `.git`.
func TestPluginGeneratesAsRendered(t *testing.T) {
	for _, tree := range cluster.Trees(t) {
		t.Run(tree.Name(), func(t *testing.T) {
			target := tree.Target
			rendered := cluster.Rendered(t, tree.Repository, target)
			check := func(app *application) {
				t.Helper()
				objects, err := app.generate()
				if err != nil {
					t.Fatal(err)
				}
				cluster.Same(t, plain(t, objects), rendered)
			}
			repository := cluster.Copy(t, tree.Repository)
			cluster.Write(t, "ref: refs/heads/main\n", repository, ".git", "HEAD")
			check(plugged(t, repository, ".", text("target", target)))
			check(plugged(t, repository, "rendered/"+target))
			app := plugged(t, repository, "rendered/"+target)
			app.exclude = []string{".git", ".git/*"}
			check(app)
			cluster.Remove(t, repository, "rendered")
			check(plugged(t, repository, ".", text("target", target), list("allow-empty")))
		})
	}
}

// Values of parameters are data. What is wrong with them is an error.
func TestPluginRefusesParameters(t *testing.T) {
	repository := cluster.Example(t, example)
	for name, row := range map[string]struct {
		path       string
		parameters []parameter
		want       string
	}{
		"no target":         {".", nil, "target"},
		"an empty target":   {".", []parameter{text("target", "")}, "target"},
		"no such target":    {".", []parameter{text("target", "tenant-add")}, "tenant-ada"},
		"an option":         {".", []parameter{text("target", "--help")}, "--help"},
		"a command":         {".", []parameter{text("target", "$(id)")}, "$(id)"},
		"two commands":      {".", []parameter{text("target", "management; id")}, "management; id"},
		"a path":            {".", []parameter{text("target", "../tenant-ada")}, "../tenant-ada"},
		"two lines":         {".", []parameter{text("target", "management\nid")}, "management"},
		"an escape":         {".", []parameter{text("target", "\x1b[2J")}, ""},
		"a list of targets": {".", []parameter{list("target", target)}, "target"},
		"a misspelt name":   {".", []parameter{text("targte", target)}, "`target`"},
		"allow-empty is a text": {
			".", []parameter{text("target", target), text("allow-empty", "tenant-ada")}, "allow-empty",
		},
		"two targets":              {".", []parameter{text("target", target), text("target", "tenant-ada")}, "target"},
		"a folder that is not one": {"snapshots", nil, "snapshots"},
	} {
		t.Run(name, func(t *testing.T) {
			message := refuses(t, plugged(t, repository, row.path, row.parameters...), row.want)
			for _, bad := range []string{"uid=", "Usage:", "\x1b"} {
				if strings.Contains(message, bad) {
					t.Errorf("%q is in the error: %s", bad, message)
				}
			}
		})
	}
}

// The plugin reads parameters from one variable only, not from those that anyone who writes an
// Application can name.
func TestPluginIgnoresOtherVariables(t *testing.T) {
	repository := cluster.Example(t, example)
	app := plugged(t, repository, ".")
	app.Spec.Source.Plugin.Env = v1alpha1.Env{
		{Name: "PARAM_TARGET", Value: target},
		{Name: "CLUSTERMESH_ROOT", Value: "/"},
	}
	refuses(t, app, "target")
	app = plugged(t, repository, ".", text("target", target))
	app.Spec.Source.Plugin.Env = v1alpha1.Env{{Name: "CLUSTERMESH_SNAPSHOTS", Value: "/etc"}}
	objects, err := app.generate()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Same(t, plain(t, objects), cluster.Rendered(t, repository, target))
}

// A cluster that lost its nodes: nothing is delivered, with or without a rendered tree, until the loss
// is allowed by name. A sync deletes nothing.
func TestPluginKeepsLostNodes(t *testing.T) {
	server := cluster.Start(t)
	server.DeletePeers(t)
	repository := cluster.Example(t, example)
	if _, err := plugged(t, repository, ".", text("target", target)).sync(t, server); err != nil {
		t.Fatal(err)
	}
	rendered := cluster.Rendered(t, repository, target)
	cluster.Same(t, server.Peers(t), rendered)
	cluster.LoseNodes(t, repository, "tenant-ada")
	for _, tree := range []string{"with", "without"} {
		if tree == "without" {
			cluster.Remove(t, repository, "rendered")
		}
		if _, err := plugged(t, repository, ".", text("target", target)).sync(t, server); err == nil {
			t.Errorf("%s a tree: no error", tree)
		}
		cluster.Same(t, server.Peers(t), rendered)
		refuses(t, plugged(t, repository, ".", text("target", target), list("allow-empty", target+"/tenant-bell")), "tenant-ada")
		objects, err := plugged(t, repository, ".", text("target", target), list("allow-empty", target+"/tenant-ada")).generate()
		if err != nil {
			t.Error(err)
		}
		if want := len(rendered) - len(partly(t)); len(objects) != want {
			t.Errorf("%s a tree: %d objects, not %d", tree, len(objects), want)
		}
	}
}

// The first lines of a clustermesh.yaml.
const header = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n"

// Everything that is unreadable or missing is an error.
func TestPluginRefusesBrokenRepositories(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, repository string){
		"no mesh":      func(t *testing.T, repository string) { cluster.Remove(t, repository, "mesh.yaml") },
		"no snapshots": func(t *testing.T, repository string) { cluster.Remove(t, repository, "snapshots") },
		"one snapshot": func(t *testing.T, repository string) { cluster.Remove(t, repository, "snapshots", "tenant-ada.json") },
		"half a snapshot": func(t *testing.T, repository string) {
			cluster.Write(t, "{", repository, "snapshots", "tenant-ada.json")
		},
		"an empty mesh":   func(t *testing.T, repository string) { cluster.Write(t, "", repository, "mesh.yaml") },
		"a broken mesh":   func(t *testing.T, repository string) { cluster.Write(t, "{", repository, "mesh.yaml") },
		"a broken config": func(t *testing.T, repository string) { cluster.Write(t, "{", repository, "clustermesh.yaml") },
		"unknown settings": func(t *testing.T, repository string) {
			cluster.Write(t, header+"meshs: x\n", repository, "clustermesh.yaml")
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := cluster.Example(t, example)
			damage(t, repository)
			refuses(t, plugged(t, repository, ".", text("target", target)), "")
		})
	}
}

// Hidden files that change what Argo CD delivers are refused, as they may turn an Application to
// another cluster.
func TestPluginRefusesHiddenOverrides(t *testing.T) {
	const override = "plugin: {parameters: [{name: target, string: tenant-ada}]}\n"
	for _, path := range []string{".", "rendered/" + target} {
		for _, name := range []string{".argocd-source.yaml", ".argocd-source-clustermesh-west.yaml"} {
			t.Run(path+"/"+name, func(t *testing.T) {
				repository := cluster.Example(t, example)
				cluster.Write(t, override, repository, path, name)
				message := refuses(t, plugged(t, repository, path, text("target", target)), name)
				if strings.Contains(message, "parameters:") {
					t.Error("the file is quoted", message)
				}
			})
		}
	}
}

// A link or a path that leads out of the repository is refused, and nothing of the file is shown.
func TestPluginStaysInside(t *testing.T) {
	const secret = "verysecret: verysecret\n"
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	cluster.Write(t, secret, outside)
	for name, damage := range map[string]func(t *testing.T, repository string){
		"an absolute link for the mesh": func(t *testing.T, repository string) {
			link(t, outside, repository, "mesh.yaml")
		},
		"a relative link for the mesh": func(t *testing.T, repository string) {
			link(t, "../outside.yaml", repository, "mesh.yaml")
		},
		"a link to a system's file": func(t *testing.T, repository string) {
			link(t, "/etc/passwd", repository, "snapshots/tenant-ada.json")
		},
		"a link to the environment": func(t *testing.T, repository string) {
			link(t, "/proc/self/environ", repository, "snapshots/tenant-ada.json")
		},
		"a link for a folder": func(t *testing.T, repository string) {
			link(t, "/proc/self", repository, "snapshots")
		},
		"an absolute path in the config": func(t *testing.T, repository string) {
			cluster.Write(t, header+"snapshots: /proc/self\n", repository, "clustermesh.yaml")
		},
		"a path out of it in the config": func(t *testing.T, repository string) {
			cluster.Write(t, header+"snapshots: ../../..\n", repository, "clustermesh.yaml")
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := cluster.Example(t, example)
			cluster.Write(t, secret, filepath.Dir(repository), "outside.yaml")
			damage(t, repository)
			message := refuses(t, plugged(t, repository, ".", text("target", target)), "")
			for _, content := range []string{"verysecret", "root:", "PATH="} {
				if strings.Contains(message, content) {
					t.Errorf("%q is in the error: %s", content, message)
				}
			}
		})
	}
}

func link(t *testing.T, to string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, file); err != nil {
		t.Fatal(err)
	}
}

// Argo CD shows errors in its UI and stores them in the Application's status: they are short.
func TestPluginErrorsAreShort(t *testing.T) {
	repository := cluster.Example(t, example)
	var fields strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&fields, "  unknownField%d: true\n", i)
	}
	cluster.Replace(t, "spec:\n", "spec:\n"+fields.String(), repository, "mesh.yaml")
	message := refuses(t, plugged(t, repository, ".", text("target", target)), "unknown-field")
	// The plugin server adds the command and its exit code.
	if len(message) > 8192+500 {
		t.Errorf("%d bytes", len(message))
	}
}

// At the deadline the plugin server sends SIGKILL to the program and SIGTERM to its group, in any order.
// Nothing is delivered, and no process stays.
func TestPluginDeadline(t *testing.T) {
	repository := cluster.Example(t, example)
	crowd(t, filepath.Join(repository, "snapshots", "tenant-ada.json"), 20000)
	app := plugged(t, repository, ".", text("target", target))
	// A fraction of what reading so many nodes takes.
	app.deadline = 400 * time.Millisecond
	start := time.Now()
	// On a slow machine, the plugin server gives up before the program runs.
	message := refuses(t, app, "")
	if !strings.Contains(message, "failed signal: ") && !strings.Contains(message, "deadline exceeded") {
		t.Errorf("neither a signal nor the deadline: %s", message)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
	for range 50 {
		if len(running.programs(t)) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("still running:", running.programs(t))
}

// crowd repeats the first node of a snapshot.
func crowd(t *testing.T, file string, count int) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var snapshot map[string]any
	if err := json.Unmarshal(content, &snapshot); err != nil {
		t.Fatal(err)
	}
	first := snapshot["nodes"].([]any)[0].(map[string]any)
	var nodes []any
	for i := range count {
		node := map[string]any{}
		for field, value := range first {
			node[field] = value
		}
		node["name"] = fmt.Sprintf("node-%05d", i)
		nodes = append(nodes, node)
	}
	snapshot["nodes"] = nodes
	content, err = json.Marshal(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Write(t, string(content), file)
}

// The plugin announces its parameters, and the clusters that may be named.
func TestPluginAnnouncesParameters(t *testing.T) {
	repository := cluster.Example(t, example)
	startPlugin(t)
	for path, initial := range map[string]string{".": "", "rendered/" + target: target} {
		announced := announcement(t, repository, path)
		var names []string
		for _, it := range announced {
			names = append(names, it.Name)
		}
		if !slices.Equal(names, []string{"target", "allow-empty"}) {
			t.Fatal(names)
		}
		if it := announced[0]; it.String_ != initial || !strings.Contains(it.Tooltip, "tenant-dijkstra") {
			t.Errorf("%s: %+v", path, it)
		}
	}
}

// announcement asks the plugin as repo-server does for the details of an Application.
func announcement(t *testing.T, repository, path string) []*apiclient.ParameterAnnouncement {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	folder := filepath.Join(repository, path)
	environment := []string{"ARGOCD_APP_NAME=app", "ARGOCD_APP_SOURCE_PATH=" + path}
	connection, client, err := discovery.DetectConfigManagementPlugin(ctx, folder, repository, "clustermesh", environment, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer utilio.Close(connection)
	stream, err := client.GetParametersAnnouncement(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.SendRepoStream(ctx, folder, repository, stream, environment, nil); err != nil {
		t.Fatal(err)
	}
	response, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	return response.ParameterAnnouncements
}
