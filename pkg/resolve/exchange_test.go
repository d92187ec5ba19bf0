package resolve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serverCourse is a look-up with nameservers that do not all answer, or not all the same.
type serverCourse struct {
	name     string
	resolver Resolver
	host     string // "a" if it is empty
	conf     string // the resolv.conf without nameservers
	// answers has for a name what each nameserver answers.
	answers map[string][]Answer
	// sent are the queries, as server, name, type and tcp; want is the walk.
	sent, want string
}

func serverCourses() []serverCourse {
	refused, servfail, silent := Negative(Refused, ""), Negative(ServFail, ""), Negative(NoReply, "")
	nxdomain := Negative(NXDomain, "")
	good, other := found("192.0.2.1"), found("192.0.2.2")
	big := found("192.0.2.1")
	big.Truncated = true
	onlyAAAA := found("2001:db8::1")
	onlyAAAA.A = Reply{Rcode: Refused}
	lostAAAA := withAAAA(Reply{Rcode: NoReply})
	const once = "options timeout:1 attempts:1\n"
	const list = "search x y\noptions ndots:5 timeout:1 attempts:1\n"
	return []serverCourse{
		{
			"glibc: after REFUSED the next nameserver is asked, and never the search list left", glibc, "", list,
			map[string][]Answer{"a.x.": {refused, nxdomain}, "a.y.": {refused, good}},
			"0 a.x. A, 0 a.x. AAAA, 1 a.x. A, 1 a.x. AAAA, 0 a.y. A, 0 a.y. AAAA, 1 a.y. A, 1 a.y. AAAA",
			"a.x.: NXDOMAIN, goes on\na.y.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: after silence too", glibc, "", list,
			map[string][]Answer{"a.x.": {silent, good}},
			"0 a.x. A, 0 a.x. AAAA, 1 a.x. A, 1 a.x. AAAA",
			"a.x.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"glibc: NXDOMAIN of the first is final", glibc, "", once,
			map[string][]Answer{"a.": {nxdomain, good}},
			"0 a. A, 0 a. AAAA",
			"a.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"glibc: FORMERR of the first is final", glibc, "", once,
			map[string][]Answer{"a.": {Negative(FormErr, ""), good}},
			"0 a. A, 0 a. AAAA",
			"a.: FORMERR, goes on\nserver failure by -1\n",
		},
		{
			"glibc: a SERVFAIL counts where the next nameserver is silent, so the search goes on", glibc, "", list,
			map[string][]Answer{"a.x.": {servfail, silent}, "a.y.": {good, good}},
			"0 a.x. A, 0 a.x. AAAA, 1 a.x. A, 1 a.x. AAAA, 0 a.y. A, 0 a.y. AAAA",
			"a.x.: no reply, goes on\na.y.: address 192.0.2.1, takes it\nresolved by 1\n",
		},
		{
			"glibc: attempts go over all nameservers", glibc, "", "options timeout:1 attempts:2\n",
			map[string][]Answer{"a.": {refused, servfail}},
			"0 a. A, 0 a. AAAA, 1 a. A, 1 a. AAAA, 0 a. A, 0 a. AAAA, 1 a. A, 1 a. AAAA",
			"a.: SERVFAIL, goes on\ntemporary failure by -1\n",
		},
		{
			"glibc: a good AAAA outweighs REFUSED for A", glibc, "", list,
			map[string][]Answer{"a.x.": {onlyAAAA}},
			"0 a.x. A, 0 a.x. AAAA",
			"a.x.: address 2001:db8::1, takes it\nresolved by 0\n",
		},
		{
			"glibc: with single-request it is never asked for", glibc, "", list + "options single-request\n",
			map[string][]Answer{"a.x.": {onlyAAAA}},
			"0 a.x. A, 0 a. A, 0 a. AAAA",
			"a.x.: address 2001:db8::1, leaves the search list\na.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"glibc: a lost reply is asked for twice more, and from then on one query is sent at a time", glibc, "", list,
			map[string][]Answer{"a.x.": {{Known: true, AAAA: Reply{Rcode: NoReply}}}},
			"0 a.x. A, 0 a.x. AAAA, 0 a.x. A, 0 a.x. AAAA, 0 a.x. A, 0 a.x. AAAA, 0 a.y. A, 0 a.y. AAAA, 0 a. A, 0 a. AAAA",
			"a.x.: A NODATA, AAAA no reply, goes on\na.y.: NXDOMAIN, goes on\na.: NXDOMAIN, goes on\nno address by -1\n",
		},
		{
			"glibc: a good A stands with a lost AAAA", glibc, "", once,
			map[string][]Answer{"a.": {lostAAAA}},
			"0 a. A, 0 a. AAAA, 0 a. A, 0 a. AAAA, 0 a. A, 0 a. AAAA",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"glibc: what was truncated is asked again over TCP, both types", glibc, "", once,
			map[string][]Answer{"a.": {big}},
			"0 a. A, 0 a. AAAA, 0 a. A tcp, 0 a. AAAA tcp",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"glibc: over TCP REFUSED of the first is final", glibc, "", "options use-vc\n" + once,
			map[string][]Answer{"a.": {refused, good}},
			"0 a. A tcp, 0 a. AAAA tcp",
			"a.: REFUSED, goes on\nserver failure by -1\n",
		},
		{
			"glibc: over TCP a SERVFAIL beside NODATA leaves the list", glibc, "", "options use-vc\n" + list,
			map[string][]Answer{"a.x.": {{Known: true, AAAA: Reply{Rcode: ServFail}}}, "a.y.": {good}},
			"0 a.x. A tcp, 0 a.x. AAAA tcp, 0 a. A tcp, 0 a. AAAA tcp",
			"a.x.: A NODATA, AAAA SERVFAIL, leaves the search list\na.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"musl: a nameserver that answers outweighs those that refuse or are silent", musl123, "", "options use-vc single-request\n" + once,
			map[string][]Answer{"a.": {refused, silent, good}},
			"0 a. A, 1 a. A, 2 a. A, 0 a. AAAA, 1 a. AAAA, 2 a. AAAA",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"musl before 1.2.4: a truncated answer is taken as it is", musl123, "", once,
			map[string][]Answer{"a.": {big}},
			"0 a. A, 0 a. AAAA",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"musl from 1.2.4: the type that was truncated is asked again over TCP", musl124, "", once,
			map[string][]Answer{"a.": {big}},
			"0 a. A, 0 a. AAAA, 0 a. A tcp",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"Go: each type by itself goes to the next nameserver, after FORMERR too", golang, "", once,
			map[string][]Answer{"a.": {{Known: true, A: Reply{Rcode: FormErr}}, other}},
			"0 a. A, 1 a. A, 0 a. AAAA",
			"a.: address 192.0.2.2, takes it\nresolved by 0\n",
		},
		{
			"Go: NXDOMAIN of the first is final", golang, "", once,
			map[string][]Answer{"a.": {nxdomain, good}},
			"0 a. A, 0 a. AAAA",
			"a.: NXDOMAIN, goes on\nname not found by -1\n",
		},
		{
			"Go: attempts go over all nameservers, and the last error counts", golang, "", "options timeout:1 attempts:2\n",
			map[string][]Answer{"a.": {servfail, refused}},
			"0 a. A, 1 a. A, 0 a. A, 1 a. A, 0 a. AAAA, 1 a. AAAA, 0 a. AAAA, 1 a. AAAA",
			"a.: REFUSED, goes on\nserver failure by -1\n",
		},
		{
			"Go: use-vc, single-request", golang, "", "options use-vc single-request\n" + once,
			map[string][]Answer{"a.": {big}},
			"0 a. A tcp, 0 a. AAAA tcp",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
		{
			"Go: of two errors the one for AAAA counts where it is asked for after A", golang, "", "options single-request\n" + once,
			map[string][]Answer{"a.": {{Known: true, A: Reply{Rcode: NXDomain}, AAAA: Reply{Rcode: ServFail}}}},
			"0 a. A, 0 a. AAAA",
			"a.: A NXDOMAIN, AAAA SERVFAIL, goes on\ntemporary failure by -1\n",
		},
		{
			"Go: of a name with a final dot the first error counts", golang, "a.", "options single-request\n" + once,
			map[string][]Answer{"a.": {{Known: true, A: Reply{Rcode: NXDomain}, AAAA: Reply{Rcode: ServFail}}}},
			"0 a. A, 0 a. AAAA",
			"a.: A NXDOMAIN, AAAA SERVFAIL, goes on\nname not found by -1\n",
		},
		{
			"Go: of a name under onion too, for it is asked for on the search list alone", golang, "a.onion", "search x\noptions single-request\n" + once,
			map[string][]Answer{"a.onion.x.": {{Known: true, A: Reply{Rcode: NXDomain}, AAAA: Reply{Rcode: ServFail}}}},
			"0 a.onion.x. A, 0 a.onion.x. AAAA",
			"a.onion.x.: A NXDOMAIN, AAAA SERVFAIL, goes on\nname not found by -1\n",
		},
		{
			"Go: what was truncated is asked again over TCP", golang, "", once,
			map[string][]Answer{"a.": {big}},
			"0 a. A, 0 a. A tcp, 0 a. AAAA",
			"a.: address 192.0.2.1, takes it\nresolved by 0\n",
		},
	}
}

// asks is the name that is looked up.
func (c serverCourse) asks() string {
	if c.host == "" {
		return "a"
	}
	return c.host
}

// servers is how many nameservers the course has.
func (c serverCourse) servers() int {
	n := 1
	for _, list := range c.answers {
		n = max(n, len(list))
	}
	return n
}

// TestWalkServers follows the courses. TestE2EStubResolvers puts them to the real resolvers.
func TestWalkServers(t *testing.T) {
	for _, tt := range serverCourses() {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems := ParseConfig("resolv.conf", []byte(tt.conf))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var sent []string
			ns := Nameservers{Sent: func(q Query) {
				s := fmt.Sprintf("%d %s %s", q.Server, q.Name, q.Type)
				if q.Stream {
					s += " tcp"
				}
				sent = append(sent, s)
			}}
			for i := range tt.servers() {
				ns.Ask = append(ns.Ask, func(name string) Answer {
					if list := tt.answers[name]; i < len(list) {
						return list[i]
					}
					return Negative(NXDomain, "")
				})
			}
			res := WalkServers(tt.resolver, cfg, tt.asks(), ns)
			if diff := cmp.Diff(tt.sent, strings.Join(sent, ", ")); diff != "" {
				t.Errorf("queries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, trace(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFirstServer: with "rotate", and on musl by chance, another nameserver than the first of the file counts.
func TestFirstServer(t *testing.T) {
	cfg, _ := ParseConfig("resolv.conf", []byte("search x\noptions ndots:5 rotate\n"))
	answers := func(a Answer) func(string) Answer {
		return table(map[string]Answer{"a.x.": a})
	}
	ns := Nameservers{
		Ask:   []func(string) Answer{answers(found("192.0.2.1")), answers(found("2001:db8::2")), answers(Negative(NXDomain, ""))},
		First: func(_ int, typ Type) int { return int(typ) },
	}
	for r, want := range map[Resolver]string{
		// Both types follow the order for A.
		glibc: "a.x.: address 192.0.2.1, takes it\nresolved by 0\n",
		// A of the first and AAAA of the second.
		musl123: "a.x.: address 192.0.2.1 2001:db8::2, takes it\nresolved by 0\n",
		golang:  "a.x.: address 192.0.2.1 2001:db8::2, takes it\nresolved by 0\n",
	} {
		if got := trace(WalkServers(r, cfg, "a", ns)); got != want {
			t.Errorf("%s:\n%swant\n%s", r, got, want)
		}
	}
}

// TestNoServer: without a nameserver nobody answers.
func TestNoServer(t *testing.T) {
	for _, r := range Measured() {
		if res := WalkServers(r, NewConfig(), "a.", Nameservers{}); res.Status != TryAgain {
			t.Errorf("%s: %s, want %s", r, res.Status, TryAgain)
		}
	}
}
