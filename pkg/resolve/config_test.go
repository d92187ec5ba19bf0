package resolve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseConfig(t *testing.T) {
	tests := []struct {
		name, src string
		want      Config
		problems  []string
	}{
		{"empty", "", NewConfig(), nil},
		{
			"a pod's file",
			"search n.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
			Config{
				Nameservers: []string{"10.96.0.10"},
				Search:      []string{"n.svc.cluster.local.", "svc.cluster.local.", "cluster.local."},
				NDots:       5, Timeout: 5, Attempts: 2, Options: []string{"ndots:5"},
			},
			nil,
		},
		{
			"the last of search and domain wins; domain takes one word",
			"search a b\r\ndomain c d\n; comment\n# comment\n",
			Config{Search: []string{"c."}, NDots: 1, Timeout: 5, Attempts: 2},
			[]string{"f:2:1: domain replaces the search list of line 1: the last one wins"},
		},
		{
			"an empty search keeps the list",
			"search a\nsearch\n",
			Config{Search: []string{"a."}, NDots: 1, Timeout: 5, Attempts: 2},
			[]string{"f:2:1: search without a domain"},
		},
		{
			"options merge and are capped",
			"options ndots:3 rotate timeout:2\noptions ndots:99 attempts:9\n\toptions ndots:2\n",
			Config{NDots: 15, Timeout: 2, Attempts: 5, Options: []string{"ndots:99", "rotate", "timeout:2", "attempts:9"}},
			[]string{
				`f:2:9: option "ndots:99" is over the limit, 15 is used`,
				`f:2:18: option "attempts:9" is over the limit, 5 is used`,
				"f:3:2: the line starts with a blank, so glibc and musl pass over it and Go does not",
			},
		},
		{
			"options that are no numbers",
			"options ndots:-1 timeout:x ndots\n",
			Config{NDots: 1, Timeout: 5, Attempts: 2, Options: []string{"ndots", "timeout:x"}},
			[]string{
				`f:1:9: option "ndots:-1" is no number, and resolvers differ in what they make of it`,
				`f:1:18: option "timeout:x" is no number, and resolvers differ in what they make of it`,
				`f:1:28: option "ndots" is no number, and resolvers differ in what they make of it`,
			},
		},
		{
			"nameservers",
			"nameserver 192.0.2.1\nnameserver\nnameserver dns.example.org\nnameserver 2001:db8::1\nnameserver fe80::1%eth0\nnameserver 192.0.2.2 # fourth\n",
			Config{Nameservers: []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0", "192.0.2.2"}, NDots: 1, Timeout: 5, Attempts: 2},
			[]string{
				"f:2:1: nameserver without an address",
				`f:3:12: nameserver "dns.example.org" is no address, so it is passed over`,
				"f:6:1: 4 nameservers, of which resolvers use the first 3",
			},
		},
		{
			"root, capitals and names that are none",
			"search . Corp.Example.ORG. a..b\nfoo bar\n",
			Config{Search: []string{".", "corp.example.org."}, NDots: 1, Timeout: 5, Attempts: 2},
			[]string{
				`f:1:8: search domain ".": musl before 1.2.4 fails for every name that reaches it`,
				`f:1:28: search domain: name "a..b" has an empty label`,
				`f:2:1: unknown word "foo"`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := ParseConfig("f", []byte(tt.src))
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.Error())
			}
			if diff := cmp.Diff(tt.problems, texts); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseConfigBounds(t *testing.T) {
	long := "search " + strings.Repeat("a.example.org ", 5000) + "\noptions " + strings.Repeat("x ", 5000) + strings.Repeat("\nzzz", 500000)
	cfg, problems := ParseConfig("f", []byte(long))
	if len(cfg.Search) != maxSearch || len(cfg.Options) != 1 || len(problems) != maxProblems {
		t.Errorf("%d domains, %d options, %d problems", len(cfg.Search), len(cfg.Options), len(problems))
	}
	if p := problems[1].Text; !strings.Contains(p, "musl passes over") {
		t.Errorf("no word about musl's line length: %q", p)
	}
}

func TestParseNodeConfig(t *testing.T) {
	src := "domain corp.example.org\nsearch a.example.org.\nsearch . b.example.org.\n  nameserver 192.0.2.53\noptions ndots:2 edns0\n"
	got, problems := ParseNodeConfig("f", []byte(src))
	want := Config{
		Nameservers: []string{"192.0.2.53"}, Search: []string{"b.example.org."},
		NDots: 2, Timeout: 5, Attempts: 2, Options: []string{"ndots:2", "edns0"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("(-want +got):\n%s\nproblems %v", diff, problems)
	}
	if got, _ := ParseNodeConfig("f", []byte("search a\nsearch\n")); len(got.Search) != 0 {
		t.Errorf("an empty search line leaves %v", got.Search)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("search a b.\nnameserver ::1\noptions ndots:5 timeout:1\n")
	f.Add("domain .\n;\n#\n\t\noptions ndots:99999999999999999999")
	f.Add("search \x00\xff\x1b[2J\nnameserver 1.2.3.4.5\n")
	f.Fuzz(func(t *testing.T, src string) {
		for _, parse := range []func(string, []byte) (Config, []Problem){ParseConfig, ParseNodeConfig} {
			cfg, problems := parse("f", []byte(src))
			if cfg.NDots < 0 || cfg.NDots > maxNDots || cfg.Timeout < 1 || cfg.Attempts < 1 {
				t.Fatalf("%+v", cfg)
			}
			if len(cfg.Search) > maxSearch || len(problems) > maxProblems || len(cfg.Options) > maxOptions {
				t.Fatalf("%d domains, %d problems", len(cfg.Search), len(problems))
			}
			for _, d := range cfg.Search {
				if abs, err := Absolute(d); err != nil || abs != d {
					t.Fatalf("search domain %q is not canonical", d)
				}
			}
			for _, p := range problems {
				if p.Text == "" || p.Position.Line > strings.Count(src, "\n")+1 {
					t.Fatalf("problem %+v", p)
				}
			}
			pod := PodConfig(PodDNS{Namespace: "n", Searches: cfg.Search}, Cluster{Domain: "cluster.local."}, &cfg)
			if len(pod.Search) > PodSearchDomains || len(pod.Nameservers) > PodNameservers {
				t.Fatalf("%+v", pod)
			}
		}
	})
}

func TestPodConfig(t *testing.T) {
	cluster := Cluster{Domain: "cluster.local.", DNSAddresses: []string{"10.96.0.10"}}
	node, _ := ParseNodeConfig("node", []byte("nameserver 192.0.2.53\nsearch corp.example.org\noptions ndots:2 rotate\n"))
	own := []string{"n.svc.cluster.local.", "svc.cluster.local.", "cluster.local."}
	tests := []struct {
		name    string
		pod     PodDNS
		cluster Cluster
		node    *Config
		want    Config
	}{
		{
			"ClusterFirst leaves out the node's options",
			PodDNS{Namespace: "n", Policy: ClusterFirst},
			cluster, &node,
			Config{Nameservers: []string{"10.96.0.10"}, Search: append(slices.Clone(own), "corp.example.org."), NDots: 5, Options: []string{"ndots:5"}},
		},
		{
			"no policy is ClusterFirst",
			PodDNS{Namespace: "N"},
			cluster, &node,
			Config{Nameservers: []string{"10.96.0.10"}, Search: append(slices.Clone(own), "corp.example.org."), NDots: 5, Options: []string{"ndots:5"}},
		},
		{
			"an unknown policy is ClusterFirst, in the host's network too",
			PodDNS{Namespace: "n", Policy: "Odd", HostNetwork: true},
			cluster, &node,
			Config{Nameservers: []string{"10.96.0.10"}, Search: append(slices.Clone(own), "corp.example.org."), NDots: 5, Options: []string{"ndots:5"}},
		},
		{
			"ClusterFirst in the host's network is Default",
			PodDNS{Namespace: "n", Policy: ClusterFirst, HostNetwork: true},
			cluster, &node,
			Config{Nameservers: []string{"192.0.2.53"}, Search: []string{"corp.example.org."}, NDots: 2, Options: []string{"ndots:2", "rotate"}},
		},
		{
			"ClusterFirstWithHostNet",
			PodDNS{Namespace: "n", Policy: ClusterFirstWithHostNet, HostNetwork: true},
			cluster, &node,
			Config{Nameservers: []string{"10.96.0.10"}, Search: append(slices.Clone(own), "corp.example.org."), NDots: 5, Options: []string{"ndots:5"}},
		},
		{
			"None with dnsConfig",
			PodDNS{
				Namespace: "n", Policy: PolicyNone, Nameservers: []string{"192.0.2.1"}, Searches: []string{"Example.org", "a b"},
				Options: []PodOption{{"ndots", "1"}, {"edns0", ""}},
			},
			cluster, &node,
			Config{Nameservers: []string{"192.0.2.1"}, Search: []string{"example.org."}, NDots: 1, Options: []string{"ndots:1", "edns0"}},
		},
		{
			"dnsConfig adds, drops duplicates and replaces options",
			PodDNS{
				Namespace: "n", Nameservers: []string{"10.96.0.10", "192.0.2.1"}, Searches: []string{"svc.cluster.local", "example.org", "corp.example.org"},
				Options: []PodOption{{"ndots", "2"}}, Hosts: []string{"h"},
			},
			cluster, &node,
			Config{
				Nameservers: []string{"10.96.0.10", "192.0.2.1"}, Search: append(slices.Clone(own), "corp.example.org.", "example.org."),
				NDots: 2, Options: []string{"ndots:2"}, Hosts: []string{"h"},
			},
		},
		{
			"no cluster domain",
			PodDNS{Namespace: "n"},
			Cluster{DNSAddresses: []string{"10.96.0.10"}},
			&node,
			Config{Nameservers: []string{"10.96.0.10"}, Search: []string{"corp.example.org."}, NDots: 5, Options: []string{"ndots:5"}},
		},
		{
			"the node is not known: its domains stand before those of dnsConfig",
			PodDNS{Namespace: "n", Searches: []string{"example.org"}},
			cluster, nil,
			Config{Nameservers: []string{"10.96.0.10"}, Search: append(slices.Clone(own), "example.org."), SearchUnknown: true, SearchUnknownAt: 3, NDots: 5, Options: []string{"ndots:5"}},
		},
		{
			"Default on a node that is not known",
			PodDNS{Namespace: "n", Policy: PolicyDefault, Searches: []string{"example.org"}},
			cluster, nil,
			Config{Search: []string{"example.org."}, SearchUnknown: true, NameserversUnknown: true, OptionsUnknown: true, NDots: 1},
		},
		{
			"None does not depend on the node",
			PodDNS{Namespace: "n", Policy: PolicyNone},
			cluster, nil,
			Config{NDots: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Timeout, tt.want.Attempts = 5, 2
			before := fmt.Sprintf("%+v", tt.node)
			got := PodConfig(tt.pod, tt.cluster, tt.node)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if after := fmt.Sprintf("%+v", tt.node); after != before {
				t.Errorf("the node's configuration changed: %s", after)
			}
		})
	}
}

// TestPodLimits: 3 nameservers, 32 domains, 2048 characters.
func TestPodLimits(t *testing.T) {
	node := NewConfig()
	for i := range 40 {
		node.Search = append(node.Search, fmt.Sprintf("d%d.example.org.", i))
		node.Nameservers = append(node.Nameservers, fmt.Sprintf("192.0.2.%d", i))
	}
	got := PodConfig(PodDNS{Namespace: "n", Policy: PolicyDefault}, Cluster{}, &node)
	if len(got.Search) != 32 || len(got.Nameservers) != 3 {
		t.Errorf("%d domains, %d nameservers", len(got.Search), len(got.Nameservers))
	}
	label := strings.Repeat("a", 60)
	node.Search = nil
	for i := range 20 {
		node.Search = append(node.Search, fmt.Sprintf("%s.%s.d%02d.", label, label, i))
	}
	got = PodConfig(PodDNS{Namespace: "n", Policy: PolicyDefault}, Cluster{}, &node)
	length := 0
	for _, d := range got.Search {
		length += len(d) // without the final dot, with a blank
	}
	if length-1 > PodSearchChars || length-1+len(node.Search[0]) <= PodSearchChars {
		t.Errorf("%d domains with %d characters", len(got.Search), length-1)
	}
}

// TestUnseenPlace: the unknown domains are walked at their place, also with none in front or behind.
func TestUnseenPlace(t *testing.T) {
	for at, want := range map[int]string{0: "?ab", 1: "a?b", 2: "ab?", 9: "ab?", -1: "?ab"} {
		cfg := NewConfig()
		cfg.Search, cfg.SearchUnknown, cfg.SearchUnknownAt = []string{"a.", "b."}, true, at
		got := ""
		for _, c := range Candidates(glibc, cfg, "h") {
			switch {
			case c.Unseen:
				got += "?"
			case !c.Bare:
				got += strings.TrimSuffix(c.Domain, ".")
			}
		}
		if got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}
