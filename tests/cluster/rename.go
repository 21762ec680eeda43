package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Event is an event of a Peer, as an agent gets it.
type Event struct {
	// ADDED, MODIFIED or DELETED.
	Type   string
	Object Object
}

// Renaming is what a cluster sees of a mesh that gets another name.
type Renaming struct {
	// The grade of `diff`.
	Grade string
	// How many Peers the cluster has.
	Peers int
	// All events, in order.
	Events []Event
	// The Peers that an agent does not have after the events.
	Forgotten []string
}

// Types returns the types of the events, in order.
func (it Renaming) Types() []string {
	var types []string
	for _, event := range it.Events {
		types = append(types, event.Type)
	}
	return types
}

// renamedNodes is the number of nodes of each cluster.
const renamedNodes = 12

// RenameMesh delivers a mesh to one of its three clusters, `west`, gives it another name, and delivers it again. The
// repository has more files, by path. `tool` is the name of the tool that delivers, for `diff`.
func RenameMesh(t *testing.T, tool string, to Delivery, files map[string]string) Renaming {
	t.Helper()
	repository := t.TempDir()
	run := func(arguments ...string) Run {
		t.Helper()
		run := Clustermesh(t, repository, arguments...)
		if run.Code != 0 {
			t.Fatal(arguments, run)
		}
		return run
	}
	deliver := func() {
		t.Helper()
		if err := to.Deliver(repository); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		Write(t, text, repository, path)
	}
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"east", "north", "west"}
	Write(t, Mesh("old", names...), repository, "mesh.yaml")
	for place, name := range names {
		var nodes []Object
		for number := range renamedNodes {
			nodes = append(nodes, Node{Cluster: place, Number: number + 1, Key: NewKey(random)}.object())
		}
		Write(t, text(t, Object{"kind": "NodeList", "items": nodes}), repository, "nodes.json")
		run("snapshot", name, "--from", "nodes.json")
	}
	run("render")
	deliver()

	Replace(t, "name: old", "name: new", repository, "mesh.yaml")
	if run := Clustermesh(t, repository, "render"); run.Code != 1 {
		t.Error("`render` renames a mesh:", run)
	}
	list := Object{"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "PeerList", "items": to.Server.Peers(t)}
	Write(t, text(t, list), repository, "peers.json")
	changes := run("diff", "--peers", "west=peers.json", "--applied-by", tool, "--output", "json")
	var graded struct{ Grade string }
	if err := json.Unmarshal([]byte(changes.Stdout), &graded); err != nil {
		t.Fatal(err)
	}
	run("render", "--allow-empty", "*/old")
	want := Names(Rendered(t, repository, "west"))
	before := to.Server.list(t)
	events := to.Server.follow(t, before, want, deliver)
	return Renaming{
		Grade: graded.Grade, Peers: len(want), Events: events,
		Forgotten: forgotten(before, events),
	}
}

func text(t *testing.T, object Object) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// list returns the list of all Peers.
func (s *Server) list(t testing.TB) Object {
	t.Helper()
	answer, err := s.Request(http.MethodGet, peers, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// follow calls a function and returns the events of Peers since a list, until only the wanted ones are left.
func (s *Server) follow(t testing.TB, since Object, want []string, during func()) []Event {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	version := since["metadata"].(Object)["resourceVersion"]
	path := fmt.Sprintf("%s%s?watch=true&resourceVersion=%v", s.address, peers, version)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var events []Event
	var mutex sync.Mutex
	go func() {
		decoder := json.NewDecoder(io.Reader(response.Body))
		for {
			var event Event
			if decoder.Decode(&event) != nil {
				return
			}
			mutex.Lock()
			events = append(events, event)
			mutex.Unlock()
		}
	}()
	during()
	for range 200 {
		mutex.Lock()
		left := agentNames(since, events)
		mutex.Unlock()
		if slices.Equal(left, want) {
			return events
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the Peers are %v", Names(s.Peers(t)))
	return nil
}

// agentNames returns the names of the Peers after some events.
func agentNames(since Object, events []Event) []string {
	names := map[string]bool{}
	replay(since, events, func(_ string, object Object, isDeleted bool) {
		if isDeleted {
			delete(names, name(object))
		} else {
			names[name(object)] = true
		}
	})
	return slices.Sorted(maps.Keys(names))
}

// forgotten returns the Peers whose keys an agent does not have after some events. It stores Peers by their keys
// (`syncPeers` in Kilo).
func forgotten(since Object, events []Event) []string {
	byKey, keys := map[string]bool{}, map[string]string{}
	replay(since, events, func(key string, object Object, isDeleted bool) {
		if isDeleted {
			delete(byKey, key)
			delete(keys, name(object))
		} else {
			byKey[key] = true
			keys[name(object)] = key
		}
	})
	var lost []string
	for peer, key := range keys {
		if !byKey[key] {
			lost = append(lost, peer)
		}
	}
	slices.Sort(lost)
	return lost
}

func replay(since Object, events []Event, step func(key string, object Object, isDeleted bool)) {
	all := []Event{}
	items, _ := since["items"].([]any)
	for _, it := range items {
		all = append(all, Event{"ADDED", it.(Object)})
	}
	for _, it := range append(all, events...) {
		spec, _ := it.Object["spec"].(Object)
		key, _ := spec["publicKey"].(string)
		step(key, it.Object, it.Type == "DELETED")
	}
}

// AwaitCollector waits until the garbage collector knows Peers: then one that is deleted in the foreground goes.
func (s *Server) AwaitCollector(t testing.TB) {
	t.Helper()
	document := "{apiVersion: kilo.squat.ai/v1alpha1, kind: Peer, metadata: {name: probe}, " +
		"spec: {allowedIPs: [192.0.2.1/32], publicKey: " + NewKey(rand.New(rand.NewPCG(3, 4))) + "}}"
	if err := s.Apply([]byte(document)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(peers, "probe") + "?propagationPolicy=Foreground"
	if _, err := s.Request(http.MethodDelete, path, "", nil); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if len(s.Peers(t)) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the garbage collector does not delete Peers")
}
