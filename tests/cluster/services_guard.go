package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// ServiceRefusals are the sentences of examples/services-guard.yaml.
var ServiceRefusals = []string{
	"an object of this name exists and was not created by clustermesh",
	"the Service of this EndpointSlice was not created by clustermesh",
}

// foreign is a Service that clustermesh did not render, with pods of its own.
func foreign(name, label string) []byte {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: shop, labels: {%s}},
		spec: {selector: {app: shop}, ports: [{name: http, port: 80, targetPort: 8080}, {name: admin, port: 9000}]}}`, name, label)
}

const team, source = "team: shop", "kilo-clustermesh.io/source-cluster: east"

// TakeOverService delivers `api` and `web` to a namespace that has a Service `api`: an engine takes it over. Then the item
// is removed from the mesh. `port` is the target port that the engine leaves.
func TakeOverService(t *testing.T, server *Server, repository string, port float64, deliver func() error) {
	t.Helper()
	ForeignService(t, server)
	if err := deliver(); err != nil {
		t.Fatal(err)
	}
	taken, err := server.Request(http.MethodGet, services+"/api", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := taken["spec"].(Object)
	if ports := spec["ports"].([]any); ports[0].(Object)["targetPort"] != port || len(ports) != 3 || spec["selector"] == nil {
		t.Error(spec)
	}
	if found := server.ServiceVersions(t); len(found) != 4 {
		t.Error(found)
	}
	SetServices(t, repository, "web")
	if err := deliver(); err != nil {
		t.Fatal(err)
	}
	if found := server.ServiceVersions(t); len(found) != 2 || !strings.HasPrefix(found[0], "Service web ") {
		t.Error(found)
	}
	SetServices(t, repository, "api", "web")
}

// StartGuardedService installs the guard in a namespace that only has a Service `api`, and returns its version.
func StartGuardedService(t *testing.T, server *Server, repository string) []string {
	t.Helper()
	ForeignService(t, server)
	for _, document := range Documents(t, Project(t, "examples", "services-guard.yaml")) {
		if err := server.Apply(document); err != nil {
			t.Fatal(err)
		}
	}
	slice := []byte(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [], metadata: {
		name: api-probe, namespace: shop, labels: {kubernetes.io/service-name: api, ` + source + `}}}`)
	for _, row := range []struct {
		document []byte
		refusal  string
	}{{foreign("api", source), ServiceRefusals[0]}, {slice, ServiceRefusals[1]}} {
		server.awaitRefusal(t, row.document, row.refusal)
	}
	// What is not of clustermesh may be changed.
	if err := server.Apply(foreign("api", "team: other")); err != nil {
		t.Fatal(err)
	}
	return server.ServiceVersions(t)
}

func (s *Server) awaitRefusal(t *testing.T, document []byte, refusal string) {
	t.Helper()
	for range 200 {
		if err := s.DryRun(document); err != nil && strings.Contains(err.Error(), refusal) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the guard has no effect:", refusal)
}

// ChangeGuardedServices removes the Service of the cluster itself, delivers, and delivers other cluster IPs: an engine may
// change the objects that it created.
func ChangeGuardedServices(t *testing.T, server *Server, repository string, deliver func() error) {
	t.Helper()
	server.DeleteServices(t)
	for _, names := range [][]string{{"api", "web"}, {"web", "api"}} {
		SetServices(t, repository, names...)
		if err := deliver(); err != nil {
			t.Fatal(err)
		}
		Same(t, server.Services(t), RenderedServices(t, repository, ServiceTarget))
	}
	if found := server.ServiceVersions(t); len(slices.Compact(found)) != 4 {
		t.Error(found)
	}
}

// RemoveServiceGuard removes what StartGuardedService installed, and waits until it has no effect.
func RemoveServiceGuard(t *testing.T, server *Server) {
	t.Helper()
	for _, document := range Documents(t, Project(t, "examples", "services-guard.yaml")) {
		head, err := parseHead(document)
		if err != nil {
			t.Fatal(err)
		}
		path, err := server.path(head)
		if err == nil {
			_, err = server.Request(http.MethodDelete, path, "", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ForeignService(t, server)
	for range 200 {
		if server.DryRun(foreign("api", source)) == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the guard is still there")
}

// ForeignService leaves a namespace with only a Service `api` that clustermesh did not render, and returns its version.
func ForeignService(t *testing.T, server *Server) []string {
	t.Helper()
	server.DeleteServices(t)
	if err := server.Apply(foreign("api", team)); err != nil {
		t.Fatal(err)
	}
	return server.ServiceVersions(t)
}
