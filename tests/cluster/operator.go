package cluster

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// OperatorDefinition makes the ClusterMesh CRD of a generation of the operator, as docs/internals/operator.md
// describes it: the flat one has `allowedNetworks`, the typed one four fields instead. Both have no other fields in
// `spec`. The status is left out.
func OperatorDefinition(flat bool) []byte {
	text := Object{"type": "string"}
	texts := Object{"type": "array", "items": text}
	some := Object{"type": "array", "items": text, "minItems": 1}
	entry := Object{
		"name":  Object{"type": "string", "maxLength": 63, "pattern": `^[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?$`},
		"local": Object{"type": "boolean"},
		"kubeconfigSecretRef": Object{
			"type": "object", "properties": Object{"name": text, "key": text}, "required": []string{"name", "key"},
		},
		"wireguardPort":       Object{"type": "integer", "minimum": 1, "maximum": 65535, "default": 51820},
		"persistentKeepalive": Object{"type": "integer", "minimum": 0, "maximum": 65535},
	}
	required := []string{"name", "allowedNetworks"}
	if flat {
		entry["allowedNetworks"] = some
	} else {
		required = []string{"name", "podCIDRs", "wireguardCIDR"}
		entry["podCIDRs"], entry["wireguardCIDR"] = some, text
		entry["serviceCIDR"], entry["additionalCIDRs"] = text, texts
	}
	clusters := Object{
		"type": "array", "minItems": 2,
		"items": Object{"type": "object", "properties": entry, "required": required},
	}
	schema := Object{
		"type": "object", "required": []string{"spec"},
		"properties": Object{
			"apiVersion": text, "kind": text, "metadata": Object{"type": "object"},
			"spec": Object{
				"type": "object", "required": []string{"clusters"}, "properties": Object{"clusters": clusters},
			},
		},
	}
	definition, err := json.Marshal(Object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   Object{"name": "clustermeshes.kilo.squat.ai"},
		"spec": Object{
			"group": "kilo.squat.ai",
			"scope": "Namespaced",
			"names": Object{
				"kind": "ClusterMesh", "listKind": "ClusterMeshList", "plural": "clustermeshes",
				"singular": "clustermesh", "shortNames": []string{"cm"},
			},
			"versions": []Object{{
				"name": "v1alpha1", "served": true, "storage": true,
				"schema": Object{"openAPIV3Schema": schema},
			}},
		},
	})
	if err != nil {
		panic(err)
	}
	return definition
}

// OperatorMesh returns a repository whose `mesh/mesh.yaml` is an object of the operator with fields that its CRD lacks:
// the hub `east` is linked with `west` and `north`, which are not linked with each other, and `south` has not joined yet.
func OperatorMesh(t testing.TB) string {
	t.Helper()
	repository := t.TempDir()
	Write(t, `apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: prod
  namespace: kilo-clustermesh
spec:
  topology: { mode: Hub, hubs: [east] }
  clusters:
    - { name: east, local: true, allowedNetworks: [10.1.0.0/16] }
    - { name: west, allowedNetworks: [10.2.0.0/16], kubeconfigSecretRef: { name: west, key: value } }
    - { name: north, allowedNetworks: [10.3.0.0/16], kubeconfigSecretRef: { name: north, key: value } }
    - { name: south, allowedNetworks: [10.4.0.0/16], kubeconfigSecretRef: { name: south, key: value }, state: Joining }
`, repository, "mesh", "mesh.yaml")
	return repository
}

// The advice of `additional-fields`: a line, and where to write it.
var advice = regexp.MustCompile("then write `(.+?)` under `(.+?)`")

// FollowAdvice writes the line that `validate` proposes for the mesh of OperatorMesh, after which it proposes none.
func FollowAdvice(t testing.TB, repository string) {
	t.Helper()
	finding := func() []string {
		run := Clustermesh(t, repository, "validate", "--mesh", "mesh/mesh.yaml", "--output", "json")
		return advice.FindStringSubmatch(run.Stdout)
	}
	found := finding()
	if found == nil {
		t.Fatal("no advice")
	}
	line := strings.ReplaceAll(found[1], `\"`, `"`)
	Replace(t, found[2]+":\n", found[2]+":\n  "+line+"\n", repository, "mesh", "mesh.yaml")
	if again := finding(); again != nil {
		t.Fatal(again)
	}
}
