package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// fortress is a repository in which `west` accepts Peers of `east` and `north`, with the guard of `west` in a server.
type fortress struct {
	guarded
	repository string
	peer       Object
}

const fortressMesh = `apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: {name: prod}
spec:
  clusters:
    - {name: east, podCIDRs: [10.40.0.0/16], wireguardCIDR: 10.100.0.0/16, additionalCIDRs: [172.30.0.0/24, 172.30.1.0/24],
       endpointDomains: [east.example.com]}
    - {name: north, podCIDRs: [10.41.0.0/16], wireguardCIDR: 10.101.0.0/16, additionalCIDRs: ['fd00:1::/48'], state: Joining}
    - {name: west, podCIDRs: [10.42.0.0/16], wireguardCIDR: 10.102.0.0/16, serviceCIDR: 10.97.0.0/16,
       additionalCIDRs: [172.31.0.0/16], localNetworks: [172.29.0.0/16],
       acceptedNetworks: [10.40.0.0/15, 10.100.0.0/15, 172.30.0.0/16, 10.8.0.0/24]}
  externalPeers:
    - {name: laptop, publicKey: vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=, ranges: [10.8.0.7/32], clusters: [west]}
    - {name: phone, publicKey: edCOOaLcM8iC3X8kOu7djeP3DTMwTqW2gsTc0cEQamc=, ranges: [10.8.0.8/32], clusters: [east]}
`

// newFortress installs a guard: `reader` delivers, `stranger` writes the Peer `laptop`.
func newFortress(t *testing.T) fortress {
	t.Helper()
	it := fortress{guarded: newGuarded(t, StartCollecting(t)), repository: t.TempDir()}
	Write(t, fortressMesh, it.repository, "mesh.yaml")
	random := rand.New(rand.NewPCG(1, 2))
	for place, cluster := range []string{"east", "north", "west"} {
		node := Node{Cluster: place, Number: 1, Key: NewKey(random)}.object()
		Write(t, string(encode(t, Object{"kind": "NodeList", "items": []any{node}})), it.repository, "nodes.json")
		if run := Clustermesh(t, it.repository, "snapshot", cluster, "--from", "nodes.json"); run.Code != 0 {
			t.Fatal(run)
		}
	}
	if run := Clustermesh(t, it.repository, "render"); run.Code != 0 {
		t.Fatal(run)
	}
	it.peer = Rendered(t, it.repository, "west")[0]
	it.peer["apiVersion"], it.peer["kind"] = "kilo.squat.ai/v1alpha1", "Peer"
	it.install(t, it.guard(t))
	return it
}

// The options of the guard.
var fortressOptions = []string{
	"--writers", "reader", "--allow-peer", "laptop=10.9.0.0/24,10.9.0.7/32", "--allow-peer-writers", "stranger",
}

func (it fortress) guard(t *testing.T, options ...string) string {
	return guardOf(t, it.repository, "west", append(options, fortressOptions...)...)
}

// state returns what `status` reports about the guard.
func (it fortress) state(t *testing.T) any {
	t.Helper()
	logins := map[string]Login{"west": {Server: it.server, Context: "admin"}}
	Write(t, Kubeconfig(t, logins), it.repository, "kubeconfig")
	run := Clustermesh(t, it.repository, "status", "west", "--output", "json", "--kubeconfig", "kubeconfig")
	if run.Code == 2 {
		t.Fatal(run)
	}
	west := decode(t, run.Stdout)["clusters"].([]any)[0].(Object)
	return west["guard"].(Object)["state"]
}

// changed returns the rendered Peer with another value at a path; nil removes it.
func (it fortress) changed(t *testing.T, pairs ...any) Object {
	t.Helper()
	peer := decode(t, string(encode(t, it.peer)))
	for i := 0; i < len(pairs); i += 2 {
		steps := strings.Split(pairs[i].(string), " ")
		parent := peer
		for _, step := range steps[:len(steps)-1] {
			if parent[step] == nil {
				parent[step] = Object{}
			}
			parent = parent[step].(Object)
		}
		last := steps[len(steps)-1]
		if pairs[i+1] == nil {
			delete(parent, last)
		} else {
			parent[last] = pairs[i+1]
		}
	}
	return peer
}

func ips(texts ...string) []any {
	var all []any
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// Every attack of docs/concepts/trust.md that a guard stops, with the sentence of its refusal.
func TestGuardRefuses(t *testing.T) {
	it := newFortress(t)
	const mesh, source = "metadata labels kilo-clustermesh.io/mesh", "metadata labels kilo-clustermesh.io/source-cluster"
	const name, allowed = "metadata name", "spec allowedIPs"
	const endpoint, ip, dns = "spec endpoint", "spec endpoint dnsOrIP ip", "spec endpoint dnsOrIP dns"
	const port, keepalive, key = "spec endpoint port", "spec persistentKeepalive", "spec publicKey"
	var many []any
	for number := range 1501 {
		many = append(many, fmt.Sprintf("10.40.%d.%d/32", number/250, number%250))
	}
	laptop := []any{"metadata labels", nil, name, "laptop", endpoint, nil, allowed, ips("10.9.0.7/32")}
	with := func(pairs []any, more ...any) []any { return append(append([]any{}, pairs...), more...) }
	const external = "metadata labels kilo-clustermesh.io/external-peer"
	host := []any{source, nil, external, "laptop", name, "prod--external.laptop", allowed, ips("10.8.0.7/32"),
		ip, "192.0.2.1", port, 9, keepalive, 25}
	for _, attack := range []struct {
		user, sentence string
		change         []any
	}{
		// What is right.
		{"reader", "", nil},
		{"reader", "", []any{allowed, ips("10.40.7.0/24", "172.30.0.0/23")}},
		{"reader", "", []any{ip, nil, dns, "wg.east.example.com"}},
		{"reader", "", []any{ip, nil, dns, "east.example.com"}},
		{"reader", "", []any{ip, "192.0.2.1", port, 9, keepalive, 25}},
		{"reader", "", []any{ip, "2001:db8::7"}},
		{"reader", "", []any{ip, "172.31.0.7"}},
		{"reader", "", []any{ip, "172.29.0.7"}},
		{"reader", "", []any{source, "north", name, "prod--north--x", allowed, ips("10.41.0.0/16")}},
		{"reader", "", []any{allowed, many[:1500]}},
		{"stranger", "", laptop},
		// Who writes.
		{"admin", "this user may not create, change or delete Peers with the labels", nil},
		{"stranger", "this user may not create, change or delete Peers with the labels", nil},
		{"stranger", "this user may not create, change or delete Peers with the labels", []any{mesh, nil, source, nil}},
		{"admin", "this user may not create, change or delete this Peer", laptop},
		{"reader", "this user may not create, change or delete this Peer", laptop},
		{"reader", "this user may not create, change or delete this Peer", []any{name, "laptop"}},
		{"stranger", "no labels of clustermesh and is not one that the owner", with(laptop, name, "phone")},
		{"reader", "no labels of clustermesh and is not one that the owner", []any{"metadata labels", nil}},
		// Labels and names.
		{"reader", "the labels name no mesh and source", []any{source, "south"}},
		{"reader", "the labels name no mesh and source", []any{source, "west"}},
		{"reader", "the labels name no mesh and source", []any{source, nil}},
		{"reader", "the labels name no mesh and source", []any{mesh, "dev"}},
		{"reader", "does not fit its labels", []any{source, "north"}},
		{"reader", "does not fit its labels", []any{name, "prod--eastern--x"}},
		// Ranges.
		{"reader", "more than 1500 allowed IPs", []any{allowed, many}},
		{"reader", "has no allowed IP", []any{allowed, []any{}}},
		{"reader", "IPv4-mapped", []any{allowed, ips("::ffff:10.40.0.0/112")}},
		{"reader", "IPv4-mapped", []any{allowed, ips("0:0:0:0:0:FFFF:a28:0/112")}},
		{"reader", "is not a range", []any{allowed, ips("10.40.0.0")}},
		{"reader", "is not a range", []any{allowed, ips("10.40.0.0/016")}},
		{"reader", "default route", []any{allowed, ips("0.0.0.0/0")}},
		{"reader", "default route", []any{allowed, ips("::/0")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("10.42.0.0/24")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("10.97.0.1/32")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("10.102.0.0/16")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("172.31.4.0/24")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("172.29.0.0/24")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("172.16.0.0/12")}},
		{"reader", "address family", []any{allowed, ips("fd00:1::/48")}},
		{"reader", "outside of the ranges", []any{allowed, ips("10.41.0.0/24")}},
		{"reader", "outside of the ranges", []any{allowed, ips("10.40.0.0/15")}},
		{"reader", "outside of the ranges", []any{allowed, ips("198.51.100.0/24")}},
		{"reader", "overlaps a range of this cluster", []any{allowed, ips("0.0.0.0/1")}},
		{"stranger", "outside of the ranges", with(laptop, allowed, ips("10.40.0.0/24"))},
		{"stranger", "overlaps a range of this cluster", with(laptop, allowed, ips("10.42.0.7/32"))},
		{"reader", "host bits", []any{allowed, ips("10.40.0.1/24")}},
		{"reader", "an allowed IP twice", []any{allowed, ips("10.40.0.0/24", "10.40.1.0/24", "10.40.0.0/24")}},
		// Keys, endpoints, keepalives.
		{"reader", "canonical base64", []any{key, "AAAA"}},
		{"reader", "canonical base64", []any{key, "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L5="}},
		{"reader", "canonical base64", []any{key, "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=\n"}},
		{"reader", "has no endpoint", []any{endpoint, nil}},
		{"reader", "no valid address", []any{ip, nil}},
		{"reader", "no valid address", []any{ip, "::ffff:198.51.100.7"}},
		{"reader", "no valid address", []any{ip, "fe80::1%eth0"}},
		{"reader", "a DNS name and an address", []any{dns, "wg.east.example.com"}},
		{"reader", "not under a domain", []any{ip, nil, dns, "wg.example.com"}},
		{"reader", "not under a domain", []any{ip, nil, dns, "notEast.example.com"}},
		{"reader", "not under a domain", []any{ip, nil, dns, "noteast.example.com"}},
		{"reader", "not under a domain", []any{ip, nil, dns, "198.51.100.7"}},
		{"stranger", "not under a domain", with(laptop, dns, "wg.east.example.com", port, 51820)},
		{"reader", "loopback, link-local", []any{ip, "127.0.0.1"}},
		{"reader", "loopback, link-local", []any{ip, "169.254.169.254"}},
		{"reader", "loopback, link-local", []any{ip, "fe80::1"}},
		{"reader", "loopback, link-local", []any{ip, "224.0.0.251"}},
		{"reader", "loopback, link-local", []any{ip, "ff0e::1"}},
		{"reader", "loopback, link-local", []any{ip, "255.255.255.255"}},
		{"reader", "loopback, link-local", []any{ip, "0.0.0.0"}},
		{"reader", "loopback, link-local", []any{ip, "0.1.2.3"}},
		{"reader", "inside an allowed IP of the same Peer", []any{allowed, ips("172.30.0.0/24"), ip, "172.30.0.7"}},
		{"reader", "inside a pod, service or WireGuard range", []any{ip, "10.42.0.7"}},
		{"reader", "inside a pod, service or WireGuard range", []any{ip, "10.97.0.1"}},
		{"reader", "inside a pod, service or WireGuard range", []any{ip, "10.102.0.1"}},
		{"reader", "needs a keepalive", []any{ip, "192.0.2.1", port, 9}},
		{"reader", "needs a keepalive", []any{ip, "192.0.2.1", port, 9, keepalive, 0}},
		{"reader", "from 1 to 65535", []any{port, 0}},
		{"reader", "from 1 to 65535", []any{port, -1}},
		{"reader", "from 1 to 65535", []any{port, 65536}},
		{"reader", "from 0 to 65535", []any{keepalive, -1}},
		{"reader", "from 0 to 65535", []any{keepalive, 65536}},
		// The same with the label of an external peer.
		{"reader", "", host},
		{"reader", "", with(host, ip, "198.51.100.7", port, 51820, keepalive, nil)},
		{"stranger", "this user may not create, change or delete Peers with the labels", host},
		{"admin", "this user may not create, change or delete Peers with the labels", with(host, mesh, nil)},
		{"reader", "the labels name no mesh and source", with(host, external, "phone", name, "prod--external.phone")},
		{"reader", "the labels name no mesh and source", with(host, external, "east")},
		{"reader", "the labels name no mesh and source", with(host, external, "")},
		{"reader", "the labels name no mesh and source", with(host, mesh, "dev")},
		{"reader", "the labels name no mesh and source", with(host, external, nil, source, "external.laptop")},
		{"reader", "outside of the ranges", with(host, source, "east", allowed, ips("10.40.0.0/24"))},
		{"reader", "does not fit its labels", with(host, name, "prod--external.laptop--x")},
		{"reader", "does not fit its labels", with(host, name, "prod--east--x")},
		{"reader", "does not fit its labels", with(host, external, nil, source, "east", allowed, ips("10.40.0.0/24"))},
		{"reader", "overlaps a range of this cluster", with(host, allowed, ips("10.42.0.7/32"))},
		{"reader", "outside of the ranges", with(host, allowed, ips("10.40.0.7/32"))},
		{"reader", "outside of the ranges", with(host, allowed, ips("10.8.0.0/24"))},
		{"reader", "outside of the ranges", with(host, allowed, ips("10.8.0.7/32", "10.8.0.8/32"))},
		{"reader", "default route", with(host, allowed, ips("0.0.0.0/0"))},
		{"reader", "has no endpoint", with(host, endpoint, nil)},
		{"reader", "needs a keepalive", with(host, keepalive, nil)},
		{"reader", "not under a domain", with(host, ip, nil, dns, "laptop.example.com")},
		{"reader", "inside a pod, service or WireGuard range", with(host, ip, "10.42.0.7")},
		{"reader", "inside an allowed IP of the same Peer", with(host, ip, "10.8.0.7")},
		{"reader", "canonical base64", with(host, key, "AAAA")},
	} {
		got := it.create(t, attack.user, it.changed(t, attack.change...))
		switch {
		case attack.sentence == "" && got.status != http.StatusCreated:
			t.Error("refused:", attack.change, got)
		case attack.sentence != "" && got.status != http.StatusUnprocessableEntity,
			!strings.Contains(got.sentence(), attack.sentence):
			t.Errorf("%s, %v: %v instead of %q", attack.user, attack.change, got, attack.sentence)
		}
	}
}

// An update passes if it changes nothing that a guard judges, and nobody gets around it by stripping labels.
func TestGuardOfObjects(t *testing.T) {
	it := newFortress(t)
	name := it.peer["metadata"].(Object)["name"].(string)
	path := peers + "/" + name
	merge := func(user, path, patch string) reaction {
		return it.ask(t, user, "PATCH", path, "application/merge-patch+json", []byte(patch))
	}
	must := func(what, sentence string, got reaction) {
		t.Helper()
		if (sentence == "") != (got.status < 300) || !strings.Contains(got.sentence(), sentence) {
			t.Errorf("%s: %v", what, got)
		}
	}
	const labels, lists = "Peers with the labels of clustermesh", "this Peer"
	create := func(user string, peer Object) reaction {
		return it.ask(t, user, "POST", peers, "application/json", encode(t, peer))
	}
	must("create", "", create("reader", it.peer))
	must("annotate", "", merge("stranger", path, `{"metadata": {"annotations": {"touched": "1"}}}`))
	must("change", labels, merge("stranger", path, `{"spec": {"publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4="}}`))
	must("add a finalizer", labels, merge("stranger", path, `{"metadata": {"finalizers": ["example.com/held"]}}`))
	must("add an owner", labels, merge("stranger", path, `{"metadata": {"ownerReferences": [
		{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "00000000-0000-0000-0000-000000000000"}]}}`))
	stripped := `{"metadata": {"labels": null}}`
	must("strip the labels", labels, merge("stranger", path, stripped))
	must("strip the labels as a writer", "no labels of clustermesh", merge("reader", path, stripped))
	must("delete", labels, it.ask(t, "stranger", "DELETE", path, "", nil))
	must("delete all", labels, it.ask(t, "stranger", "DELETE", peers, "", nil))
	must("delete as an administrator", labels, it.ask(t, "admin", "DELETE", path, "", nil))
	must("finalizer of a writer", "", merge("reader", path, `{"metadata": {"finalizers": ["example.com/held"]}}`))
	must("remove a finalizer", "", merge("stranger", path, `{"metadata": {"finalizers": null}}`))

	laptop := it.changed(t, "metadata labels", nil, "metadata name", "laptop", "spec endpoint", nil, "spec allowedIPs", ips("10.9.0.7/32"))
	must("create laptop", "", create("stranger", laptop))
	other := `{"spec": {"publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4="}}`
	must("change laptop", lists, merge("reader", peers+"/laptop", other))
	must("delete laptop", lists, it.ask(t, "reader", "DELETE", peers+"/laptop", "", nil))
	must("change laptop as its writer", "", merge("stranger", peers+"/laptop", other))

	// The garbage collector removes the finalizer of a foreground deletion, as Argo CD asks for.
	must("delete in the foreground", "", it.ask(t, "reader", "DELETE", path, "application/json",
		[]byte(`{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}`)))
	for try := 0; len(it.server.Peers(t)) != 1; try++ {
		if try == 300 {
			t.Fatal("the garbage collector cannot remove the Peer")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// First the guard only warns, with every rule that is broken. `status` and break-glass work as the page says.
func TestGuardRollsOut(t *testing.T) {
	it := newFortress(t)
	wrong := it.changed(t, "spec allowedIPs", ips("10.42.0.1/24"), "spec endpoint port", 0)
	it.install(t, it.guard(t, "--warn"))
	for try := 0; ; try++ {
		got := it.create(t, "reader", wrong)
		want := []string{
			"an allowed IP has host bits",
			"an allowed IP is outside of the ranges that this cluster accepts of this source",
			"an allowed IP overlaps a range of this cluster itself",
			"the port of the endpoint is not from 1 to 65535",
		}
		if got.status == http.StatusCreated && strings.Join(got.warnings, "\n") == strings.Join(want, "\n") {
			break
		}
		if try == 100 {
			t.Fatal("with --warn:", got)
		}
		time.Sleep(100 * time.Millisecond)
	}
	both := strings.ReplaceAll(it.guard(t), `["Deny"]`, `["Deny", "Warn"]`)
	documents := separator.Split(both, -1)
	if err := it.server.Apply([]byte(documents[1])); err == nil {
		t.Error("the API server accepts a binding that denies and warns")
	}
	if got := it.state(t); got != "warning" {
		t.Error("status with --warn:", got)
	}
	it.install(t, it.guard(t))
	if got := it.state(t); got != "current" {
		t.Error("status:", got)
	}
	it.uninstall(t, it.peer)
	if got := it.state(t); got != "outdated" {
		t.Error("status without the binding:", got)
	}
}
