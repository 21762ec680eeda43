package cluster

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PeerDefinition makes Kilo's CRD from the project's schema of a Peer. An API server wants schemas
// without references, with one type for each value.
func PeerDefinition() []byte {
	root, err := root()
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "schemas", "kilo.squat.ai", "peer_v1alpha1.json"))
	if err != nil {
		panic(err)
	}
	var schema Object
	if err := json.Unmarshal(text, &schema); err != nil {
		panic(err)
	}
	structural := structural(schema, schema["$defs"].(Object))
	properties := structural["properties"].(Object)
	properties["metadata"] = Object{"type": "object"}
	definition, err := json.Marshal(Object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   Object{"name": "peers.kilo.squat.ai"},
		"spec": Object{
			"group": "kilo.squat.ai",
			"scope": "Cluster",
			"names": Object{"kind": "Peer", "listKind": "PeerList", "plural": "peers", "singular": "peer"},
			"versions": []Object{{
				"name": "v1alpha1", "served": true, "storage": true,
				"schema": Object{"openAPIV3Schema": structural},
			}},
		},
	})
	if err != nil {
		panic(err)
	}
	return definition
}

// structural resolves references, takes the one alternative that is not null, and keeps what an API
// server checks.
func structural(schema, definitions Object) Object {
	if reference, ok := schema["$ref"].(string); ok {
		return structural(definitions[strings.TrimPrefix(reference, "#/$defs/")].(Object), definitions)
	}
	if alternatives, ok := schema["anyOf"].([]any); ok {
		for _, it := range alternatives {
			if it.(Object)["type"] != "null" {
				return structural(it.(Object), definitions)
			}
		}
	}
	kept := Object{}
	for _, keyword := range []string{"type", "format", "required", "description"} {
		if value, ok := schema[keyword]; ok {
			kept[keyword] = value
		}
	}
	if types, ok := kept["type"].([]any); ok {
		kept["type"] = types[slices.IndexFunc(types, func(it any) bool { return it != "null" })]
	}
	if items, ok := schema["items"].(Object); ok {
		kept["items"] = structural(items, definitions)
	}
	if properties, ok := schema["properties"].(Object); ok {
		resolved := Object{}
		for name := range maps.Keys(properties) {
			resolved[name] = structural(properties[name].(Object), definitions)
		}
		kept["properties"] = resolved
	}
	return kept
}
