package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// applyServices runs `kubectl apply` on the rendered Services of a target, with what docs/how-to/services.md writes.
func (s *Server) applyServices(t *testing.T, repository string, more ...string) Run {
	t.Helper()
	folder := filepath.Join(repository, "rendered-services", ServiceTarget)
	return s.kubectl(t, append([]string{"apply", "--server-side", "--validate=strict", "-k", folder}, more...)...)
}

// delivered applies the Services of a repository twice. The second time, nothing is written.
func (s *Server) delivered(t *testing.T, repository string, count int, more ...string) {
	t.Helper()
	rendered := RenderedServices(t, repository, ServiceTarget)
	if len(rendered) != count {
		t.Fatal(rendered)
	}
	files, err := filepath.Glob(filepath.Join(repository, "rendered-services", ServiceTarget, "*--*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, document := range Documents(t, file) {
			if err := s.DryRun(document); err != nil {
				t.Error(err)
			}
		}
	}
	var versions []string
	for range 2 {
		if run := s.applyServices(t, repository, more...); run.Code != 0 {
			t.Fatal(run)
		}
		Same(t, s.Services(t), rendered)
		if now := s.ServiceVersions(t); versions == nil {
			versions = now
		} else if !slices.Equal(now, versions) {
			t.Errorf("%v instead of %v", now, versions)
		}
	}
	if len(more) != 0 {
		// Only `apply` knows the label of an ApplySet.
		return
	}
	folder := filepath.Join(repository, "rendered-services", ServiceTarget)
	if run := s.kubectl(t, "diff", "--server-side", "-k", folder); run != (Run{}) {
		t.Error("kubectl diff:", run)
	}
}

// The API server stores Services as they are rendered. kubectl deletes those that are no longer rendered, but not the
// last ones.
func TestKubectlAppliesServices(t *testing.T) {
	server := Start(t)
	server.DeleteServices(t)
	repository := WithServices(t, "api", "web")
	set := []string{"--prune", "--applyset", "configmaps/clustermesh-services", "-n", ServiceNamespace}
	server.delivered(t, repository, 4, set...)
	SetServices(t, repository, "api")
	server.delivered(t, repository, 2, set...)
	SetServices(t, repository)
	if run := server.applyServices(t, repository, set...); run.Code == 0 || !strings.Contains(run.Stderr, "no objects passed to apply") {
		t.Error(run)
	}
	if err := server.Apply(foreign("other", team)); err != nil {
		t.Fatal(err)
	}
	run := server.kubectl(t, "-n", ServiceNamespace, "delete", "services,endpointslices", "-l", "kilo-clustermesh.io/source-cluster")
	if found := server.ServiceVersions(t); run.Code != 0 || len(found) != 1 {
		t.Error(run, found)
	}
}

// kubectl does not force conflicts, and takes over a Service without any. With the guard, it changes nothing of a Service of
// the cluster.
func TestKubectlKeepsForeignServices(t *testing.T) {
	server := StartOthers(t, 1)[0]
	server.DeleteServices(t)
	repository := WithServices(t, "api", "web")
	set := []string{"--prune", "--applyset", "configmaps/clustermesh-services", "-n", ServiceNamespace}
	file := filepath.Join(t.TempDir(), "service.yaml")
	Write(t, strings.Replace(string(foreign("api", team)), "name: http", "name: h2c", 1), file)
	if run := server.kubectl(t, "create", "-f", file); run.Code != 0 {
		t.Fatal(run)
	}
	if run := server.applyServices(t, repository, set...); run.Code == 0 || !strings.Contains(run.Stderr, "conflict") {
		t.Error(run)
	}
	server.DeleteServices(t)
	TakeOverService(t, server, repository, 8080, func() error {
		if run := server.applyServices(t, repository, set...); run.Code != 0 {
			return fmt.Errorf("%v", run)
		}
		return nil
	})
	before := StartGuardedService(t, server, repository)
	run := server.applyServices(t, repository)
	for _, refusal := range ServiceRefusals {
		if run.Code == 0 || !strings.Contains(run.Stderr, refusal) {
			t.Errorf("%v without %q", run, refusal)
		}
	}
	if now := server.ServiceVersions(t); !slices.Contains(now, before[0]) || len(now) != 3 {
		t.Errorf("%v after %v", now, before)
	}
	ChangeGuardedServices(t, server, repository, func() error {
		if run := server.applyServices(t, repository); run.Code != 0 {
			return fmt.Errorf("%v", run)
		}
		return nil
	})
}

// An API server of both families stores Services of each.
func TestServicesOfBothFamilies(t *testing.T) {
	server := StartDualStack(t)
	server.DeleteServices(t)
	server.delivered(t, WithServices(t, "api", "web"), 4)

	server.DeleteServices(t)
	repository := t.TempDir()
	var entries strings.Builder
	for place, name := range []string{"east", ServiceTarget} {
		fmt.Fprintf(&entries, "    - {name: %s, podCIDRs: [fd0%d::/48], serviceCIDR: fd1%d::/112, wireguardCIDR: fd2%d::/64, acceptedServices: [shop]}\n",
			name, place, place, place)
		node := Node{Cluster: place, Number: 1, Key: NewKey(rand.New(rand.NewPCG(6, uint64(place))))}
		annotations := node.Annotations()
		annotations["kilo.squat.ai/wireguard-ip"] = fmt.Sprintf("fd2%d::1/64", place)
		annotations["kilo.squat.ai/internal-ip"] = fmt.Sprintf("fd3%d::1/64", place)
		annotations["kilo.squat.ai/force-endpoint"] = fmt.Sprintf("[2001:db8::%d]:51820", place+1)
		Write(t, string(encode(t, Object{"kind": "NodeList", "items": []Object{{
			"metadata": Object{"name": node.Name(), "annotations": annotations},
			"spec":     Object{"podCIDRs": []string{fmt.Sprintf("fd0%d:0:0:1::/64", place)}},
		}}})), repository, name+".nodes")
	}
	item := strings.Replace(fmt.Sprintf(service, "api", 20), "10.43.0.20", "fd10::20", 1)
	mesh := "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {name: six}\nspec:\n  clusters:\n"
	Write(t, mesh+entries.String()+"  services:\n"+item, repository, "mesh.yaml")
	for _, name := range []string{"east", ServiceTarget} {
		if run := Clustermesh(t, repository, "snapshot", name, "--from", name+".nodes"); run.Code != 0 {
			t.Fatal(run)
		}
	}
	WriteServiceSnapshot(t, repository, "east", []string{`{"name": "api", "namespace": "shop", "found": {
		"clusterIPs": ["fd10::20"], "hasSelector": true, "isMirror": false, "type": "ClusterIP", "usesLocalEndpoints": false,
		"ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]}}`})
	WriteServiceSnapshot(t, repository, ServiceTarget, []string{`{"name": "api", "namespace": "shop", "found": null}`})
	if run := Clustermesh(t, repository, "render"); run.Code != 0 {
		t.Fatal(run)
	}
	server.delivered(t, repository, 2)
	stored, err := server.Request(http.MethodGet, services+"/api", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if address, _ := stored["spec"].(Object)["clusterIP"].(string); !strings.HasPrefix(address, "fd43::") {
		t.Error(stored)
	}
}
