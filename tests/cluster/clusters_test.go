package cluster

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fleet is a repository with a mesh of several clusters, each with a server.
type fleet struct {
	repository string
	logins     map[string]Login
	random     *rand.Rand
	// How many nodes each cluster has had.
	nodes int
}

func newFleet(t *testing.T, servers []*Server) *fleet {
	t.Helper()
	it := &fleet{repository: t.TempDir(), logins: map[string]Login{}, random: rand.New(rand.NewPCG(1, 2))}
	names := make([]string, 0, len(servers))
	for number, server := range servers {
		name := fmt.Sprintf("c%d", number)
		names = append(names, name)
		it.logins[name] = Login{Server: server, Context: "admin"}
		server.DeleteNodes(t)
	}
	Write(t, Mesh("fleet", names...), it.repository, "mesh.yaml")
	it.grow(t)
	it.grow(t)
	it.reach(t, it.logins)
	if run := it.run(t, "snapshot"); run.Code != 0 {
		t.Fatal(run)
	}
	if run := it.run(t, "render"); run.Code != 0 {
		t.Fatal(run)
	}
	return it
}

// grow adds a node to each cluster.
func (it *fleet) grow(t *testing.T) {
	t.Helper()
	it.nodes++
	for place, name := range it.names() {
		Node{Cluster: place, Number: it.nodes, Key: NewKey(it.random)}.Create(t, it.logins[name].Server)
	}
}

func (it *fleet) names() []string {
	return slices.Sorted(maps.Keys(it.logins))
}

func (it *fleet) reach(t *testing.T, logins map[string]Login) {
	t.Helper()
	Write(t, Kubeconfig(t, logins), it.repository, "kubeconfig")
}

func (it *fleet) run(t *testing.T, arguments ...string) Run {
	t.Helper()
	if arguments[0] == "snapshot" {
		arguments = append(arguments, "--kubeconfig", "kubeconfig")
	}
	return Clustermesh(t, it.repository, arguments...)
}

// snapshots returns the content of the snapshot of each cluster.
func (it *fleet) snapshots(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name := range it.logins {
		text, err := os.ReadFile(filepath.Join(it.repository, "snapshots", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	return found
}

// failure is why a cluster cannot be read.
type failure struct {
	rule string
	// Runs a function while this is so.
	during func(t *testing.T, it *fleet, cluster string, run func())
}

// as makes the kubeconfig use other credentials for a cluster.
func as(context string) func(t *testing.T, it *fleet, cluster string, run func()) {
	return func(t *testing.T, it *fleet, cluster string, run func()) {
		before := it.logins[cluster]
		defer func() { it.logins[cluster] = before }()
		it.logins[cluster] = Login{Server: before.Server, Context: context}
		run()
	}
}

var failures = map[string]failure{
	"no rights":          {"forbidden", as("stranger")},
	"a wrong token":      {"unauthorized", as("unknown")},
	"another authority":  {"untrusted-certificate", as("impostor")},
	"a frozen server":    {"slow-cluster", func(t *testing.T, it *fleet, cluster string, run func()) { it.logins[cluster].Server.Freeze(t, run) }},
	"a server that ends": {"unreachable-cluster", func(t *testing.T, it *fleet, cluster string, run func()) { it.logins[cluster].Server.Restart(t, run) }},
}

// fails takes snapshots while some clusters cannot be read, each for its reason. They keep their snapshots and
// Peers, and the others get new ones.
func (it *fleet) fails(t *testing.T, reasons map[string]string) {
	t.Helper()
	it.grow(t)
	before := it.snapshots(t)
	check := func() {
		it.reach(t, it.logins)
		for _, keep := range []bool{false, true} {
			arguments, code := []string{"snapshot", "--timeout", "3"}, 2
			if keep {
				arguments, code = append(arguments, "--keep-going"), 0
			}
			run := it.run(t, arguments...)
			if run.Code != code {
				t.Error(arguments, run)
			}
			for cluster, reason := range reasons {
				if want := "[" + failures[reason].rule + "]: " + cluster + ": "; !strings.Contains(run.Stderr, want) {
					t.Errorf("%v: no %s in %v", arguments, want, run)
				}
			}
			for cluster, now := range it.snapshots(t) {
				_, failed := reasons[cluster]
				if failed != (now == before[cluster]) {
					t.Errorf("%v: the snapshot of %s: %v", arguments, cluster, run)
				}
			}
		}
	}
	for cluster, reason := range reasons {
		next := check
		check = func() { failures[reason].during(t, it, cluster, next) }
	}
	check()
	for _, arguments := range [][]string{{"render"}, {"render", "--check"}} {
		if run := it.run(t, arguments...); run.Code != 0 {
			t.Error(arguments, run)
		}
	}
	for _, target := range it.names() {
		have := Names(Rendered(t, it.repository, target))
		for place, source := range it.names() {
			for number := range it.nodes {
				_, failed := reasons[source]
				want := source != target && !(failed && number+1 == it.nodes)
				peer := "fleet--" + source + "--" + Node{Cluster: place, Number: number + 1}.Name()
				if slices.Contains(have, peer) != want {
					t.Errorf("%v: %s in %s is not %v", reasons, peer, target, want)
				}
			}
		}
	}
	it.reach(t, it.logins)
	if run := it.run(t, "snapshot"); run.Code != 0 {
		t.Error("afterwards:", run)
	}
	for cluster, now := range it.snapshots(t) {
		if now == before[cluster] {
			t.Errorf("the snapshot of %s is still the old one", cluster)
		}
	}
	if run := it.run(t, "render"); run.Code != 0 {
		t.Error("afterwards:", run)
	}
}

// Two and five clusters are read at the same time. Whatever happens to one of them, the others are read, and
// nothing old is lost.
func TestSeveralClusters(t *testing.T) {
	servers := append([]*Server{Start(t)}, StartOthers(t, 4)...)
	t.Run("two", func(t *testing.T) {
		it := newFleet(t, servers[:2])
		for name := range failures {
			t.Run(name, func(t *testing.T) { it.fails(t, map[string]string{"c1": name}) })
		}
		t.Run("progress", it.progress)
	})
	t.Run("five", func(t *testing.T) {
		newFleet(t, servers).fails(t, map[string]string{
			"c1": "a wrong token", "c2": "a frozen server", "c4": "a server that ends",
		})
	})
	servers[0].DeleteNodes(t)
}

// At a terminal, a line shows which cluster is slow until it has answered, and is then erased.
func (it *fleet) progress(t *testing.T) {
	slow := it.logins["c1"].Server
	const line = "Waiting for 1 of 2 clusters: c1 ("
	shown := func(shell string) string {
		var text []byte
		slow.Freeze(t, func() {
			time.AfterFunc(3*time.Second, slow.Thaw)
			command := exec.Command("script", "-qec", shell, "/dev/null")
			command.Dir = it.repository
			command.Env = []string{"PATH=/usr/bin:/bin", "TERM=xterm", "SHELL=/bin/sh", "PROGRAM=" + Program(t)}
			var err error
			if text, err = command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
		})
		if !bytes.Contains(text, []byte("snapshots/c1.json: ")) {
			t.Errorf("%q", text)
		}
		return string(text)
	}
	text := shown(`"$PROGRAM" snapshot --kubeconfig kubeconfig`)
	_, behind, found := strings.Cut(text, line)
	if _, behind, _ = strings.Cut(behind, "\r"); !found || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	erased := slices.ContainsFunc(strings.Split(behind, "\r"), func(it string) bool {
		return len(it) >= len(line) && strings.TrimSpace(it) == ""
	})
	if !erased {
		t.Errorf("not erased: %q", text)
	}
	if text := shown(`"$PROGRAM" snapshot --kubeconfig kubeconfig 2>stderr; cat stderr`); strings.Contains(text, "Waiting") {
		t.Errorf("not at a terminal: %q", text)
	}
}
