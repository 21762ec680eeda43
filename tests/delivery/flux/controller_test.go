package flux

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"clustermesh.test/cluster"
)

// The controllers themselves are internal packages of their modules. This file calls the libraries
// that they call, in their order: source-controller v1.9.6 gitrepository_controller.go,
// kustomize-controller v1.9.6 kustomization_controller.go.

// Controllers is a Flux that has one source and one Kustomization.
type controllers struct {
	source        *sourcev1.GitRepository
	kustomization *kustomizev1.Kustomization
	// status.inventory of the Kustomization.
	inventory object.ObjMetadataSet
}

// shipped is a Flux with the files of flux/, for a target.
func shipped(t *testing.T, target string) *controllers {
	t.Helper()
	flux := &controllers{
		source:        cluster.Read[sourcev1.GitRepository](t, cluster.Project(t, "flux", "gitrepository.yaml")),
		kustomization: cluster.Read[kustomizev1.Kustomization](t, cluster.Project(t, "flux", "peers-west.yaml")),
	}
	spec := &flux.kustomization.Spec
	spec.Path = strings.Replace(spec.Path, "west", target, 1)
	return flux
}

// artifact copies the files that source-controller puts into the artifact: regular files that neither
// a `.sourceignore` nor spec.ignore leaves out.
func (c *controllers) artifact(t *testing.T, repository string) string {
	t.Helper()
	domain := strings.Split(repository, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(repository, domain)
	if err != nil {
		t.Fatal(err)
	}
	if c.source.Spec.Ignore != nil {
		patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(*c.source.Spec.Ignore), domain)...)
	}
	matcher := sourceignore.NewDefaultMatcher(patterns, domain)
	into := t.TempDir()
	err = filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !(entry.Type().IsRegular() || entry.IsDir()) {
			return err
		}
		if matcher.Match(strings.Split(path, string(filepath.Separator)), entry.IsDir()) {
			return nil
		}
		relative, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(into, relative), 0o755)
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(into, relative)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(into, relative), text, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return into
}

// build returns the objects that kustomize-controller would apply.
func (c *controllers) build(t *testing.T, repository string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	root := c.artifact(t, repository)
	folder := filepath.Join(root, c.kustomization.Spec.Path)
	if _, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("kustomization path not found: %w", err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.kustomization)
	if err != nil {
		return nil, err
	}
	settings := unstructured.Unstructured{Object: fields}
	if _, err := kustomize.NewGenerator(root, settings).WriteFile(folder); err != nil {
		return nil, err
	}
	resources, err := kustomize.SecureBuild(root, folder, true)
	if err != nil {
		return nil, err
	}
	for _, it := range resources.Resources() {
		if it.GetName() == "" || it.GetKind() == "" || it.GetApiVersion() == "" {
			return nil, fmt.Errorf("not an object of Kubernetes: %s", it)
		}
		if c.kustomization.Spec.PostBuild == nil {
			continue
		}
		substituted, err := kustomize.SubstituteVariables(context.Background(), nil, settings, it, kustomize.SubstituteWithDryRun(true))
		if err != nil {
			return nil, err
		}
		if substituted != nil {
			if _, err := resources.Replace(it); err != nil {
				return nil, err
			}
		}
	}
	text, err := resources.AsYaml()
	if err != nil {
		return nil, err
	}
	return ssautil.ReadObjects(bytes.NewReader(text))
}

// outcome is what a reconcile did to the cluster, by the names of the objects.
type outcome struct {
	applied, deleted []string
	requests         int64
}

// reconcile builds, applies, prunes and waits.
func (c *controllers) reconcile(t *testing.T, server *cluster.Server, repository string) (outcome, error) {
	t.Helper()
	var done outcome
	objects, err := c.build(t, repository)
	if err != nil {
		return done, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		return done, err
	}
	// The controller's defaults for --kube-api-qps and --kube-api-burst.
	config.QPS, config.Burst = 50, 300
	config.WarningHandler = rest.NoWarnings{}
	if account := c.kustomization.Spec.ServiceAccountName; account != "" {
		cluster.GrantDelivery(t, server)
		config.Impersonate.UserName = fmt.Sprintf("system:serviceaccount:%s:%s", c.kustomization.Namespace, account)
	}
	var requests atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counter{next, &requests}
	})
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	poller := polling.NewStatusPoller(kube, kube.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(kube, poller, ssa.Owner{
		Field: "kustomize-controller",
		Group: kustomizev1.GroupVersion.Group,
	})
	manager.SetOwnerLabels(objects, c.kustomization.Name, c.kustomization.Namespace)
	if err := normalize.UnstructuredList(objects); err != nil {
		return done, err
	}
	options := ssa.DefaultApplyOptions()
	options.Force = c.kustomization.Spec.Force
	options.Cleanup = cleanup
	changes := ssa.NewChangeSet()
	if len(objects) > 0 {
		if changes, err = manager.ApplyAllStaged(ctx, objects, options); err != nil {
			return done, err
		}
	}
	for _, it := range changes.Entries {
		if it.Action != ssa.UnchangedAction {
			done.applied = append(done.applied, it.ObjMetadata.Name)
		}
	}
	done.requests = requests.Load()
	current := changes.ToObjMetadataSet()
	var stale []*unstructured.Unstructured
	for _, it := range c.inventory.Diff(current) {
		gone := &unstructured.Unstructured{}
		mapping, err := kube.RESTMapper().RESTMapping(it.GroupKind)
		if err != nil {
			return done, err
		}
		gone.SetGroupVersionKind(mapping.GroupVersionKind)
		gone.SetName(it.Name)
		gone.SetNamespace(it.Namespace)
		stale = append(stale, gone)
	}
	c.inventory = current
	if c.kustomization.Spec.Prune {
		deleted, err := manager.DeleteAll(ctx, stale, ssa.DeleteOptions{
			PropagationPolicy: metav1.DeletePropagationBackground,
			Inclusions:        manager.GetOwnerLabels(c.kustomization.Name, c.kustomization.Namespace),
		})
		if err != nil {
			return done, err
		}
		for _, it := range deleted.Entries {
			done.deleted = append(done.deleted, it.ObjMetadata.Name)
		}
	}
	if c.kustomization.Spec.Wait && len(current) > 0 {
		return done, manager.WaitForSetWithContext(ctx, current, ssa.WaitOptions{
			Interval: 100 * time.Millisecond,
			Timeout:  20 * time.Second,
		})
	}
	return done, nil
}

// cleanup is what the controller removes from objects before it applies them: what kubectl has done to them. A
// test compares it with the source of the controller.
var cleanup = ssa.ApplyCleanupOptions{
	Annotations: []string{
		corev1.LastAppliedConfigAnnotation,
		"kustomize.toolkit.fluxcd.io/checksum",
		"fluxcd.io/sync-checksum",
	},
	Labels: []string{"fluxcd.io/sync-gc-mark"},
	FieldManagers: []ssa.FieldManager{
		{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
		{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
		{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
		{Name: "kustomize-controller", OperationType: metav1.ManagedFieldsOperationUpdate},
	},
	Exclusions: map[string]string{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.MergeValue},
}

// counter counts requests.
type counter struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.next.RoundTrip(request)
}
