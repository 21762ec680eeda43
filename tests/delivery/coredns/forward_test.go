// Package coredns asks a real CoreDNS, with the configuration that `clustermesh dns` prints, for names of Services.
package coredns

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/rewrite"
	"github.com/miekg/dns"
)

// upstream is the DNS service of another cluster.
type upstream struct {
	domain  string
	records []string
	asked   chan string
}

func (u upstream) ServeDNS(writer dns.ResponseWriter, query *dns.Msg) {
	question := query.Question[0]
	u.asked <- question.Name
	answer := new(dns.Msg)
	answer.SetReply(query)
	answer.Authoritative = true
	answer.RecursionAvailable = true
	answer.Rcode = dns.RcodeNameError
	name := question.Name
	for _, text := range u.records {
		record, err := dns.NewRR(strings.ReplaceAll(text, "DOMAIN", u.domain))
		if err != nil {
			panic(err)
		}
		header := record.Header()
		if header.Name != name {
			continue
		}
		answer.Rcode = dns.RcodeSuccess
		switch it := record.(type) {
		case *dns.CNAME:
			answer.Answer = append(answer.Answer, record)
			name = it.Target
		default:
			if header.Rrtype == question.Qtype {
				answer.Answer = append(answer.Answer, record)
			}
		}
	}
	if len(answer.Answer) == 0 {
		authority, err := dns.NewRR(u.domain + ". 5 IN SOA ns.dns." + u.domain + ". hostmaster." + u.domain + ". 1 7200 1800 86400 5")
		if err != nil {
			panic(err)
		}
		answer.Ns = append(answer.Ns, authority)
	}
	if err := writer.WriteMsg(answer); err != nil {
		panic(err)
	}
}

// listen answers as the upstream, and returns its address.
func (u upstream) listen(t *testing.T) string {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: socket, Handler: u}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return socket.LocalAddr().String()
}

// What the Service `web` of the namespace `shop`, a headless one, and ones of the type ExternalName have.
var records = []string{
	"alias.shop.svc.DOMAIN. 30 IN CNAME web.shop.svc.DOMAIN.",
	"web.shop.svc.DOMAIN. 30 IN A 10.43.7.7",
	"web.shop.svc.DOMAIN. 30 IN AAAA fd00:43::7",
	"_http._tcp.web.shop.svc.DOMAIN. 30 IN SRV 0 50 8080 web-0.web.shop.svc.DOMAIN.",
	"web-0.web.shop.svc.DOMAIN. 30 IN A 10.42.1.7",
	"outside.shop.svc.DOMAIN. 30 IN CNAME api.example.com.",
}

// printed is what `clustermesh dns` prints for a cluster of an example in which each cluster has a DNS service.
func printed(t *testing.T, arguments ...string) string {
	t.Helper()
	example, err := filepath.Abs("../../../examples/gitops")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Getenv("CLUSTERMESH"), append([]string{"-C", example, "dns"}, arguments...)...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// start serves a Corefile, and returns the address.
func start(t *testing.T, corefile string) string {
	t.Helper()
	dnsserver.Quiet = true
	caddy.Quiet = true
	instance, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), ServerTypeName: "dns"})
	if err != nil {
		t.Fatal(corefile, err)
	}
	t.Cleanup(func() { _ = instance.Stop() })
	return instance.Servers()[0].LocalAddr().String()
}

func ask(t *testing.T, address, name string, kind uint16) []string {
	t.Helper()
	query := new(dns.Msg)
	query.SetQuestion(name, kind)
	client := dns.Client{Timeout: 5 * time.Second}
	answer, _, err := client.Exchange(query, address)
	if err != nil {
		t.Fatal(name, err)
	}
	if answer.Question[0].Name != name {
		t.Error(name, "is answered with the question", answer.Question[0].Name)
	}
	found := []string{dns.RcodeToString[answer.Rcode]}
	for _, record := range answer.Answer {
		found = append(found, strings.Join(strings.Fields(record.String()), " "))
	}
	return found
}

// Both clusters have the same domain, as most clusters have.
func TestNamesOfOtherClusters(t *testing.T) {
	asked := make(chan string, 100)
	// The DNS of east answers, that of west must not be asked for names of east.
	east := upstream{domain: "cluster.local", records: records, asked: asked}
	west := upstream{domain: "cluster.local", asked: make(chan string, 100)}
	corefile := printed(t, "west")
	for old, new := range map[string]string{":53 {": ":0 {", "forward . 10.43.0.10": "forward . " + east.listen(t)} {
		if !strings.Contains(corefile, old) {
			t.Fatal(old, "is not in", corefile)
		}
		corefile = strings.ReplaceAll(corefile, old, new)
	}
	// What CoreDNS has for all other names.
	corefile += ".:0 {\n    forward . " + west.listen(t) + "\n}\n"
	address := start(t, corefile)
	zone := "svc.east.mesh.internal."
	for _, test := range []struct {
		name string
		kind uint16
		want []string
	}{
		{"web.shop.", dns.TypeA, []string{"NOERROR", "web.shop.ZONE 30 IN A 10.43.7.7"}},
		{"web.shop.", dns.TypeAAAA, []string{"NOERROR", "web.shop.ZONE 30 IN AAAA fd00:43::7"}},
		{"_http._tcp.web.shop.", dns.TypeSRV, []string{"NOERROR", "_http._tcp.web.shop.ZONE 30 IN SRV 0 50 8080 web-0.web.shop.ZONE"}},
		{"web-0.web.shop.", dns.TypeA, []string{"NOERROR", "web-0.web.shop.ZONE 30 IN A 10.42.1.7"}},
		{"alias.shop.", dns.TypeA, []string{"NOERROR", "alias.shop.ZONE 30 IN CNAME web.shop.ZONE", "web.shop.ZONE 30 IN A 10.43.7.7"}},
		{"outside.shop.", dns.TypeA, []string{"NOERROR", "outside.shop.ZONE 30 IN CNAME api.example.com."}},
		{"missing.shop.", dns.TypeA, []string{"NXDOMAIN"}},
		{"web.shop.", dns.TypeTXT, []string{"NOERROR"}},
	} {
		for range 2 {
			// The second answer is from the cache.
			got := ask(t, address, test.name+zone, test.kind)
			for index := range test.want {
				test.want[index] = strings.ReplaceAll(test.want[index], "ZONE", zone)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s%s %s: %q instead of %q", test.name, zone, dns.TypeToString[test.kind], got, test.want)
			}
		}
	}
	close(asked)
	names := map[string]int{}
	for name := range asked {
		names[name]++
		if !strings.HasSuffix(name, ".svc.cluster.local.") {
			t.Error("the DNS of east is asked for", name)
		}
	}
	if len(names) < 6 {
		t.Error("the DNS of east was asked only for", names)
	}
	// Its own names, and others that only look alike.
	for _, name := range []string{"web.shop.svc.cluster.local.", "mesh.internal.", "xsvc.east.mesh.internal.", "svc.north.mesh.internal."} {
		ask(t, address, name, dns.TypeA)
		if got := <-west.asked; got != name {
			t.Error(got, "is asked instead of", name)
		}
	}
}

// The value of the ConfigMap is the Corefile.
func TestConfigMapOfK3s(t *testing.T) {
	manifest := printed(t, "west", "--output", "k3s")
	head, value, found := strings.Cut(manifest, "data:\n  clustermesh.server: |\n")
	if !found || !strings.Contains(head, "name: coredns-custom\n  namespace: kube-system\n") {
		t.Fatal(manifest)
	}
	var lines []string
	for line := range strings.Lines(value) {
		lines = append(lines, strings.TrimPrefix(line, "    "))
	}
	if got := strings.Join(lines, ""); got != printed(t, "west") {
		t.Error(fmt.Sprintf("%q", got))
	}
}
