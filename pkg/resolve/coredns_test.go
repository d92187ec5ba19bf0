package resolve

import (
	"encoding/json"
	"io/fs"
	"iter"
	"maps"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// fakeNames is a small cluster.
type fakeNames struct {
	namespaces []string
	services   []Service
	pods       map[string][]netip.Addr
	noPods     bool
}

func (f *fakeNames) HasNamespace(ns string) bool  { return slices.Contains(f.namespaces, ns) }
func (f *fakeNames) Namespaces() iter.Seq[string] { return slices.Values(f.namespaces) }
func (f *fakeNames) Services(ns string) iter.Seq[Service] {
	return f.filter(func(s Service) bool { return s.Namespace == ns })
}

func (f *fakeNames) ExternalNames(ns string) iter.Seq[Service] {
	return f.filter(func(s Service) bool { return s.Namespace == ns && s.Kind == ExternalName })
}

func (f *fakeNames) filter(keep func(Service) bool) iter.Seq[Service] {
	return func(yield func(Service) bool) {
		for _, s := range f.services {
			if keep(s) && !yield(s) {
				return
			}
		}
	}
}

func (f *fakeNames) Service(ns, name string) (Service, bool) {
	for _, s := range f.services {
		if s.Namespace == ns && s.Name == name {
			return s, true
		}
	}
	return Service{}, false
}

func (f *fakeNames) HasPod(ns string, addr netip.Addr) (has, known bool) {
	return slices.Contains(f.pods[ns], addr), !f.noPods
}

// recorded is testdata/coredns/cluster.json, which the real plugin was asked about.
type recorded struct {
	Domain     string
	Namespaces []string
	Pods       []struct {
		Namespace string
		Address   netip.Addr
	}
	Outside  map[string][]netip.Addr
	Services []struct {
		Namespace, Name, Kind, Target string
		Addresses                     []netip.Addr
		Ports                         []Port
		Endpoints                     []Endpoint
	}
}

func loadRecorded(t *testing.T, fsys fs.FS) (*fakeNames, func(string) Answer) {
	t.Helper()
	src, err := fs.ReadFile(fsys, "cluster.json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recorded
	if err := json.Unmarshal(src, &rec); err != nil {
		t.Fatal(err)
	}
	names := &fakeNames{namespaces: rec.Namespaces, pods: map[string][]netip.Addr{}}
	for _, p := range rec.Pods {
		names.pods[p.Namespace] = append(names.pods[p.Namespace], p.Address)
	}
	kinds := map[string]ServiceKind{"ClusterIP": ClusterIP, "Headless": Headless, "ExternalName": ExternalName}
	for _, s := range rec.Services {
		kind, ok := kinds[s.Kind]
		if !ok {
			t.Fatalf("kind %q", s.Kind)
		}
		names.services = append(names.services, Service{
			Namespace: s.Namespace, Name: s.Name, Kind: kind, Target: s.Target,
			Addresses: s.Addresses, Ports: s.Ports, Endpoints: s.Endpoints,
		})
	}
	return names, func(name string) Answer {
		addrs, ok := rec.Outside[name]
		switch {
		case !ok:
			return Negative(NXDomain, "")
		case len(addrs) == 0:
			return NoData("")
		}
		return Found(addrs...)
	}
}

// TestRecorded compares the model with what the kubernetes plugin of several releases answered (see record_test.go
// beside the recordings).
func TestRecorded(t *testing.T) {
	fsys := os.DirFS("testdata/coredns")
	names, outsideAnswer := loadRecorded(t, fsys)
	files, err := fs.Glob(fsys, "*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		version, ok := ParseVersion(strings.TrimSuffix(path.Base(file), ".txt"))
		if !ok {
			t.Fatalf("%s names no version", file)
		}
		t.Run(version.String(), func(t *testing.T) {
			src, err := fs.ReadFile(fsys, file)
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for line := range strings.Lines(string(src)) {
				f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				if len(f) < 4 {
					t.Fatalf("line %q", line)
				}
				c := serverOf(f[0], version, names)
				c.Outside = outsideAnswer
				name := strings.ToLower(f[1])
				got := c.Answer(name)
				leadsOut := func(al Alias) bool { return !Under(al.Target, c.Zone) }
				if version.Before(1, 9, 0) && slices.ContainsFunc(got.Aliases, leadsOut) {
					continue // the recorder has no resolver behind these releases
				}
				compared++
				if a, aaaa := short(got.A), short(got.AAAA); a != f[2] || aaaa != f[3] || !got.Known {
					t.Errorf("%s: %s: A %s, AAAA %s, known %v; real %s, %s (%s)", f[0], name, a, aaaa, got.Known, f[2], f[3], got.Note)
				}
				var want []string
				if len(f) > 4 {
					want = strings.Fields(f[4])
				}
				var have []string
				for _, addr := range got.Addresses {
					have = append(have, addr.String())
				}
				slices.Sort(want)
				slices.Sort(have)
				if !slices.Equal(slices.Compact(want), have) {
					t.Errorf("%s: %s: addresses %v, real %v", f[0], name, have, want)
				}
			}
			if compared < 500 {
				t.Errorf("compared %d answers only", compared)
			}
		})
	}
}

// serverOf is the model with the options of a recorded variant.
func serverOf(variant string, v Version, names Names) *CoreDNS {
	c := &CoreDNS{Zone: "cluster.local.", Version: v, Names: names, Pods: PodsInsecure}
	words := strings.Fields(variant)
	switch words[0] {
	case "pods":
		c.Pods = PodMode(words[1])
	case "ignore":
		c.IgnoreEmptyService = true
	case "noendpoints":
		c.NoEndpoints = true
	case "namespaces":
		c.Namespaces = words[1:]
	case "endpoint_pod_names":
		c.EndpointPodNames = true
	}
	return c
}

// short is a reply in the words of the recordings.
func short(r Reply) string {
	if r == (Reply{Records: AliasAlone}) {
		return "CNAME"
	}
	return r.String()
}

// legacy is the case of the foundation: a namespace left with aliases after a move.
func legacy() *fakeNames {
	alias := func(name, target string) Service {
		return Service{Namespace: "my-app", Name: name, Kind: ExternalName, Target: target}
	}
	service := func(ns, name, addr string) Service {
		return Service{Namespace: ns, Name: name, Addresses: []netip.Addr{mustAddr(addr)}, Ports: []Port{{"http", "TCP"}}}
	}
	return &fakeNames{
		namespaces: []string{"empty", "my-app", "new-namespace-1", "new-namespace-2", "plain"},
		services: []Service{
			alias("other-app-1", "other-app-1.new-namespace-2.svc.cluster.local"),
			alias("other-app-2", "other-app-2.new-namespace-2.svc.cluster.local"),
			service("new-namespace-2", "my-app", "10.96.0.1"),
			service("new-namespace-2", "other-app-1", "10.96.0.2"),
			service("new-namespace-2", "other-app-2", "10.96.0.3"),
			service("plain", "web", "10.96.0.4"),
		},
	}
}

// TestNamespaceNode is the first table of the facts, through whole look-ups.
func TestNamespaceNode(t *testing.T) {
	node := NewConfig()
	cfg := PodConfig(PodDNS{Namespace: "new-namespace-1"}, Cluster{Domain: "cluster.local."}, &node)
	names := legacy()
	kube := &KubeDNS{Zone: "cluster.local.", Names: names}
	for _, r := range Measured() {
		res := Walk(r, cfg, "my-app", kube.Answer)
		if res.Status != Resolved || res.Steps[res.By].Answer.Match != (Match{Node: NamespaceNode, Namespace: "my-app"}) {
			t.Fatalf("kube-dns, %s: %s", r, trace(res))
		}
		if step, ok := res.Taken(); !ok || !step.Answer.Varies {
			t.Errorf("kube-dns, %s: the answer does not vary", r)
		}
		var aliases []string
		for _, al := range res.Steps[res.By].Answer.Aliases {
			aliases = append(aliases, al.Owner+" "+al.Target)
		}
		want := []string{
			"other-app-1.my-app.svc.cluster.local. other-app-1.new-namespace-2.svc.cluster.local.",
			"other-app-2.my-app.svc.cluster.local. other-app-2.new-namespace-2.svc.cluster.local.",
		}
		if !slices.Equal(aliases, want) {
			t.Errorf("kube-dns, %s: aliases %v, want %v", r, aliases, want)
		}
		if got := res.Steps[res.By].Answer.String(); got != "address 10.96.0.2 10.96.0.3" {
			t.Errorf("kube-dns, %s: %s", r, got)
		}
		for _, ns := range []string{"plain", "empty", "nowhere"} {
			if res := Walk(r, cfg, ns, kube.Answer); res.Steps[1].Answer.A.Rcode != NXDomain {
				t.Errorf("kube-dns, %s, namespace %s: %s", r, ns, trace(res))
			}
		}
	}
	for _, v := range []Version{{1, 6, 9}, {1, 11, 3}, {1, 14, 6}, {}} {
		core := &CoreDNS{Zone: "cluster.local.", Version: v, Names: names}
		for _, ns := range []string{"my-app", "plain", "empty"} {
			a := core.Answer(ns + ".svc.cluster.local.")
			if !a.Known || a.A != (Reply{}) || a.AAAA != (Reply{}) || a.Match.Node != NamespaceNode {
				t.Errorf("CoreDNS %s, namespace %s: %s, node %d", v, ns, a, a.Match.Node)
			}
		}
		if a := core.Answer("nowhere.svc.cluster.local."); a.A.Rcode != NXDomain || a.Match.Node != NoNode {
			t.Errorf("CoreDNS %s, no namespace: %s", v, a)
		}
		for i, r := range Measured() {
			later := func(name string) Answer {
				if name == "my-app.cluster.local." {
					return found("192.0.2.1")
				}
				return core.Answer(name)
			}
			want := []bool{true, false, true}[i]
			if res := Walk(r, cfg, "my-app", later); res.Status.OK() != want {
				t.Errorf("CoreDNS %s, %s, a later domain answers: %s", v, r, trace(res))
			}
		}
	}
}

func TestOutsideTheDomain(t *testing.T) {
	names := legacy()
	for _, s := range []ClusterServer{&CoreDNS{Zone: "cluster.local.", Names: names}, &KubeDNS{Zone: "cluster.local.", Names: names}} {
		a := s.Answer("example.org.")
		if a.Known || a.Match.Node != OutsideNode || a.A.Rcode != NXDomain {
			t.Errorf("%T: %s, node %d", s, a, a.Match.Node)
		}
		if s.Domain() != "cluster.local." {
			t.Errorf("%T: domain %s", s, s.Domain())
		}
	}
}

// TestCapture: names below an ExternalName Service, by version.
func TestCapture(t *testing.T) {
	names := &fakeNames{namespaces: []string{"default"}, services: []Service{
		{Namespace: "default", Name: "com", Kind: ExternalName, Target: "web.default.svc.cluster.local"},
		{Namespace: "default", Name: "web", Addresses: []netip.Addr{mustAddr("10.96.0.1")}},
	}}
	for _, tt := range []struct {
		v        Version
		one, two bool
	}{
		{Version{1, 10, 0}, true, true}, {Version{1, 10, 1}, false, true}, {Version{1, 11, 0}, false, false}, {Version{}, false, false},
	} {
		c := &CoreDNS{Zone: "cluster.local.", Version: tt.v, Names: names}
		one, two := c.Answer("google.com.default.svc.cluster.local."), c.Answer("www.google.com.default.svc.cluster.local.")
		if one.HasAddress() != tt.one || two.HasAddress() != tt.two || one.Match.Captured != tt.one || two.Match.Captured != tt.two {
			t.Errorf("%s: one label %s, two labels %s; want captured %v, %v", tt.v, one, two, tt.one, tt.two)
		}
		if tt.one && one.Match.Service != "com" {
			t.Errorf("%s: captured by %q", tt.v, one.Match.Service)
		}
	}
}

func TestCoreDNSOptions(t *testing.T) {
	names := legacy()
	names.noPods = true
	names.services = append(names.services,
		Service{Namespace: "plain", Name: "db", Kind: Headless, EndpointsUnknown: true},
		Service{Namespace: "plain", Name: "ext", Kind: ExternalName, Target: "example.org"},
		Service{Namespace: "plain", Name: "url", Kind: ExternalName, Target: "https://example.org/"},
		Service{Namespace: "plain", Name: "todb", Kind: ExternalName, Target: "db.plain.svc.cluster.local"},
	)
	tests := []struct {
		name   string
		server CoreDNS
		ask    string
		known  bool
		a      string
		alias  int
	}{
		{"namespace_labels hides", CoreDNS{NamespaceSelected: func(string) bool { return false }}, "web.plain.svc", true, "NXDOMAIN", 0},
		{"labels hides", CoreDNS{ServiceSelected: func(_, n string) bool { return n != "web" }}, "web.plain.svc", true, "NXDOMAIN", 0},
		{"labels shows", CoreDNS{ServiceSelected: func(_, n string) bool { return n == "web" }}, "web.plain.svc", true, "address", 0},
		{"fallthrough makes NXDOMAIN unknown", CoreDNS{Fallthrough: []string{"."}}, "nope.plain.svc", false, "NXDOMAIN", 0},
		{"fallthrough keeps NODATA", CoreDNS{Fallthrough: []string{"."}}, "plain.svc", true, "NODATA", 0},
		{"fallthrough of reverse zones", CoreDNS{Fallthrough: []string{"in-addr.arpa.", "ip6.arpa."}}, "nope.plain.svc", true, "NXDOMAIN", 0},
		{"endpoints not read", CoreDNS{}, "db.plain.svc", false, "NXDOMAIN", 0},
		{"endpoints not read, behind an alias", CoreDNS{}, "todb.plain.svc", false, "NODATA", 1},
		{"endpoints not read, ignore empty_service", CoreDNS{IgnoreEmptyService: true}, "db.plain.svc", false, "NXDOMAIN", 0},
		{"pods not read", CoreDNS{Pods: PodsVerified}, "10-0-0-1.plain.pod", false, "NXDOMAIN", 0},
		{"pods are off by default", CoreDNS{}, "10-0-0-1.plain.pod", true, "NXDOMAIN", 0},
		{"an alias that leads out", CoreDNS{}, "ext.plain.svc", false, "CNAME alone", 1},
		{"an alias to a URL", CoreDNS{}, "url.plain.svc", false, "NXDOMAIN", 1},
		{"the server itself", CoreDNS{}, "ns.dns", true, "address", 0},
	}
	for _, tt := range tests {
		c := tt.server
		c.Zone, c.Names = "cluster.local.", names
		a := c.Answer(tt.ask + ".cluster.local.")
		if a.Known != tt.known || a.A.String() != tt.a || len(a.Aliases) != tt.alias {
			t.Errorf("%s: known %v, A %s, %d aliases; want %v, %s, %d", tt.name, a.Known, a.A, len(a.Aliases), tt.known, tt.a, tt.alias)
		}
		if (a.A.Rcode == NXDomain || !a.Known) && a.Note == "" {
			t.Errorf("%s: no note", tt.name)
		}
	}
}

// TestAliasLimits: a chain is followed up to MaxAliases and no further, and branching aliases end.
func TestAliasLimits(t *testing.T) {
	chain := func(n int) *fakeNames {
		f := &fakeNames{namespaces: []string{"default"}, services: []Service{{Namespace: "default", Name: "end", Addresses: []netip.Addr{mustAddr("10.96.0.1")}}}}
		for i := range n {
			target := "end"
			if i > 0 {
				target = "a" + strings.Repeat("x", i-1)
			}
			f.services = append(f.services, Service{Namespace: "default", Name: "a" + strings.Repeat("x", i), Kind: ExternalName, Target: target + ".default.svc.cluster.local"})
		}
		return f
	}
	servers := map[string]func(Names) interface {
		ClusterServer
		MaxAliases() int
	}{
		"CoreDNS 1.12.0": func(n Names) interface {
			ClusterServer
			MaxAliases() int
		} {
			return &CoreDNS{Zone: "cluster.local.", Version: Version{1, 12, 0}, Names: n}
		},
		"CoreDNS 1.12.1": func(n Names) interface {
			ClusterServer
			MaxAliases() int
		} {
			return &CoreDNS{Zone: "cluster.local.", Version: Version{1, 12, 1}, Names: n}
		},
		"kube-dns": func(n Names) interface {
			ClusterServer
			MaxAliases() int
		} {
			return &KubeDNS{Zone: "cluster.local.", Names: n}
		},
	}
	want := map[string]int{"CoreDNS 1.12.0": 8, "CoreDNS 1.12.1": 11, "kube-dns": 8}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		limit := servers[name](chain(0)).MaxAliases()
		if limit != want[name] {
			t.Errorf("%s: limit %d, want %d", name, limit, want[name])
		}
		for n := 1; n <= limit+2; n++ {
			a := servers[name](chain(n)).Answer("a" + strings.Repeat("x", n-1) + ".default.svc.cluster.local.")
			if a.HasAddress() != (n <= limit) || a.A.Rcode != NoError || !a.Known {
				t.Errorf("%s: chain of %d aliases: %s", name, n, a)
			}
		}
	}
	// Every namespace node of kube-dns leads to every other: without a bound this takes 300 to the eighth steps.
	wild := &fakeNames{}
	for i := range 10 {
		ns := "n" + string(rune('a'+i))
		wild.namespaces = append(wild.namespaces, ns)
		for j := range 30 {
			wild.services = append(wild.services, Service{Namespace: ns, Name: "s" + string(rune('a'+j%26)) + string(rune('a'+j/26)), Kind: ExternalName, Target: "n" + string(rune('a'+j%10)) + ".svc.cluster.local"})
		}
	}
	if a := (&KubeDNS{Zone: "cluster.local.", Names: wild}).Answer("na.svc.cluster.local."); a.Known || len(a.Aliases) == 0 {
		t.Errorf("branching aliases: %s with %d aliases, want an unknown answer", a, len(a.Aliases))
	}
}

func TestKubeDNS(t *testing.T) {
	names, outsideAnswer := loadRecorded(t, os.DirFS("testdata/coredns"))
	const none = "NXDOMAIN, NXDOMAIN"
	tests := []struct {
		ask, want string
		node      Node
	}{
		{"", none, NoNode},
		{"svc", none, NoNode},
		{"pod", none, NoNode},
		{"apps.svc", none, NoNode},
		{"my-app.svc", "address, NODATA", NamespaceNode},
		{"apps.pod", none, NoNode},
		{"web.apps.svc", "address, NODATA", ServiceNode},
		{"dual.apps.svc", "address, address", ServiceNode},
		{"nope.apps.svc", none, NoNode},
		{"web.nope.svc", none, NoNode},
		{"db.apps.svc", "address, address", ServiceNode},
		{"cold.apps.svc", none, NoNode},
		{"db-0.db.apps.svc", "address, NODATA", EndpointNode},
		{"db-1.db.apps.svc", none, NoNode},
		{"10-0-0-4.db.apps.svc", none, NoNode},
		{"web-0.web.apps.svc", none, NoNode},
		{"_http._tcp.web.apps.svc", "address, NODATA", PortNode},
		{"http.tcp.web.apps.svc", none, NoNode},
		{"_pg._tcp.db.apps.svc", "address, address", PortNode},
		{"_x._tcp.db.apps.svc", none, NoNode},
		{"_tcp.web.apps.svc", none, NoNode},
		{"a.b.c.web.apps.svc", none, NoNode},
		{"10-0-0-1.apps.pod", "address, NODATA", PodNode},
		{"10-0-0-1.nope.pod", "address, NODATA", PodNode},
		{"web.apps.pod", "NODATA, NODATA", PodNode},
		{"2001-db8--7.apps.pod", "NODATA, NODATA", PodNode},
		{"dns-version", none, NoNode},
		{"ext.default.svc", "address, address", ServiceNode},
		{"ext6.default.svc", "CNAME alone, address", ServiceNode},
		{"empty.default.svc", "CNAME alone, CNAME alone", ServiceNode},
		{"gone.default.svc", "NODATA, NODATA", ServiceNode},
		{"dangling.default.svc", "NODATA, NODATA", ServiceNode},
		{"loop1.default.svc", "NODATA, NODATA", ServiceNode},
		{"self.default.svc", "NODATA, NODATA", ServiceNode},
		{"ip.default.svc", "address, NODATA", ServiceNode},
		{"ip6.default.svc", "NODATA, address", ServiceNode},
		{"nsnode.default.svc", "address, NODATA", ServiceNode},
		{"upper.default.svc", "address, NODATA", ServiceNode},
		{"toext.default.svc", "address, address", ServiceNode},
		{"togone.default.svc", "NODATA, NODATA", ServiceNode},
		{"www.com.default.svc", none, NoNode},
		{"www.google.com.default.svc", none, NoNode},
	}
	k := &KubeDNS{Zone: "cluster.local.", Names: names, Outside: outsideAnswer}
	for _, tt := range tests {
		a := k.Answer(strings.TrimPrefix(tt.ask+".cluster.local.", "."))
		if got := a.A.String() + ", " + a.AAAA.String(); got != tt.want || a.Match.Node != tt.node || !a.Known {
			t.Errorf("%s: %s, node %d, known %v; want %s, node %d", tt.ask, got, a.Match.Node, a.Known, tt.want, tt.node)
		}
	}
	if a := k.Answer("*.my-app.svc.cluster.local."); a.Known {
		t.Errorf("wildcard: %s", a)
	}
	k.Outside = nil
	// Of an alias that leads out nothing is known; kube-dns leaves out one whose target does not resolve.
	if a := k.Answer("ext.default.svc.cluster.local."); a.Known || a.A != (Reply{}) || len(a.Aliases) != 1 {
		t.Errorf("alias that leads out: %s, A %s, %d aliases", a, a.A, len(a.Aliases))
	}
	// Beside aliases with known addresses an unknown one does not make the answer of the namespace unknown.
	names.services = append(names.services, Service{Namespace: "my-app", Name: "zzz", Kind: ExternalName, Target: "example.org"})
	if a := k.Answer("my-app.svc.cluster.local."); !a.Known || len(a.Aliases) != 3 {
		t.Errorf("namespace node with an alias that leads out: %s, %d aliases", a, len(a.Aliases))
	}
}

// FuzzAnswer: no name makes a model panic, answer a name outside, or leave an answer without reason.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"my-app.svc", "a.b.c.d.svc", "10-0-0-1.my-app.pod", "*.any.svc", "any.*.svc", "_a._b.web.plain.svc", "ns.dns", ""} {
		f.Add(s, 8, 6)
	}
	names := legacy()
	f.Fuzz(func(t *testing.T, prefix string, minor, patch int) {
		name, err := Absolute(strings.TrimPrefix(prefix+".cluster.local", "."))
		if err != nil {
			t.Skip()
		}
		servers := []ClusterServer{&KubeDNS{Zone: "cluster.local.", Names: names}}
		for _, mode := range []PodMode{"", PodsInsecure, PodsVerified} {
			servers = append(servers, &CoreDNS{Zone: "cluster.local.", Version: Version{1, minor, patch}, Names: names, Pods: mode})
		}
		for _, s := range servers {
			a := s.Answer(name)
			if a.Match.Node == OutsideNode {
				t.Fatalf("%T takes %s for outside", s, name)
			}
			if !a.HasAddress() && a.Note == "" {
				t.Fatalf("%T: %s: %s without a note", s, name, a)
			}
			if len(a.Addresses) > 0 && !a.HasAddress() {
				t.Fatalf("%T: %s: addresses in an answer without any", s, name)
			}
		}
	})
}

func TestShape(t *testing.T) {
	for name, want := range map[string]Match{
		"cluster.local.":                 {Node: DomainNode},
		"svc.cluster.local.":             {Node: DomainNode},
		"a.svc.cluster.local.":           {Node: NamespaceNode, Namespace: "a"},
		"b.a.svc.cluster.local.":         {Node: ServiceNode, Namespace: "a", Service: "b"},
		"c.b.a.svc.cluster.local.":       {Node: EndpointNode, Namespace: "a", Service: "b"},
		"_p._tcp.b.a.svc.cluster.local.": {Node: PortNode, Namespace: "a", Service: "b"},
		"10-0-0-1.a.pod.cluster.local.":  {Node: PodNode, Namespace: "a"},
		"ns.dns.cluster.local.":          {Node: ServerNode},
	} {
		if got, ok := Shape(name, "cluster.local."); !ok || got != want {
			t.Errorf("Shape(%s) = %+v, %v, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"example.org.", "a.cluster.local.", "x.y.z.b.a.svc.cluster.local.", "local."} {
		if got, ok := Shape(name, "cluster.local."); ok {
			t.Errorf("Shape(%s) = %+v, want none", name, got)
		}
	}
}
