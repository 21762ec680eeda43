package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// Mesh returns a mesh of clusters.
func Mesh(name string, clusters ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata:\n  name: %s\nspec:\n  clusters:\n", name)
	for place, cluster := range clusters {
		fmt.Fprintf(&text, "    - {name: %s, podCIDRs: [10.%d.0.0/16], wireguardCIDR: 10.%d.0.0/16}\n",
			cluster, podRange+place, wireguardRange+place)
	}
	return text.String()
}

// The second byte of the ranges of the first cluster.
const podRange, wireguardRange = 40, 100

// Node is a node of a cluster of Mesh, as Kilo's agent annotates it.
type Node struct {
	// The place of its cluster in the mesh.
	Cluster int
	Number  int
	Key     string
}

// Name differs from that of every node of another cluster.
func (n Node) Name() string {
	return fmt.Sprintf("%c%02d", 'a'+n.Cluster, n.Number)
}

// Annotations returns everything that Kilo writes.
func (n Node) Annotations() Object {
	return Object{
		"kilo.squat.ai/key":            n.Key,
		"kilo.squat.ai/location":       n.Name(),
		"kilo.squat.ai/force-endpoint": fmt.Sprintf("198.18.%d.%d:51820", n.Cluster, n.Number),
		"kilo.squat.ai/wireguard-ip":   fmt.Sprintf("10.%d.0.%d/16", wireguardRange+n.Cluster, n.Number),
		"kilo.squat.ai/internal-ip":    fmt.Sprintf("192.168.%d.%d/24", n.Cluster, n.Number),
		"kilo.squat.ai/granularity":    "full",
	}
}

// object is the node as the API server has it.
func (n Node) object() Object {
	return Object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": Object{"name": n.Name(), "annotations": n.Annotations()},
		"spec":     Object{"podCIDRs": []string{fmt.Sprintf("10.%d.%d.0/24", podRange+n.Cluster, n.Number)}},
	}
}

// Create stores the node.
func (n Node) Create(t testing.TB, server *Server) {
	t.Helper()
	node, err := json.Marshal(n.object())
	if err == nil {
		_, err = server.Request(http.MethodPost, "/api/v1/nodes", "application/json", node)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// NewKey returns a public key.
func NewKey(random *rand.Rand) string {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(key)
}

// DeleteNodes deletes all nodes, for the next test.
func (s *Server) DeleteNodes(t testing.TB) {
	t.Helper()
	if _, err := s.Request(http.MethodDelete, "/api/v1/nodes", "", nil); err != nil {
		t.Error(err)
	}
}
