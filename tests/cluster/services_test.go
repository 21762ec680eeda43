package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mirroring returns a mesh in which east gets these Services of west.
func mirroring(names ...string) string {
	text := strings.Replace(mesh, "wireguardCIDR: 10.4.0.0/16\n", "wireguardCIDR: 10.4.0.0/16\n      acceptedServices: [shop]\n", 1)
	text += "      serviceCIDR: 10.45.0.0/16\n  services:\n"
	for _, name := range names {
		text += "    - {name: " + name + ", namespace: shop, cluster: west, clusterIPs: [10.45.0.20], ports: [{port: 80}], in: [east]}\n"
	}
	return text
}

// The rights of `clustermesh rbac --services` suffice for `snapshot --services`, and only for the Services of the mesh.
func TestServices(t *testing.T) {
	server := Start(t)
	server.Namespace(t, "shop")
	for _, name := range []string{"api", "other"} {
		document := `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "` + name + `", "namespace": "shop",
			"labels": {"kilo-clustermesh.io/source-cluster": "real"}}, "spec": {"ports": [{"port": 80, "targetPort": "http"}],
			"selector": {"app": "` + name + `"}, "internalTrafficPolicy": "Local"}}`
		if err := server.Apply([]byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	Grant(t, server)
	folder := t.TempDir()
	Write(t, mirroring("api", "search"), folder, "mesh.yaml")
	logins := map[string]Login{"west": {Server: server, Context: "admin", Token: token(t, server)}}
	Write(t, Kubeconfig(t, logins), folder, "kubeconfig")
	live := func() Run {
		return Clustermesh(t, folder, "snapshot", "west", "--services", "--kubeconfig", "kubeconfig")
	}
	run := live()
	if run.Code != 2 || !strings.Contains(run.Stderr, "clustermesh rbac --services west") {
		t.Fatal("without the right:", run)
	}
	Grant(t, server, "--services", "west", "-C", folder)
	for range 100 {
		if run = live(); run.Code == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if run.Code != 0 || !strings.Contains(run.Stderr, "2 Services, 1 missing, written") {
		t.Fatal(run)
	}
	written, err := os.ReadFile(filepath.Join(folder, "snapshots", "west.services.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"hasSelector": true`, `"isMirror": true`, `"type": "ClusterIP"`, `"usesLocalEndpoints": true`, `"found": null`} {
		if !strings.Contains(string(written), part) {
			t.Errorf("no %s in %s", part, written)
		}
	}
	all, err := server.Request("GET", "/api/v1/services", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(encode(t, all)), folder, "dump.json")
	if run := Clustermesh(t, folder, "snapshot", "west", "--services", "--from", "dump.json", "--check"); run.Code != 0 {
		t.Error("the dump differs:", run)
	}
	Write(t, mirroring("api", "other"), folder, "mesh.yaml")
	if run := live(); run.Code != 2 || !strings.Contains(run.Stderr, "the Service `shop/other` is missing (403") {
		t.Error("a Service that the mesh did not name:", run)
	}
}
