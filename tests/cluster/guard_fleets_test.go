package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Peer of a fleet, and the rules that it breaks according to the program.
type attack struct {
	Object   Object
	Refusals []string
}

// judged is a guard with Peers that it judges.
type judged struct {
	name    string
	Guard   string
	Peers   []Object
	Attacks []attack
}

// fleets reads what `properties::admission::what_is_changed_is_refused` wrote.
func fleets(t *testing.T) []judged {
	t.Helper()
	folder := os.Getenv("GUARD_FLEETS")
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || folder == "" || len(files) == 0 {
		t.Fatal("no fleets in GUARD_FLEETS: run .ci/cluster", err)
	}
	var found []judged
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		it := judged{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(text, &it); err != nil {
			t.Fatal(file, err)
		}
		found = append(found, it)
	}
	return found
}

// The guards of all examples and of 200 random fleets accept every rendered Peer, and of changed ones they refuse what the
// program says, for the same reasons.
func TestGuardsJudgeAsTheProgram(t *testing.T) {
	server := StartOthers(t, 1)[0]
	it := newGuarded(t, server)
	all := fleets(t)
	for _, tree := range Trees(t) {
		guard := guardOf(t, tree.Repository, tree.Target)
		name := strings.ReplaceAll(tree.Name(), "/", "-")
		all = append(all, judged{name: name, Guard: guard, Peers: Rendered(t, tree.Repository, tree.Target)})
	}
	// Few at a time: every request looks at all policies.
	for batch := range slices.Chunk(all, 100) {
		it.judge(t, batch)
	}
}

func (it guarded) judge(t *testing.T, batch []judged) {
	t.Helper()
	for _, guard := range batch {
		for _, document := range apart(t, guard.Guard, guard.name) {
			if err := it.server.Apply(document); err != nil {
				t.Fatal(guard.name, err)
			}
		}
	}
	if it.minor(t) < 36 {
		// An API server before 1.36 can crash if it compiles a policy while it evaluates another:
		// https://github.com/kubernetes/kubernetes/issues/135757. It compiles new ones every second.
		time.Sleep(5 * time.Second)
	}
	probe := Object{
		"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": Object{"name": "probe"},
		"spec": Object{"allowedIPs": []string{}, "publicKey": ""},
	}
	for _, guard := range batch {
		for try := 0; len(it.create(t, "admin", labelled(t, probe, guard.name)).warnings) == 0; try++ {
			if try == 300 {
				t.Fatal("the guard has no effect:", guard.name)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	var group sync.WaitGroup
	for part := range slices.Chunk(batch, max(1, len(batch)/4)) {
		group.Go(func() {
			for _, guard := range part {
				for _, peer := range guard.Peers {
					it.compare(t, guard.name, peer, nil)
				}
				for _, attack := range guard.Attacks {
					it.compare(t, guard.name, attack.Object, attack.Refusals)
				}
			}
		})
	}
	group.Wait()
	for _, guard := range batch {
		for _, path := range []string{bindings, policies} {
			if _, err := it.server.Request("DELETE", path+guard.name, "", nil); err != nil {
				t.Error(err)
			}
		}
	}
}

// compare fails unless a guard warns of exactly these refusals.
func (it guarded) compare(t *testing.T, guard string, peer Object, refusals []string) {
	t.Helper()
	got := it.create(t, "admin", labelled(t, peer, guard))
	slices.Sort(refusals)
	if got.status != http.StatusCreated || !slices.Equal(got.warnings, refusals) {
		t.Errorf("%s: %v instead of %q: %.2000s", guard, got, refusals, encode(t, peer))
	}
}

// minor returns the second number of the server's version.
func (it guarded) minor(t *testing.T) int {
	t.Helper()
	answer, err := it.server.Request("GET", "/version", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(fmt.Sprint(answer["minor"]))
	if err != nil {
		t.Fatal(err)
	}
	return minor
}

// The API server spends as much on a Peer as `guard` computes: 1,500 allowed IPs with 125 IPv6 ranges (988,500 of
// 1,000,000) are judged, and with 136 ranges (1,071,000) they are not. Kubernetes 1.31 spends less on a comparison with an
// IPv6 range: 161 ranges are judged there, and 166 are not.
func TestGuardCosts(t *testing.T) {
	it := newGuarded(t, StartOthers(t, 1)[0])
	var allowed []any
	for number := range 1500 {
		allowed = append(allowed, fmt.Sprintf("fd00:0:0:1001:aaaa:bbbb:cccc:%x/128", 0x1000+number))
	}
	peer := Object{
		"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer",
		"metadata": Object{"name": "prod--east--x", "labels": Object{
			"kilo-clustermesh.io/mesh": "prod", "kilo-clustermesh.io/source-cluster": "east"}},
		"spec": Object{
			"allowedIPs": allowed, "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
			"endpoint": Object{"dnsOrIP": Object{"ip": "198.51.100.7"}, "port": 51820}},
	}
	most := []int{125, 136}
	if it.minor(t) == 31 {
		most = []int{155, 170}
	}
	for number, ranges := range most {
		judged := number == 0
		var pods strings.Builder
		for number := range ranges - 1 {
			fmt.Fprintf(&pods, "'fd00:0:0:%x::/64', ", 0x1001+2*number)
		}
		repository := t.TempDir()
		Write(t, fmt.Sprintf(`apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: {name: prod}
spec:
  clusters:
    - {name: east, podCIDRs: [%s], wireguardCIDR: 'fd02::/64', state: Joining}
    - {name: west, podCIDRs: ['fd01::/48'], wireguardCIDR: 'fd03::/64', state: Joining}
`, strings.TrimSuffix(pods.String(), ", ")), repository, "mesh.yaml")
		it.install(t, guardOf(t, repository, "west"))
		var got reaction
		// The server knows a changed policy after a moment. Each try takes it several seconds.
		for range 4 {
			got = it.create(t, "admin", peer)
			if (got.status == http.StatusCreated) == judged {
				break
			}
			time.Sleep(time.Second)
		}
		if (got.status == http.StatusCreated) != judged || !judged && !strings.Contains(got.message, "cost limit exceeded") {
			t.Errorf("%d ranges: %v", ranges, got)
		}
		it.uninstall(t, peer)
	}
}
