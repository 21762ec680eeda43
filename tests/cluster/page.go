package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?ms)^( *)```yaml\n *# ([^\n]+)\n(.*?)^ *```$")

// Blocks returns the files that a section of a page shows, by their paths in the first line of each block.
func Blocks(t testing.TB, section string, page ...string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(Project(t, page...))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatal(page, "has no section", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	blocks := map[string]string{}
	for _, it := range block.FindAllStringSubmatch(rest, -1) {
		blocks[it[2]] = regexp.MustCompile("(?m)^"+it[1]).ReplaceAllString(it[3], "")
	}
	return blocks
}

// WithApps returns a repository of `init` with what docs/how-to/templates.md adds for files of one's own.
func WithApps(t testing.TB, gitops, template string) (string, map[string]string) {
	t.Helper()
	repository := Started(t, gitops)
	blocks := Blocks(t, "Deliver them", "docs", "how-to", "templates.md")
	for _, name := range []string{"templates/networks.yaml.j2", template} {
		Write(t, blocks[name], repository, name)
	}
	_, outputs, _ := strings.Cut(blocks["clustermesh.yaml"], "are there\n")
	outputs = strings.NewReplacer("templates/flux-apps.yaml.j2", template, "path: flux/apps", "path: "+gitops+"/apps").Replace(outputs)
	config, err := os.ReadFile(filepath.Join(repository, "clustermesh.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	Write(t, string(config)+outputs, repository, "clustermesh.yaml")
	for _, arguments := range [][]string{{"render"}, {"render", "--check"}} {
		if run := Clustermesh(t, repository, arguments...); run.Code != 0 {
			t.Fatal(arguments, run)
		}
	}
	return repository, blocks
}
