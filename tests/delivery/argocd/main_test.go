package argocd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/argoproj/argo-cd/v3/cmd/argocd-cmp-server/commands"
	log "github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"
)

// The test program is the plugin server too, under that name, as Argo CD's own program is all of its
// commands. A second program would take as long to link.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == pluginServer {
		if err := commands.NewCommand().Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Failures are what many tests are about, and returned anyway.
	log.SetLevel(log.FatalLevel)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	code := m.Run()
	running.stop()
	os.Exit(code)
}
