package argocd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/settings"
	corev1 "k8s.io/api/core/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"clustermesh.test/cluster"
)

// services is the Application of argocd/services-application.yaml, with its project.
func services(t *testing.T, server *cluster.Server, repository string) *application {
	t.Helper()
	app := &application{
		Application: cluster.Read[v1alpha1.Application](t, cluster.Project(t, "argocd", "services-application.yaml")),
		project:     cluster.Read[v1alpha1.AppProject](t, cluster.Project(t, "argocd", "services-project.yaml")),
		repository:  repository,
		deadline:    time.Minute,
	}
	if app.Spec.Project != app.project.Name || !app.project.IsSourcePermitted(app.Spec.GetSource()) {
		t.Errorf("not permitted: %+v", app.Spec)
	}
	server.DeleteServices(t)
	return app
}

// Argo CD stores the Services as they are rendered. A second sync writes nothing, and they are reported as Synced.
// Services that are no longer rendered are deleted, but not the last one.
func TestServices(t *testing.T) {
	server := cluster.Start(t)
	repository := cluster.WithServices(t, "api", "web")
	app := services(t, server, repository)
	if names := app.outOfSync(t, server); len(names) != 4 {
		t.Error(names)
	}
	var versions []string
	for range 2 {
		if done, err := app.sync(t, server); err != nil || len(done.pruned) != 0 {
			t.Fatalf("%+v %v", done, err)
		}
		cluster.Same(t, server.Services(t), cluster.RenderedServices(t, repository, cluster.ServiceTarget))
		if now := server.ServiceVersions(t); versions == nil {
			versions = now
		} else if !slices.Equal(now, versions) {
			t.Errorf("%v instead of %v", now, versions)
		}
		if names := app.outOfSync(t, server); names != nil {
			t.Error("OutOfSync:", names)
		}
	}
	cluster.SetServices(t, repository, "api")
	done, err := app.autoSync(t, server)
	if err != nil || !slices.Equal(done.pruned, []string{"web", "web-clustermesh"}) {
		t.Errorf("%+v %v", done, err)
	}
	cluster.SetServices(t, repository)
	if done, err := app.autoSync(t, server); err != nil || !done.refusedIfAutomated {
		t.Errorf("%+v %v", done, err)
	}
	if found := len(server.Services(t)); found != 2 {
		t.Errorf("%d objects", found)
	}
	done, err = app.sync(t, server)
	if err != nil || !slices.Equal(done.pruned, []string{"api", "api-clustermesh"}) {
		t.Errorf("%+v %v", done, err)
	}
	if found := len(server.Services(t)); found != 0 {
		t.Errorf("%d objects", found)
	}
}

// A missing namespace does not hold back the Peers.
func TestServicesWithoutNamespace(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	repository := cluster.WithServices(t, "api", "web")
	app := services(t, server, repository)
	cluster.LateNamespace(t, repository)
	app.project.Spec.Destinations = append(app.project.Spec.Destinations,
		v1alpha1.ApplicationDestination{Name: "west", Namespace: cluster.LateServiceNamespace})
	done, err := app.sync(t, server)
	if err == nil || !strings.Contains(err.Error(), `namespaces "late" not found`) {
		t.Errorf("%+v %v", done, err)
	}
	// It applies the others.
	if !slices.Equal(done.synced, []string{"api", "api-clustermesh"}) {
		t.Errorf("%+v", done)
	}
	if _, err := shipped(t, repository, cluster.ServiceTarget).sync(t, server); err != nil {
		t.Error(err)
	}
	cluster.Same(t, server.Peers(t), cluster.Rendered(t, repository, cluster.ServiceTarget))
}

// Argo CD takes over a Service of the same name, which then has both endpoints and is deleted with the item. With the
// guard, it changes neither, and delivers the others.
func TestForeignService(t *testing.T) {
	server := cluster.StartOthers(t, 1)[0]
	repository := cluster.WithServices(t, "api", "web")
	app := services(t, server, repository)
	deliver := func() error {
		_, err := app.sync(t, server)
		return err
	}
	cluster.TakeOverService(t, server, repository, 8080, deliver)
	before := cluster.StartGuardedService(t, server, repository)
	done, err := app.sync(t, server)
	if !slices.Equal(done.synced, []string{"web", "web-clustermesh"}) || done.pruned != nil {
		t.Errorf("%+v %v", done, err)
	}
	for _, refusal := range cluster.ServiceRefusals {
		if err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%v without %q", err, refusal)
		}
	}
	if now := server.ServiceVersions(t); !slices.Contains(now, before[0]) || len(now) != 3 {
		t.Errorf("%v after %v", now, before)
	}
	cluster.ChangeGuardedServices(t, server, repository, deliver)
}

// The project allows Services and EndpointSlices in the listed namespaces, and nothing else.
func TestServicesProject(t *testing.T) {
	server := cluster.Start(t)
	for name, planted := range cluster.BesideServices {
		t.Run(name, func(t *testing.T) {
			repository := cluster.WithServices(t, "api")
			app := services(t, server, repository)
			cluster.Write(t, planted, repository, "rendered-services/west/planted--planted.yaml")
			done, err := app.sync(t, server)
			if err == nil || !strings.Contains(err.Error(), "not permitted") || done.synced != nil {
				t.Errorf("%+v %v", done, err)
			}
			if found := len(server.Services(t)); found != 0 {
				t.Errorf("%d objects", found)
			}
		})
	}
}

// The default `argocd-cm` leaves out EndpointSlices, so that Argo CD applies a Service without its endpoint and reports no
// error. With the change in docs/how-to/services.md, both are applied, and everything else stays excluded.
func TestServicesNeedEndpointSlices(t *testing.T) {
	defaults := configMap(t)
	const key, host = "resource.exclusions", "https://west.example.com:6443"
	shipped := resourcesFilter(t, defaults)
	changed := defaults.DeepCopy()
	changed.Data[key] = edited(t, defaults.Data[key])
	included := resourcesFilter(t, changed)
	excluded := 0
	for _, it := range shipped.ResourceExclusions {
		for _, group := range it.APIGroups {
			for _, kind := range it.Kinds {
				isEndpoint := group == "discovery.k8s.io" || group == "" && kind == "EndpointSlice"
				if !shipped.IsExcludedResource(group, kind, host) || included.IsExcludedResource(group, kind, host) == isEndpoint {
					t.Errorf("%s/%s", group, kind)
				}
				excluded++
			}
		}
	}
	if excluded < 20 || shipped.IsExcludedResource("", "Service", host) {
		t.Errorf("%+v", shipped)
	}
	changed.Data[key] += cluster.Blocks(t, "With Argo CD", "docs", "how-to", "services.md")[key]
	narrowed := resourcesFilter(t, changed)
	for host, want := range map[string]bool{host: true, "https://east.example.com:6443": false} {
		if narrowed.IsExcludedResource("discovery.k8s.io", "EndpointSlice", host) != want {
			t.Errorf("%s: not %v", host, want)
		}
	}

	server := cluster.Start(t)
	repository := cluster.WithServices(t, "api")
	app := services(t, server, repository)
	for _, row := range []struct {
		filter *settings.ResourcesFilter
		synced []string
	}{{shipped, []string{"api"}}, {included, []string{"api", "api-clustermesh"}}} {
		app.filter = row.filter
		if done, err := app.sync(t, server); err != nil || !slices.Equal(done.synced, row.synced) {
			t.Errorf("%+v %v", done, err)
		}
		if found := server.ServiceVersions(t); len(found) != len(row.synced) {
			t.Error(found)
		}
	}
}

// configMap is the `argocd-cm` that Argo CD is installed with.
func configMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return cluster.Read[corev1.ConfigMap](t, filepath.Join(moduleFolder(t), "manifests", "base", "config", "argocd-cm.yaml"))
}

// resourcesFilter is what Argo CD reads from its settings.
func resourcesFilter(t *testing.T, config *corev1.ConfigMap) *settings.ResourcesFilter {
	t.Helper()
	config = config.DeepCopy()
	config.Namespace = "argocd"
	filter, err := settings.NewSettingsManager(t.Context(), kubefake.NewClientset(config), config.Namespace).GetResourcesFilter()
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// edited applies the diff in the page.
func edited(t *testing.T, exclusions string) string {
	t.Helper()
	page, err := os.ReadFile(cluster.Project(t, "docs", "how-to", "services.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, diff, _ := strings.Cut(string(page), "```diff\n")
	diff, _, _ = strings.Cut(diff, "   ```")
	var before, after strings.Builder
	for line := range strings.Lines(diff) {
		sign, text := line[3], line[4:]
		if sign != '+' {
			before.WriteString(text)
		}
		if sign != '-' {
			after.WriteString(text)
		}
	}
	if before.Len() == after.Len() || strings.Count(exclusions, before.String()) != 1 {
		t.Fatalf("%q is not once in\n%s", before.String(), exclusions)
	}
	return strings.Replace(exclusions, before.String(), after.String(), 1)
}
