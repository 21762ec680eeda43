package cluster

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ServiceTarget is the cluster that gets Services in the repository of WithServices, and ServiceNamespace its namespace
// for them.
const ServiceTarget, ServiceNamespace = "west", "shop"

// service is an item of `services`, with two ports. Its cluster IP ends in a number.
const service = `    - name: %s
      namespace: shop
      cluster: east
      clusterIPs: [10.43.0.%d]
      ports:
        - { name: http, port: 80, appProtocol: http }
        - { name: dns, port: 53, protocol: UDP }
      in: [west]
`

// BesideServices are objects that nobody may deliver together with Services, each with what it is.
var BesideServices = map[string]string{
	"a Secret":          "{apiVersion: v1, kind: Secret, metadata: {name: planted, namespace: shop}}",
	"a Deployment":      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: planted, namespace: shop}}",
	"another namespace": "{apiVersion: v1, kind: Service, metadata: {name: planted, namespace: default}}",
	"a Peer":            "{apiVersion: kilo.squat.ai/v1alpha1, kind: Peer, metadata: {name: planted}}",
}

// WithServices returns the quickstart in which `west` gets the Services of `east` with these names.
func WithServices(t testing.TB, names ...string) string {
	t.Helper()
	repository := Example(t, "quickstart")
	mesh := filepath.Join(repository, "mesh.yaml")
	Replace(t, "    - name: west #", "    - acceptedServices: [shop]\n      name: west #", mesh)
	SetServices(t, repository, names...)
	return repository
}

// SetServices replaces the Services of a repository and renders it.
func SetServices(t testing.TB, repository string, names ...string) {
	t.Helper()
	mesh := filepath.Join(repository, "mesh.yaml")
	text, err := os.ReadFile(mesh)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "  services:\n")
	var services, found, absent []string
	for number, name := range names {
		services = append(services, fmt.Sprintf(service, name, number+20))
		found = append(found, fmt.Sprintf(`{"name": %q, "namespace": "shop", "found": {"clusterIPs": ["10.43.0.%d"],
			"hasSelector": true, "isMirror": false, "type": "ClusterIP", "usesLocalEndpoints": false, "ports": [
				{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]}}`, name, number+20))
		absent = append(absent, fmt.Sprintf(`{"name": %q, "namespace": "shop", "found": null}`, name))
	}
	if len(services) != 0 {
		before += "  services:\n" + strings.Join(services, "")
	}
	Write(t, before, mesh)
	WriteServiceSnapshot(t, repository, "east", found)
	WriteServiceSnapshot(t, repository, "west", absent)
	if run := Clustermesh(t, repository, "render"); run.Code != 0 {
		t.Fatal(run)
	}
}

// LateServiceNamespace is a namespace that does not exist.
const LateServiceNamespace = "late"

// LateNamespace changes the repository of WithServices with `api` and `web`: `web` has a namespace that does not exist.
func LateNamespace(t testing.TB, repository string) {
	t.Helper()
	mesh := filepath.Join(repository, "mesh.yaml")
	Replace(t, "    - name: web\n", "    - as: { namespace: late }\n      name: web\n", mesh)
	Replace(t, "acceptedServices: [shop]", "acceptedServices: [shop, late]", mesh)
	WriteServiceSnapshot(t, repository, ServiceTarget, []string{
		`{"name": "api", "namespace": "shop", "found": null}`, `{"name": "web", "namespace": "late", "found": null}`,
	})
	if run := Clustermesh(t, repository, "render"); run.Code != 0 {
		t.Fatal(run)
	}
}

// WriteServiceSnapshot writes what a cluster has under the names of Services.
func WriteServiceSnapshot(t testing.TB, repository, cluster string, services []string) {
	t.Helper()
	Write(t, fmt.Sprintf(`{"apiVersion": "kilo-clustermesh.io/v1", "kind": "ServiceSnapshot", "cluster": %q, "services": [%s]}`,
		cluster, strings.Join(services, ", ")), repository, "snapshots", cluster+".services.json")
}

// RenderedServices reads the Services and EndpointSlices that a repository holds for a target.
func RenderedServices(t testing.TB, repository, target string) []Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "rendered-services", target, "*--*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found []Object
	for _, file := range files {
		found = append(found, Objects(t, file)...)
	}
	return Bare(found)
}

// The fields that the API server fills in.
var defaulted = map[string]any{
	"clusterIP": nil, "clusterIPs": nil, "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
}

const services, endpoints = "/api/v1/namespaces/shop/services", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"

// Services returns the Services and EndpointSlices in the namespace, without the metadata that an API server and the
// delivering tools add, and without the defaults of the API server. A Service without a cluster IP is a failure.
func (s *Server) Services(t testing.TB) []Object {
	t.Helper()
	var found []Object
	for _, it := range s.services(t) {
		if spec, is := it["spec"].(Object); is {
			if address, _ := spec["clusterIP"].(string); address == "" || address == "None" {
				t.Error("no cluster IP:", it)
			}
			for field, value := range defaulted {
				if value != nil && spec[field] != value {
					t.Errorf("%s is %v", field, spec[field])
				}
				delete(spec, field)
			}
			for _, port := range spec["ports"].([]any) {
				if port := port.(Object); port["targetPort"] != port["port"] {
					t.Error("another target port:", port)
				} else {
					delete(port, "targetPort")
				}
			}
		}
		delete(it, "status")
		found = append(found, it)
	}
	return Bare(found)
}

// ServiceVersions returns the resource version of each Service and EndpointSlice.
func (s *Server) ServiceVersions(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, it := range s.services(t) {
		metadata := it["metadata"].(Object)
		found = append(found, fmt.Sprint(it["kind"], " ", metadata["name"], " ", metadata["resourceVersion"]))
	}
	return found
}

func (s *Server) services(t testing.TB) []Object {
	t.Helper()
	var found []Object
	for _, list := range []struct{ kind, path string }{{"Service", services}, {"EndpointSlice", endpoints}} {
		answer, err := s.Request(http.MethodGet, list.path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		items, _ := answer["items"].([]any)
		for _, it := range items {
			it := it.(Object)
			it["kind"], it["apiVersion"] = list.kind, answer["apiVersion"]
			found = append(found, it)
		}
	}
	return found
}

// DeleteServices deletes all Services and EndpointSlices of the namespace, which it creates.
func (s *Server) DeleteServices(t testing.TB) {
	t.Helper()
	s.Namespace(t, ServiceNamespace)
	for _, it := range s.services(t) {
		path := services
		if it["kind"] == "EndpointSlice" {
			path = endpoints
		}
		if _, err := s.Request(http.MethodDelete, path+"/"+name(it), "", nil); err != nil {
			t.Fatal(err)
		}
	}
}
