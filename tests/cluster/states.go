package cluster

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The printed command for clusters in which the tool that delivers keeps the Peers of an empty folder.
var deletion = regexp.MustCompile("unless Flux applies the folder, run `(kubectl [^`]+)`")

// JoinAndLeave lets the cluster of the second delivery join a mesh and leave it again, one reviewed step after
// the other. The first delivery is to a cluster that stays. `refuses` is whether the tool of the second one refuses an
// empty folder, as Argo CD's automated sync does.
func JoinAndLeave(t *testing.T, stays, parts Delivery, refuses bool) {
	it := &steps{t: t, repository: t.TempDir(), stays: stays, parts: parts}
	it.prepare()

	it.set("Joining")
	it.render()
	it.deliver()
	it.has(stays, "third")
	it.has(parts)

	it.set("")
	it.render()
	it.deliver()
	it.has(stays, parts.Cluster, "third")
	it.has(parts, stays.Cluster, "third")
	third := it.held("third")

	it.set("Leaving")
	it.graded("destructive")
	command := deletion.FindStringSubmatch(it.render().Stderr)
	if command == nil {
		t.Fatal("no command is printed")
	}
	it.deliver()
	it.has(stays, "third")
	if refuses {
		it.has(parts, stays.Cluster, "third")
		it.shell(command[1])
	}
	it.has(parts)

	versions := [][]string{stays.Server.Versions(t), parts.Server.Versions(t)}
	it.remove()
	it.graded("none")
	it.render()
	if _, err := os.Stat(filepath.Join(it.repository, "rendered", parts.Cluster)); !os.IsNotExist(err) {
		t.Error("the folder of the cluster that left:", err)
	}
	if err := stays.Deliver(it.repository); err != nil {
		t.Fatal(err)
	}
	// Until its Kustomization or Application is deleted, too.
	if err := parts.Deliver(it.repository); err == nil {
		t.Error("a folder that is not there is delivered")
	}
	for place, server := range []*Server{stays.Server, parts.Server} {
		if now := server.Versions(t); !slices.Equal(now, versions[place]) {
			t.Errorf("%v instead of %v", now, versions[place])
		}
	}
	if now := it.held("third"); !slices.Equal(now, third) {
		t.Errorf("the Peers of `third` were lost: %v instead of %v", now, third)
	}
}

// steps is a mesh of three clusters, of which one has no server.
type steps struct {
	t            *testing.T
	repository   string
	stays, parts Delivery
	state        string
}

// prepare takes the snapshots of two nodes of each cluster.
func (it *steps) prepare() {
	it.t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	logins := map[string]Login{}
	for _, delivery := range []Delivery{it.stays, it.parts} {
		delivery.Server.DeletePeers(it.t)
		logins[delivery.Cluster] = Login{Server: delivery.Server, Context: "admin"}
	}
	Write(it.t, Kubeconfig(it.t, logins), it.repository, "kubeconfig")
	names := it.names()
	Write(it.t, Mesh("prod", names...), it.repository, "mesh.yaml")
	for place, cluster := range names {
		nodes := []Object{
			Node{Cluster: place, Number: 1, Key: NewKey(random)}.object(),
			Node{Cluster: place, Number: 2, Key: NewKey(random)}.object(),
		}
		text, err := json.Marshal(Object{"kind": "NodeList", "items": nodes})
		if err != nil {
			it.t.Fatal(err)
		}
		Write(it.t, string(text), it.repository, "nodes.json")
		it.run("snapshot", cluster, "--from", "nodes.json")
	}
}

func (it *steps) names() []string {
	return []string{it.stays.Cluster, it.parts.Cluster, "third"}
}

// set writes the state of the cluster that parts; without one it is joined.
func (it *steps) set(state string) {
	it.t.Helper()
	field := func(state string) string {
		if state == "" {
			return "{name: " + it.parts.Cluster + ", podCIDRs"
		}
		return "{name: " + it.parts.Cluster + ", state: " + state + ", podCIDRs"
	}
	Replace(it.t, field(it.state), field(state), it.repository, "mesh.yaml")
	it.state = state
}

// remove removes the entry of the cluster that has left, and its snapshot.
func (it *steps) remove() {
	it.t.Helper()
	text, err := os.ReadFile(filepath.Join(it.repository, "mesh.yaml"))
	if err != nil {
		it.t.Fatal(err)
	}
	var left strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "{name: "+it.parts.Cluster+",") {
			left.WriteString(line)
		}
	}
	Write(it.t, left.String(), it.repository, "mesh.yaml")
	Remove(it.t, it.repository, "snapshots", it.parts.Cluster+".json")
}

func (it *steps) run(arguments ...string) Run {
	it.t.Helper()
	run := Clustermesh(it.t, it.repository, arguments...)
	if run.Code != 0 {
		it.t.Fatal(arguments, run)
	}
	return run
}

// render needs no flag in any step, and `verify` holds after each.
func (it *steps) render() Run {
	it.t.Helper()
	run := it.run("render")
	it.run("render", "--check", "--fail-on", "warning")
	it.run("verify", "--fail-on", "warning")
	return run
}

// graded fails unless the next render has this grade, compared with the Peers that the cluster that stays has.
func (it *steps) graded(want string) {
	it.t.Helper()
	list := Object{"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "PeerList", "items": it.stays.Server.Peers(it.t)}
	text, err := json.Marshal(list)
	if err != nil {
		it.t.Fatal(err)
	}
	Write(it.t, string(text), it.repository, "peers.json")
	run := it.run("diff", "--peers", it.stays.Cluster+"=peers.json", "--output", "json")
	var changes struct{ Grade string }
	if err := json.Unmarshal([]byte(run.Stdout), &changes); err != nil || changes.Grade != want {
		it.t.Fatalf("%q instead of %q (%v): %s", changes.Grade, want, err, run.Stdout)
	}
}

func (it *steps) deliver() {
	it.t.Helper()
	for _, delivery := range []Delivery{it.stays, it.parts} {
		if err := delivery.Deliver(it.repository); err != nil {
			it.t.Fatalf("to %s: %v", delivery.Cluster, err)
		}
	}
}

// has fails unless a cluster has the Peers of exactly these sources.
func (it *steps) has(delivery Delivery, sources ...string) {
	it.t.Helper()
	var want []string
	for _, source := range sources {
		place := slices.Index(it.names(), source)
		for number := range 2 {
			want = append(want, "prod--"+source+"--"+Node{Cluster: place, Number: number + 1}.Name())
		}
	}
	slices.Sort(want)
	if got := Names(delivery.Server.Peers(it.t)); !slices.Equal(got, want) {
		it.t.Fatalf("%s has %v instead of %v", delivery.Cluster, got, want)
	}
}

// held returns the Peers of a source in the cluster that stays, with their identities.
func (it *steps) held(source string) []string {
	it.t.Helper()
	var held []string
	for name, identity := range it.stays.Server.identities(it.t) {
		if strings.HasPrefix(name, "prod--"+source+"--") {
			held = append(held, name+" "+identity)
		}
	}
	slices.Sort(held)
	return held
}

// shell runs a command as a person would, with the contexts of both clusters.
func (it *steps) shell(command string) {
	it.t.Helper()
	program := os.Getenv("KUBECTL")
	if program == "" {
		it.t.Fatal("KUBECTL is not set: run .ci/delivery")
	}
	folder := it.t.TempDir()
	if err := os.Symlink(program, filepath.Join(folder, "kubectl")); err != nil {
		it.t.Fatal(err)
	}
	shell := exec.Command("/bin/sh", "-c", command)
	shell.Env = []string{"PATH=" + folder, "HOME=" + folder, "KUBECONFIG=" + filepath.Join(it.repository, "kubeconfig")}
	if output, err := shell.CombinedOutput(); err != nil {
		it.t.Fatalf("%s: %v\n%s", command, err, output)
	}
}
