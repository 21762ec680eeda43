// Command server is a Kubernetes cluster for tests: etcd and the API server in one process, on the
// loopback.
//
//	server -dir DIR [-collect-garbage] [-- FLAG OF KUBE-APISERVER...]
//
// It writes DIR/kubeconfig (see identities.go), prints `ready DIR/kubeconfig` and ends when its
// standard input ends, so it cannot outlive the test that started it. Started again in the same folder, it
// has the same address, identities and objects. Kubernetes keeps global state:
// a test that needs two clusters starts two processes.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// How long a clean shutdown may take after the standard input has ended.
const grace = 5 * time.Second

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "", "the folder for the files of the cluster: an empty one, or that of an earlier run")
	collects := flag.Bool("collect-garbage", false, "run the garbage collector of kube-controller-manager too")
	flag.Parse()
	if *dir == "" {
		log.Fatal("-dir is required")
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		time.AfterFunc(grace, func() { os.Exit(0) })
	}()
	if err := run(ctx, *dir, *collects, flag.Args()); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, collects bool, flags []string) error {
	listener, pool, err := prepare(dir)
	if err != nil {
		return err
	}
	address := "https://" + listener.Addr().String()
	etcd, err := startEtcd(dir)
	if err != nil {
		return err
	}
	defer etcd.Close()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	go announce(ctx, address, pool, func() error {
		if collects {
			if err := collectGarbage(ctx, kubeconfig); err != nil {
				return err
			}
		}
		fmt.Println("ready", kubeconfig)
		return nil
	})
	return serve(ctx, dir, etcd.Clients[0].Addr().String(), listener, flags)
}

// prepare listens at the address of an earlier run with its identities, or at a free one with new ones.
func prepare(dir string) (net.Listener, *x509.CertPool, error) {
	file := filepath.Join(dir, "address")
	earlier, err := os.ReadFile(file)
	if err == nil {
		listener, err := net.Listen("tcp", string(earlier))
		if err != nil {
			return nil, nil, err
		}
		authority, err := os.ReadFile(filepath.Join(dir, authorityCertificate))
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		return listener, pool, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	address := listener.Addr().String()
	pool, err := writeIdentities(dir, "https://"+address)
	if err == nil {
		err = os.WriteFile(file, []byte(address), 0o600)
	}
	return listener, pool, err
}

// startEtcd starts etcd on free ports. Nothing is synced to the disk: no test needs its data after a
// crash.
func startEtcd(dir string) (*embed.Etcd, error) {
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = loopback, loopback
	config.ListenPeerUrls, config.AdvertisePeerUrls = loopback, loopback
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	config.LogOutputs = []string{filepath.Join(dir, "etcd.log")}
	etcd, err := embed.StartEtcd(config)
	if err == nil {
		<-etcd.Server.ReadyNotify()
	}
	return etcd, err
}

// serve does what the command kube-apiserver does with its flags, but on an open listener.
func serve(ctx context.Context, dir, etcd string, listener net.Listener, more []string) error {
	in := func(name string) string { return filepath.Join(dir, name) }
	port := listener.Addr().(*net.TCPAddr).Port
	settings := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, set := range settings.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	err := flags.Parse(append([]string{
		"--etcd-servers=http://" + etcd,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + in("run"),
		"--tls-cert-file=" + in(servingCertificate),
		"--tls-private-key-file=" + in(servingKey),
		"--client-ca-file=" + in(authorityCertificate),
		"--token-auth-file=" + in(tokens),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + in(accountKey),
		"--service-account-key-file=" + in(accountKey),
		"--service-cluster-ip-range=10.43.0.0/16",
		"--authorization-mode=RBAC",
		"--profiling=false",
	}, more...))
	if err != nil {
		return err
	}
	settings.SecureServing.Listener = listener
	settings.SecureServing.BindPort = port
	if err := settings.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	logs.InitLogs()
	if err := logsapi.ValidateAndApply(settings.Logs, utilfeature.DefaultFeatureGate); err != nil {
		return err
	}
	completed, err := complete(ctx, settings)
	if err != nil {
		return err
	}
	if err := errors.Join(completed.Validate()...); err != nil {
		return err
	}
	return app.Run(ctx, completed)
}

// announce waits until the API server accepts requests.
func announce(ctx context.Context, address string, pool *x509.CertPool, ready func() error) {
	client := http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
	}
	for ctx.Err() == nil {
		if answer, err := client.Get(address + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				if err := ready(); err != nil {
					log.Fatal(err)
				}
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}
