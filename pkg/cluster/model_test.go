package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// modelOf returns the model of a cluster with the objects of the index tests, a Corefile and an upstream's, as files.
// Version is that of the server.
func modelOf(t testing.TB, version, corefileText, upstream string) *Model {
	t.Helper()
	s := snapshot(t, objects)
	s.Override.Version = version
	if corefileText != "" {
		s.Texts = append(s.Texts, &Text{Kind: TextCorefile, Name: "Corefile", Data: corefileText})
	}
	if upstream != "" {
		s.Texts = append(s.Texts, &Text{Kind: TextUpstreamCorefile, Name: "upstream.Corefile", Data: upstream})
	}
	f := Derive(s)
	if f.DNS != nil && f.DNS.Corefile != nil && f.DNS.Corefile.ExpandErr != nil {
		t.Fatal(f.DNS.Corefile.ExpandErr)
	}
	return NewModel(s, f, NewIndex(s))
}

const usual = `.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . /etc/resolv.conf
    cache 30
}
`

// The answers to A and AAAA, or one word for both, as CoreDNS gives them: plugin/template, plugin/hosts,
// plugin/kubernetes, plugin/pkg/fall and core/dnsserver/server.go of 1.15.0.
func TestModelOfCorefile(t *testing.T) {
	const upstream = `.:1053 {
    template IN A a.example.test {
        match "^a[.]example[.]test[.]$"
        answer "{{ .Name }} 60 IN A 192.0.2.1"
        fallthrough
    }
    template ANY ANY a.example.test {
        match "^a[.]example[.]test[.]$"
        rcode NOERROR
        authority "a.example.test. 60 IN SOA ns.example.test. h.example.test. 1 60 60 60 60"
        fallthrough
    }
    template ANY ANY broken {
        rcode SERVFAIL
    }
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`
	for _, tc := range []struct {
		name, version, corefile, upstream string
		want                              map[string]string
	}{
		{"usual", "", usual, "", map[string]string{
			"web.shop.svc.cluster.local.":                 "address 10.96.1.1 2001:db8::1",
			"shop.svc.cluster.local.":                     "NODATA",
			"legacy.svc.cluster.local.":                   "NXDOMAIN", // the namespace was not read
			"nope.shop.svc.cluster.local.":                "NXDOMAIN",
			"db-0.db.shop.svc.cluster.local.":             "address 10.244.0.1 2001:db8::2",
			"10-0-0-1.shop.pod.cluster.local.":            "address 10.0.0.1",
			"alias.shop.svc.cluster.local.":               "unknown",
			"www.example.test.":                           "unknown",
			"1.1.96.10.in-addr.arpa.":                     "unknown",
			"shop.cluster.local.corp.example.":            "unknown",
			"web.shop.svc.cluster.local.cluster.local.":   "NXDOMAIN",
			"_http._tcp.web.shop.svc.cluster.local.":      "address 10.96.1.1 2001:db8::1",
			"_nope._tcp.web.shop.svc.cluster.local.":      "NXDOMAIN",
			"web.shop.svc.cluster.local.example.invalid.": "unknown",
		}},
		{"with the upstream", "", usual, upstream, map[string]string{
			"a.example.test.":               "address 192.0.2.1",
			"b.a.example.test.":             "NXDOMAIN", // both templates pass it on to the last
			"x.broken.":                     "SERVFAIL",
			"anything.":                     "NXDOMAIN",
			"alias.shop.svc.cluster.local.": "CNAME alone",
			"shop.svc.cluster.local.":       "NODATA",
		}},
		{"options of kubernetes", "", `lab.example cluster.local {
    kubernetes {
        pods disabled
        labels exposed=yes
        namespaces shop empty
        multicluster lab.example
    }
}
`, "", map[string]string{
			"web.shop.svc.cluster.local.":      "address 10.96.1.1 2001:db8::1",
			"db.shop.svc.cluster.local.":       "NXDOMAIN",
			"10-0-0-1.shop.pod.cluster.local.": "NXDOMAIN",
			"web.shop.svc.lab.example.":        "unknown",
			"elsewhere.":                       "REFUSED",
		}},
		{"labels of namespaces", "", `. {
    kubernetes cluster.local {
        namespace_labels team=a
        fallthrough
    }
    hosts {
        192.0.2.9 x
    }
}
`, "", map[string]string{
			"web.shop.svc.cluster.local.": "SERVFAIL", // hosts stands before kubernetes and does not pass on
		}},
		{"labels of namespaces, no hosts", "", `. {
    kubernetes cluster.local {
        namespace_labels team=a
    }
}
`, "", map[string]string{
			"web.shop.svc.cluster.local.": "address 10.96.1.1 2001:db8::1",
			"empty.svc.cluster.local.":    "NXDOMAIN",
			"elsewhere.":                  "SERVFAIL",
		}},
		{"hosts", "", `. {
    hosts {
        192.0.2.9 four.example.test both.example.test
        2001:db8::9 both.example.test six.example.test
        192.0.2.8 nope.shop.svc.cluster.local
        fallthrough
    }
    kubernetes cluster.local
    forward . /etc/resolv.conf
}
`, upstream, map[string]string{
			"four.example.test.":           "A address, AAAA NODATA",
			"six.example.test.":            "A NODATA, AAAA address",
			"both.example.test.":           "address 192.0.2.9 2001:db8::9",
			"nope.shop.svc.cluster.local.": "A address, AAAA NODATA",
			"web.shop.svc.cluster.local.":  "address 10.96.1.1 2001:db8::1",
			"other.example.test.":          "NXDOMAIN",
		}},
		{"hosts of a zone and of a file", "", `. {
    hosts /etc/coredns/none lan.test
    forward . /etc/resolv.conf
}
`, upstream, map[string]string{
			"x.lan.test.":     "unknown",
			"a.example.test.": "address 192.0.2.1",
		}},
		{"hosts of k3s", "", `. {
    hosts /etc/coredns/NodeHosts {
        fallthrough
    }
    kubernetes cluster.local
}
`, "", map[string]string{"shop.svc.cluster.local.": "NODATA", "node1.": "unknown"}},
		{"a part of a Corefile", "", `corp.test {
    hosts {
        192.0.2.9 a.corp.test
    }
}
`, "", map[string]string{
			"a.corp.test.": "A address, AAAA NODATA", "b.corp.test.": "SERVFAIL", "shop.svc.cluster.local.": "unknown", "a.example.test.": "unknown",
		}},
		{"the longest zone wins, and a hole", "", usual + `svc.cluster.local {
    errors
}
example.test:1053 {
    errors
}
corp.test {
    forward . 192.0.2.53
}
`, upstream, map[string]string{
			"web.shop.svc.cluster.local.": "SERVFAIL",
			"shop.pod.cluster.local.":     "NODATA",
			"a.example.test.":             "address 192.0.2.1", // that block listens elsewhere
			"a.corp.test.":                "unknown",
		}},
		{"blocks without plugins, by view and by address", "", usual + `empty.test {
}
view.test {
    view x {
        expr true
    }
    whoami
}
two.test {
    bind 192.0.2.1
    whoami
}
two.test {
    bind 192.0.2.2
    whoami
}
`, "", map[string]string{
			"empty.test.":   "REFUSED",
			"a.view.test.":  "unknown",
			"two.test.":     "unknown",
			"outside.test.": "unknown",
		}},
		{"capitals, old", "1.14.6", "Lan.Test {\n    hosts {\n        192.0.2.9 a.lan.test\n    }\n}\ncluster.local {\n    kubernetes\n}\n", "", map[string]string{"a.lan.test.": "REFUSED"}},
		{"capitals, new", "1.14.7", "Lan.Test {\n    hosts {\n        192.0.2.9 a.lan.test\n    }\n}\ncluster.local {\n    kubernetes\n}\n", "", map[string]string{"a.lan.test.": "A address, AAAA NODATA"}},
		{"wildcards, old", "1.8.6", usual, "", map[string]string{"*.shop.svc.cluster.local.": "address 10.244.0.1 10.244.0.2 2001:db8::2 10.96.1.1 2001:db8::1", "web.*.svc.cluster.local.": "address 10.96.1.1 2001:db8::1"}},
		{"wildcards, new", "1.9.0", usual, "", map[string]string{"*.shop.svc.cluster.local.": "NXDOMAIN"}},
		{"rewrite", "", `. {
    rewrite name exact Ledger.shop.svc.cluster.local web.shop.svc.cluster.local
    rewrite stop name regex ^pay[.](.*)$ {1} answer auto
    rewrite stop {
        name suffix .corp.test .svc.cluster.local
        answer auto
    }
    rewrite name substring brid bird
    rewrite name prefix pre post
    rewrite type HINFO A
    rewrite ttl regex .* 30
    kubernetes cluster.local
    forward . /etc/resolv.conf
}
`, upstream, map[string]string{
			"ledger.shop.svc.cluster.local.": "unknown",
			"pay.shop.svc.cluster.local.":    "unknown",
			"pays.shop.svc.cluster.local.":   "NXDOMAIN",
			"a.corp.test.":                   "unknown",
			"hybrid.cluster.local.":          "unknown",
			"pre.cluster.local.":             "unknown",
			"web.shop.svc.cluster.local.":    "address 10.96.1.1 2001:db8::1",
			"z.example.test.":                "NXDOMAIN",
		}},
		{"rewrite of types", "", ". {\n    rewrite type AAAA A\n    kubernetes cluster.local\n}\n", "", map[string]string{"web.shop.svc.cluster.local.": "unknown"}},
		{"template", "", `. {
    template IN A wild.test {
        answer "{{ .Name }} 60 IN A 192.0.2.7"
    }
    template ANY ANY wild.test {
        rcode NXDOMAIN
    }
    template IN ANY fall.test {
        match ^only[.]fall[.]test[.]$
        answer "{{ .Name }} IN CNAME web.shop.svc.cluster.local."
        fallthrough
    }
    template IN A chain.test {
        answer "{{ .Name }} 60 IN CNAME x.y." "x.y. IN A 192.0.2.6"
    }
    template IN A dangling.test {
        answer "{{ .Name }} 60 IN CNAME gone.shop.svc.cluster.local."
    }
    template IN A stuck.test {
        match ^a[.]
        answer "{{ .Name }} 60 A 192.0.2.7"
    }
    template IN A odd.test {
        answer "{{ if true }}{{ .Name }} 60 A 192.0.2.7{{ end }}"
    }
    template IN A group.test {
        match (?P<h>[0-9]+)
        answer "{{ .Name }} 60 A {{ .Group.h }}"
    }
    template IN A loop.test {
        answer "{{ .Name }} 60 CNAME {{ .Name }}"
    }
    template CH ANY . {
        rcode REFUSED
    }
    template IN A badkey.test {
        rcode BADKEY
    }
    kubernetes cluster.local
    forward . /etc/resolv.conf
}
`, upstream, map[string]string{
			"x.wild.test.":                "A address, AAAA NXDOMAIN",
			"only.fall.test.":             "address",
			"other.fall.test.":            "NXDOMAIN",
			"x.chain.test.":               "A address, AAAA NXDOMAIN",
			"x.dangling.test.":            "A CNAME alone, AAAA NXDOMAIN",
			"b.stuck.test.":               "A SERVFAIL, AAAA NXDOMAIN",
			"a.stuck.test.":               "A address, AAAA NXDOMAIN",
			"x.odd.test.":                 "unknown",
			"7.group.test.":               "A address, AAAA NXDOMAIN",
			"x.loop.test.":                "unknown",
			"x.badkey.test.":              "unknown",
			"web.shop.svc.cluster.local.": "address 10.96.1.1 2001:db8::1",
		}},
		{"a template that hides kubernetes", "", `. {
    kubernetes cluster.local
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
`, "", map[string]string{"web.shop.svc.cluster.local.": "NXDOMAIN"}},
		{"a template that does not match, old", "1.9.2", ". {\n    template IN A a.test {\n        match ^x\n        answer \"{{ .Name }} A 192.0.2.1\"\n    }\n    kubernetes cluster.local\n}\n", "", map[string]string{
			"b.a.test.": "A no reply, AAAA SERVFAIL",
		}},
		{"a plugin without arguments", "", ". {\n    omada\n    kubernetes cluster.local\n    forward . 192.0.2.1\n}\n", upstream, map[string]string{
			"shop.svc.cluster.local.": "NODATA", "a.example.test.": "unknown",
		}},
		{"other plugins", "", `. {
    file db.lan lan.test
    k8s_external ext.test
    k8s_gateway gate.test
    ocp_dnsnameresolver
    kubernetes cluster.local {
        fallthrough
    }
    fanout . 192.0.2.1
}
`, "", map[string]string{
			"a.lan.test.":                  "unknown",
			"a.ext.test.":                  "unknown",
			"a.gate.test.":                 "unknown",
			"else.test.":                   "unknown",
			"nope.shop.svc.cluster.local.": "unknown", // passed on to somebody who may know it
			"shop.svc.cluster.local.":      "NODATA",
		}},
		{"the order of a Corefile does not count", "", ". {\n    whoami\n    forward . 192.0.2.1\n    file db lan.test\n    kubernetes cluster.local\n}\n", upstream, map[string]string{
			"a.lan.test.": "unknown", "a.example.test.": "address 192.0.2.1", "shop.svc.cluster.local.": "NODATA",
		}},
		{"forward with exceptions", "", `. {
    kubernetes cluster.local
    forward . 192.0.2.1 {
        except lan.test
    }
}
`, upstream, map[string]string{"a.lan.test.": "SERVFAIL", "a.example.test.": "address 192.0.2.1"}},
		{"autopath", "", ". {\n    autopath @kubernetes\n    kubernetes cluster.local {\n        pods verified\n    }\n}\n", "", map[string]string{
			"shop.svc.cluster.local.": "unknown", "web.shop.svc.cluster.local.": "unknown",
		}},
		{"environment that is not known", "", "{$ZONE}.test {\n    whoami\n}\n" + usual, "", map[string]string{"a.test.": "unknown", "shop.svc.cluster.local.": "NODATA"}},
		{"two domains", "", ". {\n    kubernetes cluster.local old.local in-addr.arpa\n}\n", "", map[string]string{
			"web.shop.svc.old.local.": "address 10.96.1.1 2001:db8::1", "shop.svc.old.local.": "NODATA", "shop.svc.cluster.local.": "NODATA",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := modelOf(t, tc.version, tc.corefile, tc.upstream)
			for name, want := range tc.want {
				a := m.Answer(name)
				if got := a.String(); got != want && !(strings.HasPrefix(want, "A ") && perType(a) == want) {
					t.Errorf("%s: %s (%s), want %s; %s", name, got, perType(a), want, a.Note)
				}
				if a.Note == "" && !a.HasAddress() {
					t.Errorf("%s: %s without a reason", name, a)
				}
			}
		})
	}
}

func perType(a resolve.Answer) string {
	if !a.Known {
		return "unknown"
	}
	return fmt.Sprintf("A %s, AAAA %s", a.A, a.AAAA)
}

// A name in two zones of the cluster may lead from one to the other for ever.
func TestModelAliasesThroughTwoZones(t *testing.T) {
	s := snapshot(t, `
kind: Namespace
metadata: {name: shop}
---
kind: Service
metadata: {name: a, namespace: shop}
spec: {type: ExternalName, externalName: b.shop.svc.old.local}
---
kind: Service
metadata: {name: b, namespace: shop}
spec: {type: ExternalName, externalName: a.shop.svc.cluster.local}
`)
	s.Texts = []*Text{{Kind: TextCorefile, Name: "Corefile", Data: ". {\n    kubernetes cluster.local old.local\n}\n"}}
	f := Derive(s)
	a := NewModel(s, f, NewIndex(s)).Answer("a.shop.svc.cluster.local.")
	if a.Known && a.HasAddress() {
		t.Errorf("a loop answers %s", a)
	}
}

func TestModelByImplementation(t *testing.T) {
	for _, tc := range []struct {
		impl Implementation
		want map[string]string
	}{
		{CoreDNS, map[string]string{
			"shop.svc.cluster.local.": "NODATA", "web.shop.svc.cluster.local.": "address 10.96.1.1 2001:db8::1", "www.example.test.": "unknown",
		}},
		{KubeDNS, map[string]string{
			// The namespace of an ExternalName Service answers with its target.
			"shop.svc.cluster.local.": "unknown", "empty.svc.cluster.local.": "NXDOMAIN",
			"web.shop.svc.cluster.local.": "address 10.96.1.1 2001:db8::1", "a.corp.test.": "unknown",
		}},
		{Unknown, map[string]string{
			// CoreDNS says NODATA, kube-dns NXDOMAIN.
			"empty.svc.cluster.local.": "unknown", "web.shop.svc.cluster.local.": "address 10.96.1.1 2001:db8::1",
			"nope.shop.svc.cluster.local.": "NXDOMAIN",
		}},
	} {
		s := snapshot(t, objects)
		s.Override.Implementation = tc.impl
		f := Derive(s)
		m := NewModel(s, f, NewIndex(s))
		for name, want := range tc.want {
			if got := m.Answer(name).String(); got != want {
				t.Errorf("%s: %s is %s, want %s", tc.impl, name, got, want)
			}
		}
		if m.Domain() != "cluster.local." {
			t.Errorf("domain %s", m.Domain())
		}
	}
}

func TestAliasLimit(t *testing.T) {
	for _, tc := range []struct {
		o    Override
		want int
	}{
		{Override{Implementation: CoreDNS, Version: "1.12.0"}, 8},
		{Override{Implementation: CoreDNS, Version: "1.12.1"}, 11},
		{Override{Implementation: KubeDNS}, 8},
		{Override{Implementation: Unknown}, 8},
	} {
		s := &Snapshot{Override: tc.o}
		if got := NewModel(s, Derive(s), NewIndex(s)).AliasLimit(); got != tc.want {
			t.Errorf("%v follows %d, want %d", tc.o, got, tc.want)
		}
	}
}

// A Corefile that the server would not load says nothing about what the running one answers.
func TestModelOfABrokenCorefile(t *testing.T) {
	s := snapshot(t, objects)
	s.Texts = []*Text{{Kind: TextCorefile, Name: "Corefile", Data: ". {\n    whoami\n"}}
	f := Derive(s)
	if f.DNS.Corefile.Err == nil {
		t.Fatal("the Corefile is accepted")
	}
	if got := NewModel(s, f, NewIndex(s)).Answer("shop.svc.cluster.local.").String(); got != "NODATA" {
		t.Errorf("the namespace is %s", got)
	}
}

func TestKnownOutsideNames(t *testing.T) {
	m := modelOf(t, "", `. {
    hosts {
        192.0.2.9 b.example.test
        192.0.2.8 own.shop.svc.cluster.local
        fallthrough
    }
    kubernetes cluster.local
    forward . /etc/resolv.conf
}
`, `.:1053 {
    template IN A a.example.test {
        match "^a[.]example\.test[.]$"
        answer "{{ .Name }} 60 IN A 192.0.2.1"
        fallthrough
    }
    template IN A zone.test {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
    template IN AAAA zone.test {
        answer "{{ .Name }} 60 IN AAAA 2001:db8::1"
    }
    template IN A many.test {
        match "^.*[.]many[.]test[.]$"
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`)
	got := map[string]string{}
	for _, k := range m.KnownOutsideNames() {
		got[k.Name] = k.Position.String()
	}
	want := map[string]string{
		"a.example.test.": "upstream.Corefile:2:5", "zone.test.": "upstream.Corefile:7:5", "b.example.test.": "Corefile:3:19",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLiteral(t *testing.T) {
	for pattern, want := range map[string]string{
		`^a[.]b\.$`: "a.b.", `^a$`: "a", `^a.b$`: "", `a`: "", `^a`: "", `a$`: "", `^(a)$`: "", `^a|b$`: "", `(`: "", `^(?i)a$`: "",
		strings.Repeat("a", maxPattern+1): "",
	} {
		got := literal(pattern)
		if pattern == `^(?i)a$` {
			continue // syntax folds the case of a literal; the name is checked against the model
		}
		if got != want {
			t.Errorf("%s spells %q, want %q", pattern, got, want)
		}
	}
}

func TestBehindNodeLocal(t *testing.T) {
	s := snapshot(t, objects, gke)
	s.Templates = s.Templates[1:] // without kube-dns
	s.Texts = []*Text{
		{Kind: TextCorefile, Name: "Corefile", Data: `. {
    hosts {
        192.0.2.9 own.example.test
        fallthrough
    }
    kubernetes gke.example
    forward . 192.0.2.2
}
`},
		{Kind: TextUpstreamCorefile, Name: "upstream.Corefile", Data: ".:53 {\n    template ANY ANY {\n        rcode NXDOMAIN\n    }\n}\n"},
	}
	f := Derive(s)
	m := NewModel(s, f, NewIndex(s))
	for name, want := range map[string]string{
		"shop.svc.gke.example.": "NODATA",
		// The node cache sends it past CoreDNS.
		"own.example.test.": "NXDOMAIN",
		"a.corp.test.":      "unknown",
	} {
		if got := m.Answer(name).String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"a.lan.test.": "lan.test. ConfigMap kube-system/node-local-dns Corefile:4:1", "a.other.test.": " ", "web.shop.svc.gke.example.": " ",
	} {
		zone, at := f.OnlyBeforeDNS(name)
		if got := zone + " " + at.String(); got != want {
			t.Errorf("OnlyBeforeDNS(%s) is %q, want %q", name, got, want)
		}
	}
	s.Texts[0].Data = strings.Replace(s.Texts[0].Data, "192.0.2.2", "192.0.2.1", 1)
	if zone, _ := Derive(s).OnlyBeforeDNS("a.lan.test."); zone != "" {
		t.Error("CoreDNS asks the same server and does not know the zone")
	}
}

// A Service may send port 53 to another port of the pods, by name.
func TestTargetPort(t *testing.T) {
	s := snapshot(t, objects, openshift)
	f := Derive(s)
	if got := targetPort(f.DNS); got != 5353 {
		t.Errorf("port %d", got)
	}
	if got := NewModel(s, f, NewIndex(s)).Answer("shop.svc.cluster.local.").String(); got != "NODATA" {
		t.Errorf("the namespace is %s", got)
	}
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string]string{
		".:53":                        "dns 53 .",
		":53":                         "dns 53 .",
		"Example.test":                "dns 0 example.test.",
		"tls://example.test:8853":     "tls 8853 example.test.",
		"https://.":                   "https 0 .",
		"10.0.0.0/8":                  "dns 0 10.in-addr.arpa.",
		"192.0.2.128/25:53":           "dns 53 128.2.0.192.in-addr.arpa. … 255.2.0.192.in-addr.arpa.",
		"2001:db8::/32":               "dns 0 8.b.d.0.1.0.0.2.ip6.arpa.",
		"2001:db8::/31":               "dns 0 8.b.d.0.1.0.0.2.ip6.arpa. … 9.b.d.0.1.0.0.2.ip6.arpa.",
		"a..b":                        "none",
		"example.test:99999":          "none",
		strings.Repeat("a", 64) + ".": "none",
	} {
		k, ok := parseKey(text)
		got := "none"
		if ok {
			got = fmt.Sprintf("%s %d %s", k.transport, k.port, k.zones[0])
			if n := len(k.zones); n > 1 {
				got += " … " + k.zones[n-1]
			}
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add(usual, ". {\n    template IN A a.test {\n        match ^a\n        answer \"{{ .Name }} A 192.0.2.1\"\n    }\n}\n", "a.test.")
	f.Add(". {\n    hosts /x lan.test {\n        192.0.2.1 a.lan.test\n        fallthrough\n    }\n    rewrite name regex (a+)+$ b\n}\n", "10.0.0.0/9 {\n    forward . 192.0.2.1\n}\n", "a.lan.test.")
	f.Add("(s) {\n    rewrite stop {\n        name suffix a b\n    }\n}\n{$A} {\n    import s\n    kubernetes {\n        labels a in (\n        multicluster\n    }\n}\n", "", "web.shop.svc.cluster.local.")
	s := snapshot(f, objects)
	f.Fuzz(func(t *testing.T, main, upstream, name string) {
		fuzzed := *s
		fuzzed.Texts = []*Text{{Kind: TextCorefile, Name: "a", Data: main}, {Kind: TextUpstreamCorefile, Name: "b", Data: upstream}}
		facts := Derive(&fuzzed)
		m := NewModel(&fuzzed, facts, NewIndex(&fuzzed))
		facts.ServesZone("corp.test.")
		facts.OnlyBeforeDNS("a.corp.test.")
		if abs, err := resolve.Absolute(name); err == nil {
			m.Answer(abs)
		}
		for _, k := range m.KnownOutsideNames() {
			if a := m.Answer(k.Name); !a.Known || !a.HasAddress() {
				t.Errorf("%s is known to be answered and is %s", k.Name, a)
			}
		}
	})
}
