package cluster

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

const keepalive = "kilo.squat.ai/persistent-keepalive"

// The API versions of mutating policies, the newest of which needs no flag. A server that emulates an older version does not
// start with their feature gate, because it waits for objects of `v1`.
var mutatingVersions = []string{"v1", "v1beta1", "v1alpha1"}

// With the policy that `annotate` prints, new nodes get the annotation, and every other value stays.
func TestKeepalivePolicy(t *testing.T) {
	const group = "admissionregistration.k8s.io/"
	run := Clustermesh(t, Example(t, "quickstart"), "annotate", "east", "--new-nodes", "--keepalive", "20")
	if run.Code != 0 {
		t.Fatal(run)
	}
	for _, version := range mutatingVersions {
		t.Run(version, func(t *testing.T) {
			server, err := start("--", "--runtime-config="+group+version+"=true")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.stop)
			server.createNode(t, "old", Object{})
			for _, document := range separator.Split(run.Stdout, -1) {
				if strings.Count(document, group+"v1\n") != 1 {
					t.Fatal("not one API version", document)
				}
				document = strings.Replace(document, group+"v1\n", group+version+"\n", 1)
				if err := server.DryRun([]byte(document)); err != nil {
					t.Fatal(err)
				}
				if err := server.Apply([]byte(document)); err != nil {
					t.Fatal(err)
				}
			}
			server.awaitKeepalive(t)

			for name, before := range map[string]Object{
				"bare":  nil,
				"empty": {},
				"other": {"kilo.squat.ai/location": "oslo", "a": "b"},
			} {
				after := Object{keepalive: "20"}
				maps.Copy(after, before)
				sameAnnotations(t, name, server.createNode(t, name, before), after)
			}
			for name, value := range map[string]string{"ten": "10", "off": "0", "blank": ""} {
				set := Object{keepalive: value, "a": "b"}
				sameAnnotations(t, name, server.createNode(t, name, set), set)
			}
			// Only what is created is changed.
			answer, err := server.Request(http.MethodPatch, "/api/v1/nodes/old", "application/merge-patch+json",
				[]byte(`{"metadata": {"annotations": {"a": "b"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			sameAnnotations(t, "old", annotations(answer), Object{"a": "b"})
		})
	}
}

// createNode stores a node, or a copy of it that is only shown, and returns its annotations.
func (s *Server) createNode(t *testing.T, name string, given Object) Object {
	t.Helper()
	metadata := Object{"name": name}
	if given != nil {
		metadata["annotations"] = given
	}
	path := "/api/v1/nodes"
	if name == "probe" {
		path += "?dryRun=All"
	}
	node := encode(t, Object{"apiVersion": "v1", "kind": "Node", "metadata": metadata})
	answer, err := s.Request(http.MethodPost, path, "application/json", node)
	if err != nil {
		t.Fatal(err)
	}
	return annotations(answer)
}

// awaitKeepalive waits until the policy has an effect.
func (s *Server) awaitKeepalive(t *testing.T) {
	t.Helper()
	for range 200 {
		if len(s.createNode(t, "probe", nil)) > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the policy has no effect")
}

func annotations(node Object) Object {
	found, _ := node["metadata"].(Object)["annotations"].(Object)
	return found
}

func sameAnnotations(t *testing.T, name string, found, expected Object) {
	t.Helper()
	same := func(a, b any) bool { return a == b }
	if !maps.EqualFunc(found, expected, same) {
		t.Errorf("%s has %v and not %v", name, found, expected)
	}
}
