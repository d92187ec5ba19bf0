package diagnose

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// code returns a code of severity E.
func code(id string) *finding.Code { return &finding.Code{ID: id, Severity: finding.Error} }

// reports is an analyzer that reports one finding about each object with each of its codes.
func reports(name string, objects []finding.Object, ids ...string) *Analyzer {
	a := &Analyzer{Name: name}
	for _, id := range ids {
		a.Codes = append(a.Codes, code(id))
	}
	a.Run = func(p *Pass) {
		for _, o := range objects {
			for _, c := range a.Codes {
				p.Report(c, finding.Finding{Object: o, Message: c.ID + " of " + o.String()})
			}
		}
	}
	return a
}

// found lists "code object" of a report.
func found(r *Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, f.Code+" "+f.Object.String())
	}
	return list
}

func TestAnalyzerGetsWhatItNames(t *testing.T) {
	s := &cluster.Snapshot{
		Name:       "x",
		Services:   []*corev1.Service{{}},
		Namespaces: []*corev1.Namespace{{}},
		Nodes:      []*corev1.Node{{}},
	}
	ran := false
	a := &Analyzer{
		Name: "a", Codes: []*finding.Code{code("DM1")},
		Needs: []cluster.Resource{cluster.Services}, Uses: []cluster.Resource{cluster.Nodes},
		Run: func(p *Pass) {
			ran = true
			if got := p.Snapshot; len(got.Services) != 1 || len(got.Nodes) != 1 || len(got.Namespaces) != 0 || got.Name != "x" {
				t.Errorf("the analyzer sees %d Services, %d nodes, %d namespaces", len(got.Services), len(got.Nodes), len(got.Namespaces))
			}
		},
	}
	same := *a
	same.Name, same.Needs, same.Uses = "b", a.Uses, a.Needs
	var views []*View
	for _, each := range []*Analyzer{a, &same} {
		run := each.Run
		each.Run = func(p *Pass) { views = append(views, p.View); run(p) }
	}
	r := Run(s, []*Analyzer{a, &same}, Options{})
	if !ran || r.Summary.Checks != 2 || !r.Judged() {
		t.Errorf("%d analyzers ran", r.Summary.Checks)
	}
	if len(views) != 2 || views[0] != views[1] {
		t.Error("analyzers of the same inputs do not share a view")
	}
}

func TestMemo(t *testing.T) {
	type key struct{}
	v := NewView(&cluster.Snapshot{})
	made := 0
	for range 2 {
		if got := Memo(v, key{}, func(*View) int { made++; return 7 }); got != 7 {
			t.Errorf("got %d", got)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

func TestReportRefusesOtherCodes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a code that the analyzer does not list was taken")
		}
	}()
	Run(&cluster.Snapshot{}, []*Analyzer{{Name: "a", Codes: []*finding.Code{code("DM1")}, Run: func(p *Pass) {
		p.Report(code("DM2"), finding.Finding{})
	}}}, Options{})
}

func TestAccounting(t *testing.T) {
	absent := map[cluster.Resource]string{cluster.Pods: "pods are forbidden", cluster.Nodes: "nodes are forbidden"}
	nothing := func(*Pass) {}
	for _, test := range []struct {
		name    string
		needs   []cluster.Resource
		uses    []cluster.Resource
		run     func(*Pass)
		partial bool
		checks  int
		reason  string
		partly  bool
	}{
		{name: "runs", needs: []cluster.Resource{cluster.Services}, run: nothing, checks: 1},
		{name: "needs what is absent", needs: []cluster.Resource{cluster.Services, cluster.Pods}, run: func(*Pass) { t.Error("ran") }, reason: "pods are forbidden"},
		{name: "needs two", needs: []cluster.Resource{cluster.Pods, cluster.Nodes}, run: nothing, reason: "nodes are forbidden; pods are forbidden"},
		{name: "uses what is absent", uses: []cluster.Resource{cluster.Nodes}, run: nothing, checks: 1, reason: "nodes are forbidden", partly: true},
		{name: "uses it in a selection", uses: []cluster.Resource{cluster.Nodes}, run: nothing, partial: true, checks: 1},
		{name: "needs it in a selection", needs: []cluster.Resource{cluster.Nodes}, run: nothing, partial: true, reason: "nodes are forbidden"},
		{name: "is idle", uses: []cluster.Resource{cluster.Nodes}, run: (*Pass).Idle},
		{name: "skips", run: func(p *Pass) { p.Skip("one"); p.Skip("two") }, reason: "one; two"},
		{name: "skips a part", uses: []cluster.Resource{cluster.Nodes}, run: func(p *Pass) { p.SkipPart("one") }, checks: 1, reason: "one; nodes are forbidden", partly: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &Analyzer{Name: "a", Codes: []*finding.Code{code("DM2"), code("DM1")}, Needs: test.needs, Uses: test.uses, Run: test.run}
			r := Run(&cluster.Snapshot{Absent: absent, Partial: test.partial}, []*Analyzer{a}, Options{})
			if r.Summary.Checks != test.checks || r.Judged() != (test.checks > 0) {
				t.Errorf("%d ran, want %d", r.Summary.Checks, test.checks)
			}
			want := []Skipped{}
			if test.reason != "" {
				want = append(want, Skipped{Check: "a", Codes: []string{"DM1", "DM2"}, Reason: test.reason, Partly: test.partly})
			}
			if diff := cmp.Diff(want, r.Skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	objects := []finding.Object{
		{Kind: "Service", Namespace: "shop", Name: "api"},
		{Kind: "Deployment", Namespace: "shop", Name: "api"},
		{Kind: "Service", Namespace: "bank", Name: "api"},
		{Kind: "Namespace", Name: "shop"},
		{Kind: "Namespace", Name: "bank"},
	}
	analyzers := []*Analyzer{reports("names", objects, "DM1001", "DM1002"), reports("aliases", objects[:1], "DM2001")}
	for _, test := range []struct {
		name       string
		opts       Options
		want       []string
		suppressed int
	}{
		{name: "codes", opts: Options{Checks: []string{"DM2001"}}, want: []string{"DM2001 Service shop/api"}},
		{name: "prefix", opts: Options{Checks: []string{"DM2"}}, want: []string{"DM2001 Service shop/api"}},
		{name: "skip wins", opts: Options{Checks: []string{"DM1", "DM2"}, Skip: []string{"DM1"}}, want: []string{"DM2001 Service shop/api"}},
		{name: "namespace", opts: Options{Checks: []string{"DM1001"}, Namespace: "shop"}, want: []string{"DM1001 Namespace shop", "DM1001 Deployment shop/api", "DM1001 Service shop/api"}},
		{name: "suppress code", opts: Options{Suppress: []Suppression{{Code: "dm1"}}}, want: []string{"DM2001 Service shop/api"}, suppressed: 10},
		{
			name: "suppress object", opts: Options{Checks: []string{"DM1001"}, Suppress: []Suppression{{Object: "shop/*"}}},
			want: []string{"DM1001 Namespace bank", "DM1001 Namespace shop", "DM1001 Service bank/api"}, suppressed: 2,
		},
		{
			name: "suppress kind", opts: Options{Checks: []string{"DM1001"}, Suppress: []Suppression{{Object: "*/api", Kind: "service"}}},
			want: []string{"DM1001 Namespace bank", "DM1001 Namespace shop", "DM1001 Deployment shop/api"}, suppressed: 2,
		},
		{
			name: "suppress an object without namespace", opts: Options{Checks: []string{"DM1001"}, Suppress: []Suppression{{Object: "sh?p"}}},
			want: []string{"DM1001 Namespace bank", "DM1001 Service bank/api", "DM1001 Deployment shop/api", "DM1001 Service shop/api"}, suppressed: 1,
		},
		{
			name: "suppress both", opts: Options{Namespace: "bank", Suppress: []Suppression{{Code: "DM1002", Object: "bank/api"}}},
			want: []string{"DM1001 Namespace bank", "DM1001 Service bank/api", "DM1002 Namespace bank"}, suppressed: 1,
		},
		{name: "a broken pattern matches nothing", opts: Options{Checks: []string{"DM2"}, Suppress: []Suppression{{Object: "["}}}, want: []string{"DM2001 Service shop/api"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Run(&cluster.Snapshot{}, analyzers, test.opts)
			if diff := cmp.Diff(test.want, found(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.Summary.Suppressed != test.suppressed || r.Summary.Errors != len(test.want) {
				t.Errorf("%d suppressed, %d errors", r.Summary.Suppressed, r.Summary.Errors)
			}
		})
	}
	if r := Run(&cluster.Snapshot{}, analyzers, Options{Checks: []string{"DM2"}}); r.Summary.Checks != 1 {
		t.Errorf("%d analyzers ran for one code", r.Summary.Checks)
	}
}

func TestSeverities(t *testing.T) {
	o := finding.Object{Kind: "Service", Namespace: "shop", Name: "api"}
	a := reports("a", []finding.Object{o}, "DM1001", "DM1002", "DM1003")
	run := a.Run
	a.Run = func(p *Pass) {
		run(p)
		p.Report(a.Codes[0], finding.Finding{Object: o, Severity: finding.Info, Message: "milder"})
	}
	r := Run(&cluster.Snapshot{}, []*Analyzer{a}, Options{Severities: map[string]finding.Severity{"DM1001": finding.Warning, "DM1003": finding.Info}})
	want := Summary{Errors: 1, Warnings: 2, Infos: 1, Checks: 1}
	if diff := cmp.Diff(want, r.Summary); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Worst() != finding.Error || (&Report{}).Worst() != 0 || r.Findings[0].Evidence == nil {
		t.Errorf("worst %v of nothing %v, evidence %v", r.Worst(), (&Report{}).Worst(), r.Findings[0].Evidence)
	}
	r = Run(&cluster.Snapshot{}, []*Analyzer{a}, Options{Severities: map[string]finding.Severity{"DM1002": finding.Info}, Checks: []string{"DM1002"}})
	if r.Worst() != finding.Info {
		t.Errorf("worst %v", r.Worst())
	}
}

func TestAnnotations(t *testing.T) {
	meta := func(namespace, name, ignore string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{IgnoreAnnotation: ignore}}
	}
	owner := finding.Object{Kind: "Deployment", Namespace: "shop", Name: "pods"}
	template := finding.Object{Kind: "Deployment", Namespace: "shop", Name: "template"}
	s := &cluster.Snapshot{
		Namespaces: []*corev1.Namespace{{ObjectMeta: meta("", "quiet", "DM1001")}, {ObjectMeta: meta("", "shop", "")}},
		Services: []*corev1.Service{
			{ObjectMeta: meta("shop", "one", "dm2001 , DM1001")},
			{ObjectMeta: meta("shop", "prefix", "DM1")},
			{ObjectMeta: meta("shop", "all", "*")},
			{ObjectMeta: meta("shop", "odd", ",,")},
			{ObjectMeta: meta("quiet", "svc", "")},
		},
		ConfigMaps: []*corev1.ConfigMap{{ObjectMeta: meta("shop", "map", "DM1002")}},
		Nodes:      []*corev1.Node{{ObjectMeta: meta("", "node", "DM1002")}},
		Pods:       []*cluster.Pod{{Owner: owner, Ignore: "DM1001"}, {Owner: owner, Ignore: "DM100"}, {Owner: owner}},
		Templates:  []*cluster.Workload{{Object: template, Ignore: "DM1002"}},
	}
	objects := []finding.Object{
		owner, template,
		{Kind: "Namespace", Name: "quiet"},
		{Kind: "Namespace", Name: "shop"},
		{Kind: "Node", Name: "node"},
		{Kind: "ConfigMap", Namespace: "shop", Name: "map"},
		{Kind: "File", Name: "Corefile"},
	}
	for _, svc := range s.Services {
		objects = append(objects, finding.Object{Kind: "Service", Namespace: svc.Namespace, Name: svc.Name})
	}
	want := []string{
		"DM1001 File Corefile", "DM1001 Namespace shop", "DM1001 Node node",
		"DM1001 ConfigMap shop/map", "DM1001 Deployment shop/template", "DM1001 Service shop/odd",
		"DM1002 File Corefile", "DM1002 Namespace quiet", "DM1002 Namespace shop", "DM1002 Service quiet/svc",
		"DM1002 Service shop/odd", "DM1002 Service shop/one",
	}
	for range 2 {
		r := Run(s, []*Analyzer{reports("a", objects, "DM1001", "DM1002")}, Options{})
		if diff := cmp.Diff(want, found(r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := 2*len(objects) - len(want); r.Summary.Suppressed != n {
			t.Errorf("%d suppressed, want %d", r.Summary.Suppressed, n)
		}
		slices.Reverse(s.Pods)
	}
}

func TestValidateSuppression(t *testing.T) {
	for _, test := range []struct {
		s  Suppression
		ok bool
	}{
		{Suppression{Code: "DM1001"}, true},
		{Suppression{Object: "shop/*"}, true},
		{Suppression{}, false},
		{Suppression{Kind: "Service", Reason: "x"}, false},
		{Suppression{Object: "["}, false},
	} {
		if err := test.s.Validate(); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test.s, err)
		}
	}
}

func TestExpand(t *testing.T) {
	analyzers := []*Analyzer{reports("names", nil, "DM1002", "DM1001"), reports("aliases", nil, "DM2001", "DM1001")}
	for _, test := range []struct {
		words, want []string
		fails       bool
	}{
		{},
		{words: []string{"names"}, want: []string{"DM1001", "DM1002"}},
		{words: []string{"Names", "aliases"}, want: []string{"DM1001", "DM1002", "DM2001"}},
		{words: []string{"dm1001", "DM1001"}, want: []string{"DM1001"}},
		{words: []string{"DM1", "dm20"}, want: []string{"DM1", "DM20"}},
		{words: []string{"DM9"}, fails: true},
		{words: []string{"DM"}, fails: true},
		{words: []string{""}, fails: true},
		{words: []string{"name"}, fails: true},
		{words: []string{"DM10011"}, fails: true},
		{words: []string{"DM1001", "nothing"}, fails: true},
	} {
		got, err := Expand(test.words, analyzers)
		if (err != nil) != test.fails || !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, %v; want %q", test.words, got, err, test.want)
		}
	}
}

func TestMerge(t *testing.T) {
	o := finding.Object{Kind: "Service", Namespace: "shop", Name: "api"}
	a, b := reports("a", []finding.Object{o}, "DM1001"), reports("b", []finding.Object{o}, "DM1002")
	needs := &Analyzer{Name: "c", Codes: []*finding.Code{code("DM1003")}, Needs: []cluster.Resource{cluster.Nodes}, Run: func(*Pass) {}}
	west := Run(&cluster.Snapshot{Name: "w", Absent: map[cluster.Resource]string{cluster.Nodes: "hidden"}}, []*Analyzer{a, b, needs}, Options{})
	east := Run(&cluster.Snapshot{Name: "e"}, []*Analyzer{a, needs}, Options{Severities: map[string]finding.Severity{"DM1001": finding.Info}})
	if got := Merge([]*Report{west}, []string{"west"}); got != west {
		t.Error("one report is not left as it is")
	}
	m := Merge([]*Report{west, east}, []string{"west", "east"})
	var got []string
	for _, f := range m.Findings {
		got = append(got, f.Cluster+" "+f.Code+" "+f.Severity.String())
	}
	if diff := cmp.Diff([]string{"west DM1001 error", "west DM1002 error", "east DM1001 info"}, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Summary{Errors: 2, Infos: 1, Checks: 4}, m.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Skipped{{Check: "c", Codes: []string{"DM1003"}, Cluster: "west", Reason: "hidden"}}, m.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if len(m.Clusters) != 2 || m.Clusters[0].Name != "west" || m.APIVersion != APIVersion || m.Kind != ReportKind {
		t.Errorf("clusters %v, %s %s", m.Clusters, m.APIVersion, m.Kind)
	}
	if west.Findings[0].Cluster != "" {
		t.Error("merging changes the reports that it merges")
	}
	if got := Merge(nil, nil); got.Findings == nil || got.Skipped == nil || got.Judged() {
		t.Errorf("merging nothing gives %+v", got)
	}
}

// TestOrder proves that the order of findings is total over everything that a finding holds.
func TestOrder(t *testing.T) {
	position := func(s string, l, c int) *finding.Position { return &finding.Position{Source: s, Line: l, Col: c} }
	base := finding.Finding{Code: "DM1001", Severity: finding.Error, Object: finding.Object{Kind: "Service", Namespace: "b", Name: "b"}}
	list := []finding.Finding{base}
	vary := func(change func(*finding.Finding)) {
		f := base
		change(&f)
		list = append(list, f)
	}
	vary(func(f *finding.Finding) { f.Severity = finding.Warning })
	vary(func(f *finding.Finding) { f.Code = "DM1002" })
	vary(func(f *finding.Finding) { f.Cluster = "west" })
	vary(func(f *finding.Finding) { f.Object.Namespace = "a" })
	vary(func(f *finding.Finding) { f.Object.Kind = "ConfigMap" })
	vary(func(f *finding.Finding) { f.Object.Name = "a" })
	for _, p := range []*finding.Position{position("a", 1, 1), position("b", 1, 1), position("a", 2, 1), position("a", 10, 1), position("a", 1, 2)} {
		vary(func(f *finding.Finding) { f.Position = p })
	}
	vary(func(f *finding.Finding) { f.Message = "m" })
	vary(func(f *finding.Finding) { f.Evidence = []finding.Evidence{{Label: "walk"}} })
	vary(func(f *finding.Finding) { f.Evidence = []finding.Evidence{{Label: "walk", Text: "x"}} })
	vary(func(f *finding.Finding) {
		f.Evidence = []finding.Evidence{{Label: "walk", Position: position("a", 1, 1)}}
	})
	vary(func(f *finding.Finding) { f.Related = []finding.Object{{Kind: "Namespace"}} })
	vary(func(f *finding.Finding) { f.Fix = &finding.Fix{} })
	vary(func(f *finding.Finding) { f.Fix = &finding.Fix{Summary: "s"} })
	vary(func(f *finding.Finding) { f.Fix = &finding.Fix{Manifest: "m"} })
	vary(func(f *finding.Finding) { f.Fix = &finding.Fix{Diff: "d"} })
	vary(func(f *finding.Finding) { f.Fix = &finding.Fix{Commands: []string{"c"}} })
	for i, a := range list {
		for j, b := range list {
			if c := finding.Compare(a, b); (c == 0) != (i == j) || c != -finding.Compare(b, a) {
				t.Errorf("comparing %d and %d gives %d and %d", i, j, c, finding.Compare(b, a))
			}
		}
	}
	want := slices.SortedFunc(slices.Values(list), finding.Compare)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if diff := cmp.Diff(want, slices.SortedFunc(slices.Values(list), finding.Compare)); diff != "" {
			t.Fatalf("the order depends on the input:\n%s", diff)
		}
	}
}
