package cluster

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Where the API server keeps the meshes of OperatorMesh.
const meshes = "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-clustermesh/clustermeshes"

// startOperator starts a server with the CRD of a generation of the operator.
func startOperator(t *testing.T, flat bool) *Server {
	t.Helper()
	server := StartOthers(t, 1)[0]
	server.Install(t, OperatorDefinition(flat))
	server.Namespace(t, "kilo-clustermesh")
	return server
}

// operatorRow is a row of the page about the operator's CRD that begins with a field.
var operatorRow = regexp.MustCompile("(?m)^\\| `(spec\\.[^`]+)` \\| ([^|]+) \\|$")

// unknownField is a field that strict validation refuses.
var unknownField = regexp.MustCompile(`unknown field "(.+?)"`)

// An object with every field of the schema is refused for exactly the fields that the page lists, in both
// generations.
func TestOperatorLacksFieldsOfPage(t *testing.T) {
	page, err := os.ReadFile(Project(t, "docs", "reference", "operator-crd.md"))
	if err != nil {
		t.Fatal(err)
	}
	first, second, found := strings.Cut(string(page), "The operator has only these fields")
	if !found {
		t.Fatal("the page has no table of the operator's fields")
	}
	for flat, generation := range map[bool]string{true: "flat", false: "typed"} {
		t.Run(generation, func(t *testing.T) {
			var want []string
			for _, row := range operatorRow.FindAllStringSubmatch(first, -1) {
				want = append(want, row[1])
			}
			lacking := len(want)
			for _, row := range operatorRow.FindAllStringSubmatch(second, -1) {
				if !strings.HasPrefix(row[2], "all") && !strings.Contains(row[2], generation) {
					want = append(want, row[1])
				}
			}
			if lacking < 10 || len(want) == lacking {
				t.Fatal(want)
			}
			slices.Sort(want)
			server := startOperator(t, flat)
			_, err := server.Request(http.MethodPost, meshes+"?fieldValidation=Strict", "application/json", everyField(t))
			if err == nil {
				t.Fatal("accepted")
			}
			var got []string
			for _, it := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
				got = append(got, strings.ReplaceAll(it[1], "[0]", "[]"))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the API server refuses\n%v and the page has\n%v: %v", got, want, err)
			}
		})
	}
}

// everyField is an object with every field of `spec` and of an entry. What they contain does not matter.
func everyField(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(Project(t, "schemas", "kilo.squat.ai", "clustermesh_v1alpha1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions map[string]struct{ Properties Object } `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	spec, entry := Object{}, Object{}
	for name := range schema.Definitions["Spec"].Properties {
		spec[name] = "x"
	}
	for name := range schema.Definitions["Cluster"].Properties {
		entry[name] = "x"
	}
	spec["clusters"] = []any{entry}
	return encode(t, Object{
		"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "ClusterMesh",
		"metadata": Object{"name": "every"}, "spec": spec,
	})
}

// Under the operator's CRD, a mesh with additional fields is refused or stored without them, as the page says.
func TestOperatorMeshWithAdditionalFields(t *testing.T) {
	server := startOperator(t, true)
	folder := filepath.Join(OperatorMesh(t), "mesh")
	file := filepath.Join(folder, "mesh.yaml")
	refused := func(want string, arguments ...string) {
		t.Helper()
		run := server.kubectl(t, append([]string{"apply"}, arguments...)...)
		if run.Code != 1 || !strings.Contains(run.Stderr, want) {
			t.Error(arguments, run)
		}
		if left := server.meshes(t); len(left) != 0 {
			t.Error(arguments, "stored", left)
		}
	}
	stored := func(warnings int, arguments ...string) {
		t.Helper()
		run := server.kubectl(t, append([]string{"apply"}, arguments...)...)
		if run.Code != 0 || strings.Count(run.Stderr, "Warning: unknown field") != warnings {
			t.Error(arguments, run)
		}
		server.withoutFields(t)
	}
	both := `unknown field "spec.clusters[3].state", unknown field "spec.topology"`
	const undeclared = "field not declared in schema"

	refused(both, "-f", file)
	refused(both, "--validate=strict", "-f", file)
	stored(2, "--validate=warn", "-f", file)
	stored(0, "--validate=ignore", "-f", file)
	for _, validation := range []string{"strict", "warn", "ignore"} {
		refused(undeclared, "--server-side", "--validate="+validation, "-f", file)
	}
	// A client that asks for no validation.
	object := encode(t, Objects(t, file)[0])
	if _, err := server.Request(http.MethodPost, meshes, "application/json", object); err != nil {
		t.Error(err)
	}
	server.withoutFields(t)

	kustomization := filepath.Join(folder, "kustomization.yaml")
	Write(t, "resources: [mesh.yaml]\n", kustomization)
	refused(both, "-k", folder)
	stored(2, "--validate=warn", "-k", folder)
	FollowAdvice(t, filepath.Dir(folder))
	if run := server.kubectl(t, "kustomize", folder); run != (Run{}) {
		t.Error(run)
	}
	refused("no objects passed to apply", "--validate=warn", "-k", folder)
	// Only what kustomize builds is left out.
	refused(both, "-f", file)
	stored(2, "--validate=warn", "-f", file)
	refused(undeclared, "--server-side", "-f", file)
}

// The operator's own objects pass as before, and `validate` proposes nothing for what a cluster returns.
func TestOperatorMeshWithoutAdditionalFields(t *testing.T) {
	server := startOperator(t, true)
	repository := OperatorMesh(t)
	file := filepath.Join(repository, "mesh", "mesh.yaml")
	Replace(t, "  topology: { mode: Hub, hubs: [east] }\n", "", file)
	Replace(t, ", state: Joining", "", file)
	for _, way := range [][]string{nil, {"--server-side", "--force-conflicts"}} {
		if run := server.kubectl(t, append([]string{"apply", "--validate=strict", "-f", file}, way...)...); run.Code != 0 || run.Stderr != "" {
			t.Error(run)
		}
	}
	run := server.kubectl(t, "get", "clustermeshes", "--all-namespaces", "--output", "yaml")
	if !strings.Contains(run.Stdout, "wireguardPort: 51820") {
		t.Fatal(run)
	}
	Write(t, run.Stdout, file)
	run = Clustermesh(t, repository, "validate", "--mesh", "mesh/mesh.yaml", "--output", "concise")
	var others []string
	for line := range strings.Lines(run.Stdout) {
		if !strings.Contains(line, "[missing-snapshot]") {
			others = append(others, line)
		}
	}
	if len(others) != 0 || !strings.Contains(run.Stdout, "[missing-snapshot]") {
		t.Error(others, run)
	}
}

// meshes returns the stored meshes.
func (s *Server) meshes(t *testing.T) []any {
	t.Helper()
	answer, err := s.Request(http.MethodGet, meshes, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer["items"].([]any)
}

// withoutFields fails unless the mesh is stored with all its clusters and without the fields that the CRD lacks, and
// deletes it.
func (s *Server) withoutFields(t *testing.T) {
	t.Helper()
	found := s.meshes(t)
	if len(found) != 1 {
		t.Fatal(found)
	}
	spec := found[0].(Object)["spec"].(Object)
	clusters := spec["clusters"].([]any)
	if len(spec) != 1 || len(clusters) != 4 {
		t.Error(spec)
	}
	for _, it := range clusters {
		if _, has := it.(Object)["state"]; has {
			t.Error(it)
		}
	}
	if _, err := s.Request(http.MethodDelete, meshes+"/prod", "", nil); err != nil {
		t.Fatal(err)
	}
}
