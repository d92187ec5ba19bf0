//go:build e2e && linux

package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool"
	"github.com/dnsmesh/kubectl-dnsmesh/internal/stubresolver"
)

// lanes is how many look-ups run at the same time. Most of their time is spent in waiting for servers that are silent.
const lanes = 48

// truth is one look-up under one configuration, with what the nameservers answer.
type truth struct {
	host    string
	conf    string // the resolv.conf, without nameservers
	servers int
	// answers has for absolute names what each nameserver answers; a name that it lacks does not exist.
	answers map[string][]reality
	hosts   []string
}

// reality is an answer and how it looks on the wire.
type reality struct {
	Answer
	// Aliased tells that addresses stand behind a CNAME record.
	aliased bool
}

func (c truth) file() string {
	var b strings.Builder
	b.WriteString(c.conf)
	for i := range c.servers {
		fmt.Fprintf(&b, "nameserver %s\n", stubresolver.Address(i))
	}
	return b.String()
}

func (c truth) config() Config {
	cfg, _ := ParseConfig("resolv.conf", []byte(c.file()))
	cfg.Hosts = c.hosts
	return cfg
}

func (c truth) answer(server int, name string) reality {
	if list, ok := c.answers[name]; ok {
		return list[min(server, len(list)-1)]
	}
	return reality{Answer: Negative(NXDomain, "")}
}

// zone lets the nameservers answer as the case says.
func (c truth) zone(server int, name string, aaaa bool) stubresolver.Reply {
	a := c.answer(server, name)
	t := TypeA
	if aaaa {
		t = TypeAAAA
	}
	r := a.reply(t)
	if r.Rcode == NoReply {
		return stubresolver.Reply{Silent: true}
	}
	reply := stubresolver.Reply{Rcode: int(r.Rcode), Truncated: a.cut(t)}
	if r.Records == AliasAlone || a.aliased {
		reply.Alias = "target.example.test."
	}
	if r == (Reply{Records: Address}) {
		reply.Addresses = only(a.Addresses, t)
	} else if r.Records == NoRecords {
		reply.Alias = ""
	}
	return reply
}

func only(list []netip.Addr, t Type) []netip.Addr {
	var kept []netip.Addr
	for _, addr := range list {
		if is4(addr) == (t == TypeA) {
			kept = append(kept, addr)
		}
	}
	return kept
}

// String describes the case so that it can be written down as a test.
func (c truth) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "host %q, resolv.conf:\n", c.host)
	for line := range strings.Lines(c.file()) {
		b.WriteString("    " + line)
	}
	for _, name := range slices.Sorted(maps.Keys(c.answers)) {
		for i, a := range c.answers[name] {
			fmt.Fprintf(&b, "  %s, server %d: A %s, AAAA %s %v", name, i, a.A, a.AAAA, a.Addresses)
			if a.Truncated {
				b.WriteString(" truncated")
			}
			if a.aliased {
				b.WriteString(" behind a CNAME")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// resolverOf is the model of a program.
func resolverOf(p stubresolver.Program) Resolver {
	v, _ := ParseVersion(p.Version)
	switch p.Library {
	case "musl":
		return Resolver{Musl, v}
	case "Go":
		return Resolver{Go, v}
	}
	return Resolver{Glibc, v}
}

// prediction is what a model says of a case.
type prediction struct {
	config  Config
	servers int
	result  Result
	sent    []Query
}

func (c truth) predict(r Resolver, first func(int, Type) int) prediction {
	p := prediction{config: c.config(), servers: c.servers}
	ns := Nameservers{First: first, Sent: func(q Query) { p.sent = append(p.sent, q) }}
	for i := range c.servers {
		ns.Ask = append(ns.Ask, func(name string) Answer { return c.answer(i, name).Answer })
	}
	p.result = WalkServers(r, p.config, c.host, ns)
	return p
}

// predictions are all courses that the model allows, where chance decides which nameserver is first.
func (c truth) predictions(r Resolver, log []stubresolver.Query) []prediction {
	cfg, n := c.config(), c.servers
	rotate := slices.Contains(cfg.Options, "rotate")
	var list []prediction
	switch {
	case n == 1 || !rotate && r.Library != Musl:
		list = append(list, c.predict(r, nil))
	case r.Library == Glibc:
		// A process begins with any server and then takes the next one for each candidate (nameserver_offset).
		for start := range n {
			list = append(list, c.predict(r, func(nth int, _ Type) int { return start + nth }))
		}
	case r.Library == Go:
		// Each query takes the next server (serverOffset), and the two of a candidate race, unless they are sent one by one.
		names := asked(r, cfg, c.host)
		list = append(list, c.predict(r, func(nth int, t Type) int {
			late := 0
			isA := func(q stubresolver.Query) bool { return q.Name == names[nth] && !q.AAAA }
			if i := slices.IndexFunc(log, isA); i >= 0 && log[i].Server != 2*nth%n && !newExchange(r, cfg, Nameservers{}).single {
				late = 1
			}
			return 2*nth + (int(t)+late)%2
		}))
	default:
		// The log has the order of the replies.
		names := asked(r, cfg, c.host)
		list = append(list, c.predict(r, func(nth int, t Type) int {
			for _, q := range log {
				if q.Name != names[nth] || q.AAAA != (t == TypeAAAA) || q.TCP {
					continue
				}
				if code := c.answer(q.Server, q.Name).reply(t).Rcode; code == NoError || code == NXDomain {
					return q.Server
				}
			}
			return 0
		}))
	}
	return list
}

// asked are the names of the candidates that somebody is asked for, in order.
func asked(r Resolver, cfg Config, host string) []string {
	var names []string
	for _, c := range Candidates(r, cfg, host) {
		if !c.Invalid {
			names = append(names, c.Name)
		}
	}
	return names
}

// statuses are the names that a program may give the end of a look-up.
func (p prediction) statuses() []string {
	r, res := p.result.Resolver, p.result
	if r.Library == Go {
		kind := func(s Status) string {
			switch s {
			case Resolved, Literal:
				return "OK"
			case TryAgain:
				return "TEMPORARY"
			case Failed:
				return "FAILED"
			}
			return "NOTFOUND"
		}
		list := []string{kind(res.Status)}
		if len(res.Steps) == 0 && res.Status == NotFound {
			// LookupHost gives neither an address nor an error where its list of names is empty.
			list = append(list, "OK")
		}
		if !res.Status.OK() && !newExchange(r, p.config, Nameservers{}).single {
			// Which of two errors comes last is left to chance.
			for _, s := range res.Steps {
				if s.Status == res.Status {
					list = append(list, kind(goError(s.Answer.A)), kind(goError(s.Answer.AAAA)))
				}
			}
		}
		return list
	}
	switch res.Status {
	case Resolved, Literal:
		return []string{"OK"}
	case TryAgain:
		return []string{"EAI_AGAIN"}
	case NoAddress:
		// A chain of aliases without address is EAI_NONAME with glibc, and so are all empty answers with musl to 1.2.3.
		if r.Library == Glibc && res.Steps[len(res.Steps)-1].Action != Stop || r.Library == Musl && !r.Version.Before(1, 2, 4) {
			return []string{"EAI_NODATA"}
		}
	}
	return []string{"EAI_NONAME"}
}

// addresses are those that the program gets, or some of which it gets if the result is partial.
func (p prediction) addresses() []netip.Addr {
	step, ok := p.result.Taken()
	if !ok {
		return nil
	}
	var list []netip.Addr
	for _, t := range []Type{TypeA, TypeAAAA} {
		if step.Answer.reply(t) == (Reply{Records: Address}) {
			list = append(list, only(step.Answer.Addresses, t)...)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// covers tells whether the addresses that a program got are those predicted. Of a truncated answer it gets one of each type
// that was cut, and with several nameservers not both need to be.
func (p prediction) covers(got, predicted []netip.Addr) bool {
	if !p.result.Partial {
		return slices.Equal(got, predicted)
	}
	for _, t := range []Type{TypeA, TypeAAAA} {
		have, all := only(got, t), only(predicted, t)
		if len(have) != min(len(all), 1) && (p.servers == 1 || !slices.Equal(have, all)) || len(have) == 1 && !slices.Contains(all, have[0]) {
			return false
		}
	}
	return true
}

// malformed tells whether the model has the resolver send a query that is none.
func (p prediction) malformed() bool {
	return slices.ContainsFunc(p.result.Steps, func(s Step) bool { return s.Invalid && s.Answer.A.Rcode == NoReply })
}

// differs says in what the real course is not the predicted one; "" if in nothing.
func (p prediction) differs(outcome stubresolver.Outcome, log []stubresolver.Query) string {
	var got []Query
	malformed := false
	for _, q := range log {
		if q.Name == "" {
			malformed = true
			continue
		}
		t := TypeA
		if q.AAAA {
			t = TypeAAAA
		}
		got = append(got, Query{q.Server, q.Name, t, q.TCP})
	}
	if want := p.malformed(); malformed != want {
		return fmt.Sprintf("sends a malformed query: %v, predicted %v", malformed, want)
	}
	if names := uniqueNames(got); !slices.Equal(names, uniqueNames(p.sent)) {
		return fmt.Sprintf("asks for %s, predicted %s", names, uniqueNames(p.sent))
	}
	got, want := arrange(p.result.Resolver, got), arrange(p.result.Resolver, p.sent)
	if !slices.Equal(got, want) {
		return fmt.Sprintf("sends\n    %v\n  predicted\n    %v", got, want)
	}
	if s := p.statuses(); !slices.Contains(s, outcome.Status) {
		return fmt.Sprintf("ends %s %s, predicted %s (%s)", outcome.Status, outcome.Addresses, p.result.Status, s)
	}
	if addresses := p.addresses(); p.result.Status == Resolved && !p.covers(outcome.Addresses, addresses) {
		return fmt.Sprintf("gets %s, predicted %s, partial %v", outcome.Addresses, addresses, p.result.Partial)
	}
	return ""
}

// uniqueNames are the names in the order in which they are first asked.
func uniqueNames(list []Query) []string {
	var names []string
	for _, q := range list {
		names = append(names, q.Name)
	}
	return unique(names)
}

// arrange puts queries in an order that chance has no part in. The two sockets of UDP and TCP are read by turns; Go's types
// and musl's servers race, and how often musl repeats a query hangs on the time that passes.
func arrange(r Resolver, list []Query) []Query {
	list = slices.Clone(list)
	stream := func(q Query) int {
		if q.Stream {
			return 1
		}
		return 0
	}
	switch r.Library {
	case Glibc:
		slices.SortStableFunc(list, func(a, b Query) int { return cmp.Compare(stream(a), stream(b)) })
	case Go:
		slices.SortStableFunc(list, func(a, b Query) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(stream(a), stream(b)))
		})
	default:
		slices.SortFunc(list, func(a, b Query) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type), cmp.Compare(stream(a), stream(b)), cmp.Compare(a.Server, b.Server))
		})
		list = slices.Compact(list)
	}
	return list
}

// run compares a case with a real resolver. It returns "" where they agree.
func (c truth) run(lane *stubresolver.Lane, program stubresolver.Program, index int) (string, error) {
	r := resolverOf(program)
	if program.NoTCP && r.hasTCP() {
		c = c.whole()
	}
	if err := lane.Configure(c.file(), c.hosts); err != nil {
		return "", err
	}
	outcome, log, err := lane.Lookup(index, c.host, c.zone)
	if err != nil {
		return "", err
	}
	if c.aborts(r) {
		// It does not read the file for a name that needs no query.
		_, without := r.withoutQuery(c.config(), c.host)
		switch died := strings.HasPrefix(outcome.Status, "died"); {
		case died:
			return "", nil
		case !without:
			return fmt.Sprintf("%s ends %s, although its search list makes it abort", r, outcome.Status), nil
		}
	}
	var difference string
	for _, p := range c.predictions(r, log) {
		d := p.differs(outcome, log)
		if d == "" {
			return "", nil
		}
		difference = fmt.Sprintf("%s %s\n  ends %s %s\n  predicted\n    %s", r, d, outcome.Status, outcome.Addresses,
			strings.ReplaceAll(trace(p.result), "\n", "\n    "))
	}
	return difference, nil
}

// whole is the case without truncated answers.
func (c truth) whole() truth {
	answers := make(map[string][]reality, len(c.answers))
	for name, list := range c.answers {
		list = slices.Clone(list)
		for i := range list {
			list[i].Truncated = false
		}
		answers[name] = list
	}
	c.answers = answers
	return c
}

// aborts tells whether glibc ends the program on this search list (resolv_conf_matches in resolv_conf.c): a domain does not
// fit the 256 octets of its old buffer, with less than six domains and no more than 56 octets in front of it.
func (c truth) aborts(r Resolver) bool {
	var words []string
	for line := range strings.Lines(c.conf) {
		if w := strings.Fields(line); len(w) > 1 && (w[0] == "search" || w[0] == "domain") {
			words = w[1:]
		}
	}
	size := 0
	for i, w := range words {
		switch {
		case r.Library != Glibc || i == 6:
			return false
		case size+len(w)+1 > 256: // with an octet 0 behind each
			return size <= 56
		}
		size += len(w) + 1
	}
	return false
}

// shrink returns a smaller case that still differs, and how.
func (c truth) shrink(lane *stubresolver.Lane, program stubresolver.Program, index int, difference string) (truth, string) {
	deadline := time.Now().Add(time.Minute)
	for again := true; again; {
		again = false
		for _, smaller := range c.smaller() {
			if time.Now().After(deadline) {
				return c, difference
			}
			if d, err := smaller.run(lane, program, index); err == nil && d != "" {
				c, difference, again = smaller, d, true
				break
			}
		}
	}
	return c, difference
}

// smaller are cases with one thing less.
func (c truth) smaller() []truth {
	var list []truth
	for name := range c.answers {
		s := c
		s.answers = maps.Clone(c.answers)
		delete(s.answers, name)
		list = append(list, s)
	}
	lines := slices.Collect(strings.Lines(c.conf))
	for i, line := range lines {
		words := strings.Fields(line)
		for k := 1; k < len(words); k++ {
			s := c
			less := slices.Delete(slices.Clone(words), k, k+1)
			text := strings.Join(less, " ") + "\n"
			if len(less) == 1 {
				text = ""
			}
			s.conf = strings.Join(slices.Concat(lines[:i], []string{text}, lines[i+1:]), "")
			list = append(list, s)
		}
	}
	if c.servers > 1 {
		s := c
		s.servers--
		list = append(list, s)
	}
	return list
}

// openLanes builds the probes and opens n lanes.
func openLanes(t *testing.T, n int) ([]*stubresolver.Lane, []stubresolver.Program) {
	t.Helper()
	if os.Geteuid() != 0 {
		realtool.Missing(t, realtool.Optional(errors.New("namespaces for resolvers need root")))
	}
	dir := t.TempDir()
	programs, err := stubresolver.Build(filepath.Join("..", "..", "internal", "stubresolver"), dir)
	if errors.Is(err, exec.ErrNotFound) {
		realtool.Missing(t, realtool.Optional(err))
	}
	if err != nil {
		t.Fatal(err)
	}
	more, err := stubresolver.Compiled(os.Getenv("TRUTH_PROBES"))
	if err != nil {
		t.Fatal(err)
	}
	programs = append(programs, more...)
	var list []*stubresolver.Lane
	for range n {
		lane, err := stubresolver.NewLane(programs, t.TempDir())
		if errors.Is(err, fs.ErrPermission) {
			realtool.Missing(t, realtool.Optional(err))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := lane.Close(); err != nil {
				t.Error(err)
			}
		})
		list = append(list, lane)
	}
	return list, programs
}

// judge runs cases on all lanes and reports those in which a model is wrong.
func judge(t *testing.T, lanes []*stubresolver.Lane, programs []stubresolver.Program, count int, at func(i int) (string, truth)) {
	t.Helper()
	var next atomic.Int64
	var running sync.WaitGroup
	var unstable, failed atomic.Int64
	started := time.Now()
	for _, lane := range lanes {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && failed.Load() < 10; i = int(next.Add(1)) - 1 {
				label, c := at(i)
				for k, p := range programs {
					difference, err := c.run(lane, p, k)
					if err != nil {
						failed.Add(1)
						t.Errorf("%s: %v\n%s", label, err, c)
						return
					}
					if difference == "" {
						continue
					}
					// A course that chance decides against the model would be seen again in one of a few runs.
					again := ""
					for range 3 {
						if again, _ = c.run(lane, p, k); again != "" {
							break
						}
					}
					if again == "" {
						unstable.Add(1)
						t.Logf("%s: seen once in four runs: %s\n%s", label, difference, c)
						continue
					}
					failed.Add(1)
					small, how := c.shrink(lane, p, k, again)
					t.Errorf("%s: %s\n%s", label, how, small)
				}
			}
		})
	}
	running.Wait()
	took := time.Since(started)
	t.Logf("%d names for each of %d resolvers in %.0f s, %d unstable", min(int(next.Load()), count), len(programs), took.Seconds(), unstable.Load())
	if n := unstable.Load(); n > int64(count/1000) {
		t.Errorf("%d look-ups differed once from the models and then no more", n)
	}
}

// number returns the number in an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// scripted is a case with one nameserver.
func scripted(host string, ndots int, search []string, answers map[string]Answer) truth {
	c := truth{host: host, servers: 1, answers: make(map[string][]reality)}
	if len(search) > 0 {
		c.conf = "search " + strings.Join(search, " ") + "\n"
	}
	c.conf += fmt.Sprintf("options ndots:%d timeout:1 attempts:1\n", ndots)
	for name, a := range answers {
		c.answers[name] = []reality{{Answer: a}}
	}
	return c
}

// TestE2EStubResolvers puts the tables of TestSearchEnds, TestSearchOrder, TestWalkCourses and TestWalkServers to all real resolvers, and
// then random cases: $TRUTH_NAMES of them (600), from the seed $TRUTH_SEED.
// $TRUTH_PROBES adds resolvers: see stubresolver.Compiled.
func TestE2EStubResolvers(t *testing.T) {
	open, programs := openLanes(t, lanes)
	for _, p := range programs {
		t.Logf("%s %s", p.Library, p.Version)
	}
	t.Run("tables", func(t *testing.T) {
		var labels []string
		var cases []truth
		for _, end := range searchEnds() {
			for _, where := range []string{thirdName, bareName} {
				answers := map[string]Answer{secondName: end.answer, where: found("192.0.2.2")}
				labels = append(labels, end.name+", then an address for "+where)
				cases = append(cases, scripted("my-app", podSearch().NDots, podSearch().Search, answers))
			}
		}
		for _, o := range searchOrders() {
			labels = append(labels, o.name)
			cases = append(cases, scripted(o.host, o.ndots, o.search, nil))
		}
		for _, c := range courses() {
			labels = append(labels, c.name)
			cases = append(cases, scripted(c.host, c.ndots, c.search, c.answers))
		}
		for _, c := range serverCourses() {
			labels = append(labels, c.name)
			tc := truth{host: c.asks(), conf: c.conf, servers: c.servers(), answers: make(map[string][]reality)}
			for name, list := range c.answers {
				for _, a := range list {
					tc.answers[name] = append(tc.answers[name], reality{Answer: a})
				}
			}
			cases = append(cases, tc)
		}
		judge(t, open, programs, len(cases), func(i int) (string, truth) { return labels[i], cases[i] })
	})
	t.Run("random", func(t *testing.T) {
		seed := number(t, "TRUTH_SEED", 1)
		t.Logf("TRUTH_SEED=%d", seed)
		judge(t, open, programs, number(t, "TRUTH_NAMES", 600), func(i int) (string, truth) {
			return fmt.Sprintf("case %d of seed %d", i, seed), randomTruth(rand.New(rand.NewPCG(uint64(seed), uint64(i))))
		})
	})
}

// draw returns one of the values.
func draw[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// odds is true in n of 100 cases.
func odds(rng *rand.Rand, n int) bool { return rng.IntN(100) < n }

func randomTruth(rng *rand.Rand) truth {
	c := truth{servers: draw(rng, 1, 1, 1, 2, 3), answers: make(map[string][]reality)}
	labels := []string{"a", "b", "my-app", "svc", "com", "under_score", "www", "A", "x1", "7"}
	parts := []string{draw(rng, labels...)}
	for range draw(rng, 0, 0, 0, 1, 1, 2, 3, 5, 16) {
		parts = append(parts, draw(rng, labels...))
	}
	c.host = strings.Join(parts, ".")
	switch n := rng.IntN(100); {
	case n < 12:
		c.host += "."
	case n < 14:
		c.host += ".onion"
	case n < 16:
		c.host = draw(rng, "192.0.2.1", "127.1", "2001:db8::1", "localhost", "a..b", "-a", "a+b", "host.example.test", "a-", "*.example.test", "_dns._udp.b")
		c.hosts = []string{"host.example.test"}
	}
	var search []string
	pool := []string{
		"n.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.test", "a.example.test", "b", "Corp.example.org", "c.onion",
	}
	for range rng.IntN(6) {
		search = append(search, draw(rng, pool...))
	}
	if c.servers == 1 || odds(rng, 50) {
		// Several nameservers and a name that is asked twice would leave open which replies of musl's log belong to which.
		if odds(rng, 8) && len(search) > 0 {
			search = append(search, search[rng.IntN(len(search))])
		}
	}
	if c.servers > 1 {
		search = unique(search)
	}
	if odds(rng, 8) {
		search = slices.Insert(search, rng.IntN(len(search)+1), ".")
	}
	if odds(rng, 4) {
		for i := range 12 {
			search = append(search, fmt.Sprintf("domain-%02d.example.org", i))
		}
	}
	for i := range search {
		if odds(rng, 10) && search[i] != "." {
			search[i] += "."
		}
	}
	if odds(rng, 5) {
		// Host and domain together are just short enough for a name, or just too long.
		const label = "a-label-of-twenty-f-octets."
		domain := strings.Repeat(label, 10)[:min(max(250+rng.IntN(9)-len(c.host)-1, 1), 250)]
		if odds(rng, 50) {
			search = nil
		}
		search = slices.Insert(search, rng.IntN(len(search)+1), strings.TrimRight(domain, "-.")+"b")
	}
	options := []string{fmt.Sprintf("ndots:%d", draw(rng, 0, 1, 1, 2, 3, 5, 5, 5, 15)), "timeout:1"}
	options = append(options, fmt.Sprintf("attempts:%d", draw(rng, 1, 1, 1, 2, 3)))
	for _, o := range []struct {
		name string
		odds int
	}{{"single-request", 10}, {"single-request-reopen", 5}, {"use-vc", 8}, {"rotate", 15}, {"edns0", 5}, {"trust-ad", 3}} {
		if odds(rng, o.odds) {
			options = append(options, o.name)
		}
	}
	if odds(rng, 5) {
		c.conf = "domain lost.example.test\n"
	}
	if len(search) > 0 {
		c.conf += "search " + strings.Join(search, draw(rng, " ", " ", "\t", "  ")) + "\n"
	}
	if odds(rng, 5) {
		c.conf += draw(rng, "# nameserver 127.0.0.9\n", "; search lost.example.test\n", "\n", "unknown word\n")
	}
	if odds(rng, 10) {
		c.conf += "options " + options[0] + "\n"
		options = options[1:]
	}
	c.conf += "options " + strings.Join(options, " ") + "\n"
	stream := slices.Contains(options, "use-vc")
	for _, name := range c.names() {
		n := 1
		if odds(rng, 40) {
			n = c.servers
		}
		for range n {
			c.answers[name] = append(c.answers[name], randomAnswer(rng, stream))
		}
	}
	return c
}

// names are all that any resolver may ask for, in a stable order.
func (c truth) names() []string {
	var list []string
	for _, r := range append(Measured(), musl124) {
		for _, candidate := range Candidates(r, c.config(), c.host) {
			list = append(list, candidate.Name)
		}
	}
	list = slices.DeleteFunc(list, func(name string) bool { return name == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

func randomAnswer(rng *rand.Rand, stream bool) reality {
	one := func() Reply {
		switch n := rng.IntN(100); {
		case n < 30:
			return Reply{Rcode: NXDomain}
		case n < 50:
			return Reply{}
		case n < 60:
			return Reply{Records: AliasAlone}
		case n < 82:
			return Reply{Records: Address}
		case n < 88:
			return Reply{Rcode: ServFail}
		case n < 91:
			return Reply{Rcode: Refused}
		case n < 93:
			return Reply{Rcode: NotImp}
		case n < 95:
			return Reply{Rcode: FormErr}
		}
		return Reply{Rcode: NoReply}
	}
	a := reality{Answer: Answer{Known: true, A: one()}, aliased: odds(rng, 20)}
	a.AAAA = a.A
	if odds(rng, 45) {
		a.AAAA = one()
		if a.A == (Reply{Records: Address}) && odds(rng, 60) {
			a.AAAA = Reply{}
		}
	}
	if stream && (a.A.Rcode == NoReply) != (a.AAAA.Rcode == NoReply) {
		// A server that closes the connection closes it for both.
		a.AAAA = a.A
	}
	// With a truncated reply, and none for the other type, a server would have to answer by TCP what it does not by UDP.
	a.Truncated = odds(rng, 12) && a.A.Rcode != NoReply && a.AAAA.Rcode != NoReply
	n := rng.IntN(250)
	for _, t := range []Type{TypeA, TypeAAAA} {
		for i := range 1 + rng.IntN(3) {
			if a.reply(t) == (Reply{Records: Address}) {
				prefix := []string{"192.0.2.", "2001:db8::"}[t]
				a.Addresses = append(a.Addresses, netip.MustParseAddr(fmt.Sprintf("%s%d", prefix, (n+i)%250)))
			}
		}
	}
	return a
}
