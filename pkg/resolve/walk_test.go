package resolve

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// table answers from a map of absolute names; a name that is not in it does not exist.
func table(answers map[string]Answer) func(string) Answer {
	return func(name string) Answer {
		if a, ok := answers[name]; ok {
			return a
		}
		return Negative(NXDomain, "")
	}
}

func found(text string) Answer { return Found(mustAddr(text)) }

// withAAAA has an address for A beside another reply for AAAA.
func withAAAA(r Reply) Answer {
	a := found("192.0.2.1")
	a.AAAA = r
	return a
}

var (
	musl123 = Resolver{Musl, Version{1, 2, 3}}
	musl124 = Resolver{Musl, Version{1, 2, 4}}
	glibc   = Resolver{Glibc, Version{2, 36, 0}}
	golang  = Resolver{Go, Version{1, 26, 0}}
)

// trace writes a walk as "name answer action" lines and the end.
func trace(res Result) string {
	var b strings.Builder
	for _, s := range res.Steps {
		name := s.Name
		switch {
		case s.Unseen:
			name = "(unknown domains)"
		case s.Invalid:
			name = "(invalid: " + s.Domain + ")"
		}
		fmt.Fprintf(&b, "%s: %s, %s\n", name, s.Answer, s.Action)
	}
	fmt.Fprintf(&b, "%s by %d\n", res.Status, res.By)
	return b.String()
}

// podSearch is the search list of a pod in namespace n, with one domain of the node.
func podSearch() Config {
	node := NewConfig()
	node.Search = []string{"corp.example.org."}
	return PodConfig(PodDNS{Namespace: "n"}, Cluster{Domain: "cluster.local."}, &node)
}

// Names of a search of podSearch for "my-app".
const (
	secondName = "my-app.svc.cluster.local."
	thirdName  = "my-app.cluster.local."
	bareName   = "my-app."
)

// searchEnd is an answer at the second search domain and what comes of it.
type searchEnd struct {
	name   string
	answer Answer
	// For each resolver: what it does, and the end of the look-up when the third domain answers, and when only the bare
	// name does.
	glibc, musl, golang Action
	thirdOf, bareOf     [3]Status
}

func searchEnds() []searchEnd {
	return []searchEnd{
		{
			"NXDOMAIN", Negative(NXDomain, ""), Next, Next, Next,
			[3]Status{Resolved, Resolved, Resolved},
			[3]Status{Resolved, Resolved, Resolved},
		},
		{
			"NODATA", NoData(""), Next, Stop, Next,
			[3]Status{Resolved, NoAddress, Resolved},
			[3]Status{Resolved, NoAddress, Resolved},
		},
		{
			"CNAME alone", CNAMEAlone(""), Stop, Stop, Next,
			[3]Status{NoAddress, NoAddress, Resolved},
			[3]Status{NoAddress, NoAddress, Resolved},
		},
		{
			"SERVFAIL", Negative(ServFail, ""), Next, Stop, Next,
			[3]Status{Resolved, TryAgain, Resolved},
			[3]Status{Resolved, TryAgain, Resolved},
		},
		{
			"REFUSED", Negative(Refused, ""), LeaveList, Stop, Next,
			[3]Status{NotFound, TryAgain, Resolved},
			[3]Status{Resolved, TryAgain, Resolved},
		},
		{
			"NOTIMP", Negative(NotImp, ""), LeaveList, Stop, Next,
			[3]Status{NotFound, TryAgain, Resolved},
			[3]Status{Resolved, TryAgain, Resolved},
		},
		{
			"FORMERR", Negative(FormErr, ""), LeaveList, Stop, Next,
			[3]Status{NotFound, TryAgain, Resolved},
			[3]Status{Resolved, TryAgain, Resolved},
		},
		{
			"time-out", Negative(NoReply, ""), LeaveList, Stop, Next,
			[3]Status{NotFound, TryAgain, Resolved},
			[3]Status{Resolved, TryAgain, Resolved},
		},
		{
			"address", found("192.0.2.1"), Take, Take, Take,
			[3]Status{Resolved, Resolved, Resolved},
			[3]Status{Resolved, Resolved, Resolved},
		},
	}
}

// TestSearchEnds is the table of what ends or continues a search. TestE2EStubResolvers puts it to the real resolvers.
func TestSearchEnds(t *testing.T) {
	for _, tt := range searchEnds() {
		t.Run(tt.name, func(t *testing.T) {
			for i, r := range Measured() {
				want := []Action{tt.glibc, tt.musl, tt.golang}[i]
				for where, ends := range map[string][3]Status{thirdName: tt.thirdOf, bareName: tt.bareOf} {
					res := Walk(r, podSearch(), "my-app", table(map[string]Answer{secondName: tt.answer, where: found("192.0.2.2")}))
					if res.Steps[1].Name != secondName || res.Steps[1].Action != want {
						t.Errorf("%s at %s: %s, want %s", r, res.Steps[1].Name, res.Steps[1].Action, want)
					}
					if res.Status != ends[i] {
						t.Errorf("%s when %s answers: %s, want %s\n%s", r, where, res.Status, ends[i], trace(res))
					}
				}
			}
		})
	}
}

// searchOrder is a look-up of a name that does not exist, and the names that are asked.
type searchOrder struct {
	name, host string
	resolver   Resolver
	ndots      int
	search     []string
	want       []string
}

func searchOrders() []searchOrder {
	search := []string{"n.svc.cluster.local.", "svc.cluster.local."}
	return []searchOrder{
		{"single label, glibc", "a", glibc, 5, search, []string{"a.n.svc.cluster.local.", "a.svc.cluster.local.", "a."}},
		{"single label, musl", "a", musl123, 5, search, []string{"a.n.svc.cluster.local.", "a.svc.cluster.local.", "a."}},
		{"single label, Go", "a", golang, 5, search, []string{"a.n.svc.cluster.local.", "a.svc.cluster.local.", "a."}},
		{"single label, ndots 1", "a", glibc, 1, search, []string{"a.n.svc.cluster.local.", "a.svc.cluster.local.", "a."}},
		{"ndots dots, glibc asks as typed first and once", "a.b", glibc, 1, search, []string{"a.b.", "a.b.n.svc.cluster.local.", "a.b.svc.cluster.local."}},
		{"ndots dots, Go", "a.b", golang, 1, search, []string{"a.b.", "a.b.n.svc.cluster.local.", "a.b.svc.cluster.local."}},
		{"ndots dots, musl drops the list", "a.b", musl123, 1, search, []string{"a.b."}},
		{"ndots 0, glibc", "a", glibc, 0, search, []string{"a.", "a.n.svc.cluster.local.", "a.svc.cluster.local."}},
		{"ndots 0, Go", "a", golang, 0, search, []string{"a.", "a.n.svc.cluster.local.", "a.svc.cluster.local."}},
		{"ndots 0, musl", "a", musl123, 0, search, []string{"a."}},
		{"trailing dot, glibc", "a.b.", glibc, 5, search, []string{"a.b."}},
		{"trailing dot, musl", "a.b.", musl123, 5, search, []string{"a.b."}},
		{"trailing dot, Go", "a.b.", golang, 5, search, []string{"a.b."}},
		{"capitals", "A.Example", golang, 5, search, []string{"a.example.n.svc.cluster.local.", "a.example.svc.cluster.local.", "a.example."}},
		{"root on the list, glibc asks as typed once", "a", glibc, 5, []string{".", "x."}, []string{"a.", "a.x."}},
		{"root on the list, Go drops it", "a", golang, 5, []string{".", "x."}, []string{"a.x.", "a."}},
		{"root on the list, musl from 1.2.4 passes over it", "a", musl124, 5, []string{".", "x."}, []string{"a.x.", "a."}},
		{"root on the list, musl before 1.2.4 fails there", "a", musl123, 5, []string{"x.", "."}, []string{"a.x."}},
		{"onion, Go asks nobody for such names (RFC 7686)", "a.onion.", golang, 5, search, nil},
		{"onion, Go still uses the list", "a.Onion", golang, 5, search, []string{"a.onion.n.svc.cluster.local.", "a.onion.svc.cluster.local."}},
		{"onion on the list, Go", "a", golang, 5, []string{"b.onion.", "x."}, []string{"a.x.", "a."}},
		{"a domain twice on the list is asked twice, glibc", "a", glibc, 5, []string{"x.", "x."}, []string{"a.x.", "a.x.", "a."}},
		{"a domain twice on the list is asked twice, musl", "a", musl123, 5, []string{"x.", "x."}, []string{"a.x.", "a.x.", "a."}},
		{"a domain twice on the list is asked twice, Go", "a", golang, 5, []string{"x.", "x."}, []string{"a.x.", "a.x.", "a."}},
		{"glibc asks nobody for what is no host name (res_hnok)", "-a", glibc, 5, search, nil},
		{"glibc takes an asterisk for no host name", "*.a", glibc, 5, nil, nil},
		{"glibc takes hyphens at other places", "a-.-b", glibc, 5, nil, []string{"a-.-b."}},
		{"musl asks for all of these", "-a+*.b", musl123, 5, nil, []string{"-a+*.b."}},
		{"onion, glibc", "a.onion", glibc, 5, nil, []string{"a.onion."}},
		{"no search list", "a", musl123, 5, nil, []string{"a."}},
	}
}

// TestSearchOrder says which names are asked, in which order, when none exists. TestE2EStubResolvers puts the same to the real
// resolvers.
func TestSearchOrder(t *testing.T) {
	for _, tt := range searchOrders() {
		t.Run(tt.name, func(t *testing.T) {
			cfg := NewConfig()
			cfg.NDots, cfg.Search = tt.ndots, tt.search
			var asked []string
			res := Walk(tt.resolver, cfg, tt.host, func(name string) Answer {
				asked = append(asked, name)
				return Negative(NXDomain, "")
			})
			if diff := cmp.Diff(tt.want, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if res.Status.OK() || res.By != -1 {
				t.Errorf("ends %s by %d although no name exists", res.Status, res.By)
			}
		})
	}
}

// course is a whole look-up that a single answer does not explain.
type course struct {
	name     string
	resolver Resolver
	host     string
	search   []string
	ndots    int
	answers  map[string]Answer
	want     string
}

func courses() []course {
	return []course{
		{
			"musl: search . alone fails every name under ndots after a malformed query", musl123, "a.example",
			[]string{"."},
			5,
			map[string]Answer{"a.example.": found("192.0.2.1")},
			"(invalid: .): no reply, stops\ntemporary failure by -1\n",
		},
		{
			"musl: a bad AAAA outweighs a good A", musl123, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": withAAAA(Reply{Rcode: NXDomain}), "a.y.": withAAAA(Reply{Rcode: ServFail})},
			"a.x.: address 192.0.2.1, goes on\na.y.: address 192.0.2.1, stops\ntemporary failure by -1\n",
		},
		{
			"glibc: a good A outweighs a bad AAAA", glibc, "a",
			[]string{"x."},
			5,
			map[string]Answer{"a.x.": withAAAA(Reply{Rcode: ServFail})},
			"a.x.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"Go: a good A outweighs a bad AAAA", golang, "a",
			[]string{"x."},
			5,
			map[string]Answer{"a.x.": withAAAA(Reply{Rcode: NXDomain})},
			"a.x.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"glibc: REFUSED for the name as typed does not spare the list", glibc, "a.b",
			[]string{"x."},
			1,
			map[string]Answer{"a.b.": Negative(Refused, ""), "a.b.x.": found("192.0.2.1")},
			"a.b.: REFUSED, goes on\na.b.x.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: a time-out on the list after the name as typed ends the look-up", glibc, "a.b",
			[]string{"x.", "y."},
			1,
			map[string]Answer{"a.b.x.": Negative(NoReply, ""), "a.b.y.": found("192.0.2.1")},
			"a.b.: NXDOMAIN, goes on\na.b.x.: no reply, leaves the search list\nname not found by -1\n",
		},
		{
			"glibc: the list is left before the root on it, so the name as typed is asked", glibc, "a",
			[]string{"x.", "."},
			5,
			map[string]Answer{"a.x.": Negative(Refused, ""), "a.": found("192.0.2.1")},
			"a.x.: REFUSED, leaves the search list\na.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: an empty answer on the way is the error at the end", glibc, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": NoData("")},
			"a.x.: NODATA, goes on\na.y.: NXDOMAIN, goes on\na.: NXDOMAIN, goes on\nno address by -1\n",
		},
		{
			"glibc: a SERVFAIL on the way is the error at the end", glibc, "a",
			[]string{"x."},
			5,
			map[string]Answer{"a.x.": Negative(ServFail, "")},
			"a.x.: SERVFAIL, goes on\na.: NXDOMAIN, goes on\ntemporary failure by -1\n",
		},
		{
			"glibc: SERVFAIL for AAAA beside NODATA for A counts as NODATA", glibc, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": {Known: true, AAAA: Reply{Rcode: ServFail}}, "a.y.": found("192.0.2.1")},
			"a.x.: A NODATA, AAAA SERVFAIL, goes on\na.y.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: NODATA for AAAA beside REFUSED for A counts as NODATA", glibc, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": {Known: true, A: Reply{Rcode: Refused}}, "a.y.": found("192.0.2.1")},
			"a.x.: A REFUSED, AAAA NODATA, goes on\na.y.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: FORMERR is an answer and leaves the list, whatever the other", glibc, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": {Known: true, A: Reply{Rcode: FormErr}, AAAA: Reply{Rcode: NXDomain}}, "a.y.": found("192.0.2.1")},
			"a.x.: A FORMERR, AAAA NXDOMAIN, leaves the search list\na.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"glibc: no reply for AAAA beside NODATA for A counts as NODATA, in the end", glibc, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": {Known: true, AAAA: Reply{Rcode: NoReply}}, "a.y.": found("192.0.2.1")},
			"a.x.: A NODATA, AAAA no reply, goes on\na.y.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: no reply for A leaves the list, for all that there is a good AAAA", glibc, "a",
			[]string{"x.", "y."},
			5,
			map[string]Answer{"a.x.": {Known: true, A: Reply{Rcode: NoReply}, AAAA: Reply{Records: Address}, Addresses: []netip.Addr{mustAddr("2001:db8::1")}}, "a.y.": found("192.0.2.1")},
			"a.x.: address 2001:db8::1, leaves the search list\na.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"glibc: REFUSED everywhere ends as a temporary failure", glibc, "a.", nil, 5,
			map[string]Answer{"a.": Negative(Refused, "")},
			"a.: REFUSED, goes on\ntemporary failure by -1\n",
		},
		{
			"musl: NXDOMAIN for A is enough, whatever happened to AAAA", musl123, "a",
			[]string{"x."},
			5,
			map[string]Answer{"a.x.": {Known: true, A: Reply{Rcode: NXDomain}, AAAA: Reply{Rcode: ServFail}}, "a.": found("192.0.2.1")},
			"a.x.: A NXDOMAIN, AAAA SERVFAIL, goes on\na.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"Go: the error of the name as typed counts", golang, "a",
			[]string{"x."},
			5,
			map[string]Answer{"a.x.": Negative(ServFail, "")},
			"a.x.: SERVFAIL, goes on\na.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"IPv6 alone resolves everywhere", musl123, "a",
			[]string{"x."},
			5,
			map[string]Answer{"a.x.": found("2001:db8::1")},
			"a.x.: address 2001:db8::1, takes it\nresolved by 0\n",
		},
	}
}

// TestWalkCourses follows the courses. TestE2EStubResolvers puts them to the real resolvers.
func TestWalkCourses(t *testing.T) {
	for _, tt := range courses() {
		t.Run(tt.name, func(t *testing.T) {
			cfg := NewConfig()
			cfg.NDots, cfg.Search = tt.ndots, tt.search
			got := trace(Walk(tt.resolver, cfg, tt.host, table(tt.answers)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLong: a search domain that makes no valid name with the host.
func TestTooLong(t *testing.T) {
	long := strings.Repeat("a23456789.", 24) // 240 octets
	cfg := NewConfig()
	cfg.NDots, cfg.Search = 5, []string{long, "x."}
	host := "host-with-a-long-name"
	answers := table(map[string]Answer{host + ".x.": found("192.0.2.1"), host + ".": found("192.0.2.2")})
	for r, want := range map[Resolver]string{
		glibc:   "(invalid: " + long + "): NODATA, leaves the search list\nhost-with-a-long-name.: address 192.0.2.2, takes it\nresolved by 1\n",
		musl124: "(invalid: " + long + "): NODATA, goes on\nhost-with-a-long-name.x.: address 192.0.2.1, takes it\nresolved by 1\n",
		golang:  "host-with-a-long-name.x.: address 192.0.2.1, takes it\nresolved by 0\n",
	} {
		// The list alone does not make musl's line too long.
		if got := trace(Walk(r, cfg, host, answers)); got != want {
			t.Errorf("%s:\n%swant\n%s", r, got, want)
		}
	}
}

// TestMuslLine: musl passes over a search line that does not fit its buffer; then there is no list.
func TestMuslLine(t *testing.T) {
	cfg := NewConfig()
	cfg.NDots = 5
	for i := range 12 {
		cfg.Search = append(cfg.Search, fmt.Sprintf("domain-%02d.example.org.", i))
	}
	if n := len(Candidates(musl123, cfg, "a")); n != 1 {
		t.Errorf("musl has %d candidates, want the bare name alone", n)
	}
	if n := len(Candidates(glibc, cfg, "a")); n != 13 {
		t.Errorf("glibc has %d candidates, want 13", n)
	}
	if n := len(Candidates(Resolver{Glibc, Version{2, 17, 0}}, cfg, "a")); n != 7 {
		t.Errorf("glibc 2.17 has %d candidates, want six domains and the bare name", n)
	}
}

// TestMuslEarlierLine: musl then keeps the list of an earlier line.
func TestMuslEarlierLine(t *testing.T) {
	long := strings.Repeat("a23456789.", 24) + "example.org"
	for text, want := range map[string][]string{
		"domain x\nsearch " + long + "\n":                    {"a.x.", "a."},
		"search x\nsearch " + long + "\ndomain " + long:      {"a.x.", "a."},
		"search x\nsearch " + long + "\nsearch y\n":          {"a.y.", "a."},
		"search " + long + "\n":                              {"a."},
		"search x" + strings.Repeat(" ", 250) + "y z\n":      {"a."},
		"search x\nsearch y" + strings.Repeat(" ", 250) + "": {"a.x.", "a."},
	} {
		cfg, _ := ParseConfig("resolv.conf", []byte(text))
		var names []string
		for _, c := range Candidates(musl124, cfg, "a") {
			names = append(names, c.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestWithoutQuery(t *testing.T) {
	cfg := NewConfig()
	cfg.Hosts = []string{"Alias.example.test"}
	tests := []struct {
		host                string
		glibc, musl, golang Status
	}{
		{"192.0.2.1", Literal, Literal, Literal},
		{"2001:db8::1", Literal, Literal, Literal},
		{"fe80::1%eth0", Literal, Literal, Literal},
		{"127.1", Literal, Literal, NotFound},
		{"0x7f.1", Literal, Literal, NotFound},
		{"2130706433", Literal, Literal, NotFound},
		{"4294967296", NotFound, NotFound, NotFound},
		{"1.2.3.4.5", NotFound, NotFound, NotFound},
		{"09.1", NotFound, NotFound, NotFound},
		{"localhost", Literal, Literal, Literal},
		{"LOCALHOST.", Literal, Literal, Literal},
		{"alias.example.test", Literal, Literal, Literal},
		{"", Invalid, Invalid, Invalid},
		{".", Invalid, Invalid, Invalid},
		{"a..b", Invalid, Invalid, Invalid},
		{"a..", Invalid, Invalid, Invalid},
		{"http://a/", Invalid, Invalid, Invalid},
		{"a b", Invalid, Invalid, Invalid},
		{strings.Repeat("a", 64), Invalid, Invalid, Invalid},
		{strings.Repeat("a.", 127), NotFound, NotFound, NotFound},
		{strings.Repeat("a.", 127) + "a", Invalid, Invalid, Invalid},
		{"-a", NotFound, NotFound, NotFound},
		{"under_score", NotFound, NotFound, NotFound},
	}
	for _, tt := range tests {
		for i, r := range Measured() {
			want := []Status{tt.glibc, tt.musl, tt.golang}[i]
			asked := 0
			res := Walk(r, cfg, tt.host, func(string) Answer { asked++; return Negative(NXDomain, "") })
			if res.Status != want {
				t.Errorf("%s, %q: %s, want %s", r, tt.host, res.Status, want)
			}
			if (want == Literal || want == Invalid) && asked > 0 {
				t.Errorf("%s, %q: %d queries, want none", r, tt.host, asked)
			}
		}
	}
	if res := Walk(golang, cfg, "-a", func(string) Answer { t.Error("Go asks for -a"); return Answer{} }); res.Status != NotFound {
		t.Errorf("-a on Go: %s", res.Status)
	}
}

func TestTruncated(t *testing.T) {
	big := found("192.0.2.1")
	big.Truncated = true
	for r, want := range map[Resolver]bool{musl123: true, musl124: false, {Library: Musl}: false, glibc: false, golang: false} {
		if res := Walk(r, NewConfig(), "a.example", table(map[string]Answer{"a.example.": big})); res.Partial != want || res.Status != Resolved {
			t.Errorf("%s: %s, partial %v, want %v", r, res.Status, res.Partial, want)
		}
	}
}

func TestUnknownAnswers(t *testing.T) {
	alias := Unknown("")
	alias.A, alias.AAAA = Reply{Records: AliasAlone}, Reply{Records: AliasAlone}
	unseen := PodConfig(PodDNS{Namespace: "n"}, Cluster{Domain: "cluster.local."}, nil)
	tests := []struct {
		name     string
		resolver Resolver
		cfg      Config
		answers  map[string]Answer
		verdict  Verdict
		can      bool
		must     bool
		outcomes []Outcome
	}{
		{
			"certain success", glibc, podSearch(),
			map[string]Answer{"h.svc.cluster.local.": found("192.0.2.1")},
			Resolves, true, true,
			[]Outcome{{-1, Resolved, 1}},
		},
		{
			"certain failure", glibc, podSearch(),
			map[string]Answer{"h.svc.cluster.local.": NoData("")},
			Fails, false, false,
			[]Outcome{{-1, NoAddress, -1}},
		},
		{
			"a later search domain or the bare name may answer: glibc goes on after NODATA", glibc, podSearch(),
			map[string]Answer{"h.svc.cluster.local.": NoData(""), "h.corp.example.org.": Unknown(""), "h.": Unknown("")},
			Depends, true, false,
			[]Outcome{{-1, NoAddress, -1}, {3, Resolved, 3}, {4, Resolved, 4}},
		},
		{
			"and musl never gets there", musl123, podSearch(),
			map[string]Answer{"h.svc.cluster.local.": NoData(""), "h.corp.example.org.": Unknown(""), "h.": Unknown("")},
			Fails, false, false,
			[]Outcome{{-1, NoAddress, -1}},
		},
		{
			"an unknown name before a known one: it resolves, but to whom is not known", golang, podSearch(),
			map[string]Answer{"h.corp.example.org.": Unknown(""), "h.": found("192.0.2.1")},
			Depends, true, true,
			[]Outcome{{-1, Resolved, 4}, {3, Resolved, 3}},
		},
		{
			"an alias that leads out: if its target has no address, glibc stops there", glibc, podSearch(),
			map[string]Answer{"h.n.svc.cluster.local.": alias, "h.svc.cluster.local.": found("192.0.2.1")},
			Depends, true, false,
			[]Outcome{{-1, NoAddress, -1}, {0, Resolved, 0}},
		},
		{
			"and Go goes on", golang, podSearch(),
			map[string]Answer{"h.n.svc.cluster.local.": alias, "h.svc.cluster.local.": found("192.0.2.1")},
			Depends, true, true,
			[]Outcome{{-1, Resolved, 1}, {0, Resolved, 0}},
		},
		{
			"the node's search domains are not known", glibc, unseen,
			map[string]Answer{"h.svc.cluster.local.": NoData("")},
			Depends, true, false,
			[]Outcome{{-1, NoAddress, -1}, {3, Resolved, 3}},
		},
		{
			"they are after the cluster's own and do not matter", musl123, unseen,
			map[string]Answer{"h.svc.cluster.local.": NoData("")},
			Fails, false, false,
			[]Outcome{{-1, NoAddress, -1}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := Walk(tt.resolver, tt.cfg, "h", table(tt.answers))
			if got := res.Verdict(); got != tt.verdict {
				t.Errorf("verdict %s, want %s\n%s", got, tt.verdict, trace(res))
			}
			if res.CanResolve() != tt.can || res.MustResolve() != tt.must {
				t.Errorf("can %v, must %v, want %v, %v", res.CanResolve(), res.MustResolve(), tt.can, tt.must)
			}
			if diff := cmp.Diff(tt.outcomes, res.Outcomes()); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			all := res.Unknown()
			for i := range res.Steps {
				n := len(res.UnknownBefore(i)) + len(res.UnknownAfter(i))
				if !res.Steps[i].Answer.Known {
					n++
				}
				if n != len(all) {
					t.Errorf("step %d: %d unknown steps before, at and after it, want %d", i, n, len(all))
				}
			}
		})
	}
}

// TestOutcomesAgree replays every outcome with real answers in place of the unknown ones.
func TestOutcomesAgree(t *testing.T) {
	choices := []Answer{Unknown(""), NoData(""), Negative(NXDomain, ""), Negative(ServFail, ""), Negative(Refused, ""), CNAMEAlone(""), found("192.0.2.1")}
	cfg := podSearch()
	names := []string{"h.n.svc.cluster.local.", "h.svc.cluster.local.", "h.cluster.local.", "h.corp.example.org.", "h."}
	for n := range 7 * 7 * 7 * 7 * 7 {
		answers := map[string]Answer{}
		for _, name := range names {
			answers[name] = choices[n%7]
			n /= 7
		}
		for _, r := range Measured() {
			res := Walk(r, cfg, "h", table(answers))
			for _, o := range res.Outcomes() {
				replay := Walk(r, cfg, "h", func(name string) Answer {
					a := answers[name]
					if !a.Known {
						a = Negative(NXDomain, "")
						if o.Assumed >= 0 && res.Steps[o.Assumed].Name == name {
							a = found("192.0.2.9")
						}
					}
					return a
				})
				if replay.Status != o.Status || replay.By != o.By {
					t.Fatalf("%s: outcome %+v, replay %s by %d\n%s", r, o, replay.Status, replay.By, trace(res))
				}
			}
		}
	}
}

// checkWalk holds what is true of every walk.
func checkWalk(t *testing.T, r Resolver, cfg Config, host string, ask func(string) Answer) {
	t.Helper()
	var asked []string
	res := Walk(r, cfg, host, func(name string) Answer {
		asked = append(asked, name)
		return ask(name)
	})
	if len(asked) > max(len(cfg.Search), len(cfg.Earlier))+2 {
		t.Fatalf("%s asks %d names with %d search domains", r, len(asked), len(cfg.Search))
	}
	first, rest := 0, 0
	for _, name := range asked {
		if abs, err := Absolute(name); err != nil || abs != name {
			t.Fatalf("%s asks for %q, which is not canonical (%v)", r, name, err)
		}
		if !strings.HasPrefix(name, strings.ToLower(strings.TrimSuffix(host, "."))+".") {
			t.Fatalf("%s asks for %q, which does not begin with %q", r, name, host)
		}
		if bare, _ := Absolute(host); name == bare {
			first++
		} else {
			rest++
		}
	}
	if r.Library == Musl && strings.Count(host, ".") >= cfg.NDots && rest > 0 {
		t.Fatalf("musl uses the search list for %q under ndots:%d", host, cfg.NDots)
	}
	if res.Status == 0 {
		t.Fatalf("%s: no status", r)
	}
	if (res.Status == Resolved) != (res.By >= 0) || res.By >= len(res.Steps) {
		t.Fatalf("%s: %s by %d of %d", r, res.Status, res.By, len(res.Steps))
	}
	for i, s := range res.Steps {
		if ends := s.Action == Take || s.Action == Stop; ends && i != len(res.Steps)-1 {
			t.Fatalf("%s goes on after %s\n%s", r, s.Action, trace(res))
		}
		if s.Action == Take && !s.Answer.Known {
			t.Fatalf("%s takes an unknown answer", r)
		}
	}
	candidates := map[string]bool{}
	for _, c := range Candidates(r, cfg, host) {
		candidates[c.Name] = true
	}
	for _, name := range asked {
		if !candidates[name] {
			t.Fatalf("%s asks for %q, which is no candidate", r, name)
		}
	}
	if len(res.Outcomes()) != 1+len(res.Unknown()) {
		t.Fatalf("%s: %d outcomes for %d unknown steps", r, len(res.Outcomes()), len(res.Unknown()))
	}
}

func FuzzWalk(f *testing.F) {
	f.Add("my-app", "n.svc.cluster.local svc.cluster.local", 5, []byte{2, 1})
	f.Add("a.b.", ". x", 1, []byte{6})
	f.Add("10.1", "", 0, []byte{})
	f.Add("A.onion", "example.org", 15, []byte{0, 3, 4, 5, 7})
	f.Fuzz(func(t *testing.T, host, search string, ndots int, script []byte) {
		cfg, _ := ParseConfig("resolv.conf", []byte("search "+search))
		cfg.NDots = ndots
		cfg.SearchUnknown, cfg.SearchUnknownAt = len(script)%2 == 1, len(script)/2
		kinds := []Answer{
			Negative(NXDomain, ""), NoData(""), found("192.0.2.1"), CNAMEAlone(""), Negative(ServFail, ""), Negative(NoReply, ""), Unknown(""),
			{Known: true, A: Reply{Records: Address}, AAAA: Reply{Rcode: NXDomain}},
			{Known: true, AAAA: Reply{Rcode: ServFail}},
			{A: Reply{Records: Address}},
		}
		for _, r := range append(Measured(), musl124, Resolver{Glibc, Version{2, 17, 0}}, Resolver{}) {
			i := 0
			checkWalk(t, r, cfg, host, func(string) Answer {
				if i++; i > len(script) {
					return Negative(NXDomain, "")
				}
				return kinds[int(script[i-1])%len(kinds)]
			})
		}
	})
}
