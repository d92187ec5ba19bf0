package checks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// input is one set of files with the flags that go with them.
type input struct {
	*fixture
	name  string
	files []txtar.File
}

func (in input) snapshot(t testing.TB) *cluster.Snapshot {
	t.Helper()
	return in.fixture.snapshot(t, in.files)
}

// inputs are the faults and the clean twins of all fixtures, and healthy clusters of three kinds with all healthy
// workloads.
func inputs(t testing.TB) []input {
	t.Helper()
	var all []input
	for _, f := range fixtures(t) {
		all = append(all, input{f, f.name, f.fault})
		if f.clean != nil {
			all = append(all, input{f, f.name + "/clean", f.clean})
		}
	}
	var workloads []txtar.File
	for _, f := range archives(t, "healthy/workloads-*") {
		workloads = append(workloads, f.fault...)
	}
	for _, name := range []string{"kubeadm", "gke-kube-dns", "kubespray-nodelocal"} {
		f := archives(t, "healthy/infra-"+name)[0]
		all = append(all, input{f, "healthy/" + f.name, slices.Concat(f.fault, workloads)})
	}
	return all
}

// everyInput runs a test for each of them.
func everyInput(t *testing.T, test func(t *testing.T, in input)) {
	for _, in := range inputs(t) {
		t.Run(in.name, func(t *testing.T) { test(t, in) })
	}
}

func TestMetadata(t *testing.T) {
	id := regexp.MustCompile(`^DM[1-9][0-9]{3}$`)
	names := map[string]bool{}
	byID := map[string]*finding.Code{}
	known := cluster.Resources()
	for _, a := range All() {
		if !regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(a.Name) || names[a.Name] {
			t.Errorf("analyzer name %q is no word, or not unique", a.Name)
		}
		names[a.Name] = true
		if a.Doc == "" || strings.Contains(a.Doc, "\n") || strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%s: the doc %q is not one clause on one line", a.Name, a.Doc)
		}
		if len(a.Codes) == 0 || a.Run == nil {
			t.Errorf("%s reports nothing", a.Name)
		}
		declared := slices.Concat(a.Needs, a.Uses)
		for i, r := range declared {
			if !slices.Contains(known, r) || slices.Contains(declared[:i], r) {
				t.Errorf("%s: input %q is not known, or is named twice", a.Name, r)
			}
		}
		for _, c := range a.Codes {
			if other, ok := byID[c.ID]; ok && other != c {
				t.Errorf("%s is declared twice", c.ID)
			}
			byID[c.ID] = c
		}
	}
	for _, c := range Codes() {
		switch {
		case !id.MatchString(c.ID):
			t.Errorf("%q is no ID", c.ID)
		case c.Severity < finding.Info || c.Severity > finding.Error:
			t.Errorf("%s has no severity", c.ID)
		case c.Title == "" || strings.ContainsAny(c.Title, "\n") || strings.HasSuffix(c.Title, "."):
			t.Errorf("%s: the title %q is not one line without a final dot", c.ID, c.Title)
		}
		if !strings.Contains(c.Doc, "\n\nTo ") {
			t.Errorf("%s: the doc has no paragraph that says how to mend it", c.ID)
		}
		if !strings.Contains(c.Doc, "\n    ") {
			t.Errorf("%s: the doc has no example", c.ID)
		}
		for line := range strings.Lines(c.Doc) {
			if strings.TrimRight(line, " \t\n") != strings.TrimSuffix(line, "\n") || strings.Contains(line, "\t") {
				t.Errorf("%s: the doc has a tab or blanks at the end in %q", c.ID, line)
			}
		}
		if Find(strings.ToLower(c.ID)) != c {
			t.Errorf("Find does not know %s", c.ID)
		}
		delete(byID, c.ID)
	}
	if len(byID) > 0 {
		t.Errorf("Codes leaves out %v", byID)
	}
	if Find("DM0000") != nil {
		t.Error("Find knows DM0000")
	}
}

// TestEveryCodeIsShown asks for a fault and a clean twin of every code.
func TestEveryCodeIsShown(t *testing.T) {
	shown, clean := map[string]bool{}, map[string]bool{}
	for _, f := range fixtures(t) {
		for _, w := range f.wants(t, f.fault) {
			shown[w.code] = true
			clean[w.code] = clean[w.code] || f.clean != nil
		}
	}
	for _, c := range Codes() {
		if !shown[c.ID] || !clean[c.ID] {
			t.Errorf("%s: shown by a fixture %t, with a clean twin %t", c.ID, shown[c.ID], clean[c.ID])
		}
		delete(shown, c.ID)
	}
	if len(shown) > 0 {
		t.Errorf("fixtures want codes that no analyzer lists: %v", shown)
	}
}

func TestSnapshotIsUnchanged(t *testing.T) {
	everyInput(t, func(t *testing.T, in input) {
		before, s := in.snapshot(t), in.snapshot(t)
		if !reflect.DeepEqual(before, s) {
			t.Fatal("loading twice gives different snapshots")
		}
		first := diagnose.Run(s, All(), diagnose.Options{})
		if !reflect.DeepEqual(before, s) {
			t.Errorf("a run changes the snapshot:\n%s", cmp.Diff(before, s))
		}
		if diff := cmp.Diff(first, diagnose.Run(s, All(), diagnose.Options{})); diff != "" {
			t.Errorf("a second run finds something else (-first +second):\n%s", diff)
		}
	})
}

// shuffled returns a copy of s in which every slice whose order means nothing has another one.
func shuffled(s *cluster.Snapshot, seed uint64) *cluster.Snapshot {
	r := rand.New(rand.NewPCG(seed, 0))
	out := *s
	out.Namespaces, out.Services, out.Pods = shuffle(r, s.Namespaces), shuffle(r, s.Services), shuffle(r, s.Pods)
	out.EndpointSlices, out.Templates = shuffle(r, s.EndpointSlices), shuffle(r, s.Templates)
	out.ConfigMaps, out.Nodes, out.Texts = shuffle(r, s.ConfigMaps), shuffle(r, s.Nodes), shuffle(r, s.Texts)
	out.MeshHosts, out.APIGroups = shuffle(r, s.MeshHosts), shuffle(r, s.APIGroups)
	for i, e := range out.EndpointSlices {
		e = e.DeepCopy()
		e.Endpoints, e.Ports = shuffle(r, e.Endpoints), shuffle(r, e.Ports)
		out.EndpointSlices[i] = e
	}
	return &out
}

func shuffle[T any](r *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func TestOrderMeansNothing(t *testing.T) {
	everyInput(t, func(t *testing.T, in input) {
		s := in.snapshot(t)
		want := diagnose.Run(s, All(), diagnose.Options{})
		for seed := range uint64(4) {
			if diff := cmp.Diff(want, diagnose.Run(shuffled(s, seed), All(), diagnose.Options{})); diff != "" {
				t.Fatalf("seed %d (-as loaded +shuffled):\n%s", seed, diff)
			}
		}
	})
}

// TestLittleInput runs over snapshots that hold nothing, or objects that hold nothing.
func TestLittleInput(t *testing.T) {
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: name, Name: name} }
	hollow := &cluster.Snapshot{
		Namespaces:     []*corev1.Namespace{{}, {ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
		Services:       []*corev1.Service{{}, {ObjectMeta: object("a")}, {ObjectMeta: object("b"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}},
		EndpointSlices: []*discoveryv1.EndpointSlice{{}, {Endpoints: []discoveryv1.Endpoint{{}}, Ports: []discoveryv1.EndpointPort{{}}}},
		Pods:           []*cluster.Pod{{}, {Spec: &corev1.PodSpec{Containers: []corev1.Container{{}}}}},
		Templates:      []*cluster.Workload{{}, {Spec: &corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{}, {ValueFrom: &corev1.EnvVarSource{}}}, EnvFrom: []corev1.EnvFromSource{{}}}}, Volumes: []corev1.Volume{{}}}}},
		ConfigMaps:     []*corev1.ConfigMap{{}, {ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}},
		Nodes:          []*corev1.Node{{}},
		MeshHosts:      []string{"", "*", "*."},
		Texts:          []*cluster.Text{{}, {Kind: cluster.TextCorefile}, {Kind: cluster.TextPodResolvConf}, {Kind: cluster.TextNodeResolvConf}, {Kind: cluster.TextUpstreamCorefile}},
	}
	partial := *hollow
	partial.Partial = true
	for name, s := range map[string]*cluster.Snapshot{"empty": {}, "partial": {Partial: true}, "hollow": hollow, "hollow and partial": &partial} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []cluster.Override{{}, {Implementation: cluster.KubeDNS}, {Implementation: cluster.CoreDNS, Version: "1.8.0"}, {Domain: "."}} {
				s.Override = o
				r := diagnose.Run(s, All(), diagnose.Options{})
				if len(s.Services) == 0 && len(r.Findings) > 0 {
					t.Errorf("found in nothing: %s", describe(r.Findings[0]))
				}
			}
		})
	}
}

// TestInputsAreHonest removes inputs from snapshots, and gives analyzers more than they ask for.
func TestInputsAreHonest(t *testing.T) {
	everyInput(t, func(t *testing.T, in input) {
		s := in.snapshot(t)
		for _, a := range All() {
			greedy := *a
			greedy.Uses = slices.DeleteFunc(cluster.Resources(), func(r cluster.Resource) bool { return slices.Contains(a.Needs, r) })
			as, with := diagnose.Run(s, []*diagnose.Analyzer{a}, diagnose.Options{}), diagnose.Run(s, []*diagnose.Analyzer{&greedy}, diagnose.Options{})
			if diff := cmp.Diff(as.Findings, with.Findings); diff != "" {
				t.Errorf("%s reads inputs that it does not declare (-declared +all):\n%s", a.Name, diff)
			}
		}
		for i, r := range cluster.Resources() {
			others := slices.Delete(cluster.Resources(), i, i+1)
			hidden := s.Only(others...)
			diagnose.Run(hidden, All(), diagnose.Options{})
			hidden.Absent[r] = "hidden"
			report := diagnose.Run(hidden, All(), diagnose.Options{})
			for _, a := range All() {
				skipped := slices.ContainsFunc(report.Skipped, func(k diagnose.Skipped) bool { return k.Check == a.Name && !k.Partly })
				if slices.Contains(a.Needs, r) && !skipped {
					t.Errorf("%s ran without %s, which it needs", a.Name, r)
				}
			}
		}
	})
}

func TestMessages(t *testing.T) {
	const longest = 160
	clause := func(t *testing.T, what, s string) {
		t.Helper()
		// A final dot may belong to a name that the clause ends with.
		if s == "" || strings.ContainsAny(s, "\n\t") || strings.HasSuffix(s, ".") || strings.TrimSpace(s) != s || strings.Contains(s, "%!") {
			t.Errorf("%s %q is not a clause on one line", what, s)
		}
	}
	everyInput(t, func(t *testing.T, in input) {
		for _, f := range diagnose.Run(in.snapshot(t), All(), diagnose.Options{}).Findings {
			clause(t, "message", f.Message)
			if n := utf8.RuneCountInString(f.Message); n > longest {
				t.Errorf("message of %d letters: %s", n, f.Message)
			}
			if !strings.HasPrefix(f.Message, `"`) && !regexp.MustCompile(`^rewrite [a-z]+ "`).MatchString(f.Message) {
				t.Errorf("the subject is not quoted: %s", f.Message)
			}
			if f.Object.Kind == "" || f.Object.Name == "" {
				t.Errorf("no object: %s", describe(f))
			}
			if len(f.Evidence) == 0 {
				t.Errorf("no evidence: %s", describe(f))
			}
			for _, e := range f.Evidence {
				if e.Label == "" || e.Label != strings.ToLower(e.Label) || strings.Contains(e.Text, "\n") || e.Text == "" && f.Code != "DM2004" {
					t.Errorf("evidence %q %q of %s", e.Label, e.Text, describe(f))
				}
			}
			if f.Fix == nil {
				t.Errorf("no fix: %s", describe(f))
				continue
			}
			clause(t, "fix", f.Fix.Summary)
			if len(f.Fix.Commands) == 0 {
				t.Errorf("no command: %s", describe(f))
			}
			for _, c := range f.Fix.Commands {
				if !strings.HasPrefix(c, "kubectl ") || strings.Contains(c, "\n") {
					t.Errorf("command %q", c)
				}
			}
			if explain(Find(f.Code)) != f.Fix.Commands[len(f.Fix.Commands)-1] {
				t.Errorf("the last command of %s is %q", f.Code, f.Fix.Commands[len(f.Fix.Commands)-1])
			}
		}
	})
}

// TestFixes applies what fixes offer, and judges again: the finding is gone, and nothing comes in its place.
func TestFixes(t *testing.T) {
	applied := map[string]bool{}
	everyInput(t, func(t *testing.T, in input) {
		before := diagnose.Run(in.snapshot(t), All(), diagnose.Options{}).Findings
		for _, f := range before {
			if f.Fix == nil {
				continue
			}
			try := func(how string, files []txtar.File, change func(*testing.T, *cluster.Snapshot)) {
				applied[how] = true
				s := in.fixture.snapshot(t, files)
				if change != nil {
					change(t, s)
				}
				for _, g := range diagnose.Run(s, All(), diagnose.Options{}).Findings {
					same := g.Code == f.Code && placeOf(g) == placeOf(f) && g.Message == f.Message
					fresh := !slices.ContainsFunc(before, func(b finding.Finding) bool {
						return b.Code == g.Code && b.Object == g.Object
					})
					if same || fresh && g.Severity > finding.Info {
						t.Errorf("%s\nafter its %s:\n%s", describe(f), how, describe(g))
					}
				}
			}
			if m := f.Fix.Manifest; m != "" {
				checkManifest(t, m)
				try("manifest", append(slices.Clip(in.files), txtar.File{Name: "zz-fix.yaml", Data: []byte(m)}), nil)
			}
			if d := f.Fix.Diff; d != "" {
				try("diff", in.files, func(t *testing.T, s *cluster.Snapshot) { patchSource(t, s, d) })
			}
			for _, c := range f.Fix.Commands {
				if strings.HasPrefix(c, "kubectl patch ") {
					try("command", in.files, func(t *testing.T, s *cluster.Snapshot) { patchService(t, s, c) })
				}
			}
		}
	})
	for _, how := range []string{"manifest", "diff", "command"} {
		if !applied[how] {
			t.Errorf("no fixture offers a %s", how)
		}
	}
}

// checkManifest tells whether the API server would take a Service.
func checkManifest(t *testing.T, manifest string) {
	t.Helper()
	var s corev1.Service
	if err := yaml.UnmarshalStrict([]byte(manifest), &s); err != nil {
		t.Fatalf("%v in:\n%s", err, manifest)
	}
	faults := slices.Concat(validation.IsDNS1123Label(s.Name), validation.IsDNS1123Label(s.Namespace), validation.IsDNS1123Subdomain(s.Spec.ExternalName))
	if s.APIVersion != "v1" || s.Kind != "Service" || s.Spec.Type != corev1.ServiceTypeExternalName {
		faults = append(faults, "it is no ExternalName Service")
	}
	if len(faults) > 0 {
		t.Errorf("%q in:\n%s", faults, manifest)
	}
}

// patchSource applies a unified diff to the text that it names.
func patchSource(t *testing.T, s *cluster.Snapshot, diff string) {
	t.Helper()
	header, _, _ := strings.Cut(diff, "\n")
	source := strings.TrimPrefix(header, "--- ")
	for _, text := range s.Texts {
		if text.Name == source {
			text.Data = applyDiff(t, text.Data, diff)
			return
		}
	}
	for _, m := range s.ConfigMaps {
		for key, data := range m.Data {
			if (cluster.Mount{Object: finding.Object{Kind: "ConfigMap", Namespace: m.Namespace, Name: m.Name}, Key: key}).Source() == source {
				m.Data[key] = applyDiff(t, data, diff)
				return
			}
		}
	}
	t.Fatalf("there is no text %q", source)
}

// applyDiff applies a unified diff strictly: every line that it shows must be there.
func applyDiff(t *testing.T, text, diff string) string {
	t.Helper()
	old := strings.SplitAfter(text, "\n")
	var out []string
	at := 0
	take := func(line string) {
		if at >= len(old) || strings.TrimSuffix(old[at], "\n") != line {
			t.Fatalf("line %d of the source is not %q; diff:\n%s", at+1, line, diff)
		}
		at++
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	if len(lines) < 4 || !strings.HasPrefix(lines[0], "--- ") || !strings.HasPrefix(lines[1], "+++ ") {
		t.Fatalf("no unified diff:\n%s", diff)
	}
	bare := false
	for i, line := range lines[2:] {
		next := ""
		if i+3 < len(lines) {
			next = lines[i+3]
		}
		switch line[:1] {
		case "@":
			var from, n, to, m int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m); err != nil {
				t.Fatalf("hunk %q: %v", line, err)
			}
			out = append(out, old[at:from-1]...)
			at = from - 1
		case "-":
			take(line[1:])
		case " ":
			out = append(out, old[at])
			take(line[1:])
		case "+":
			bare = strings.HasPrefix(next, `\`)
			out = append(out, line[1:]+"\n")
		case `\`:
		default:
			t.Fatalf("line %q of a diff", line)
		}
	}
	out = append(out, old[at:]...)
	text = strings.Join(out, "")
	if bare {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

var patchCommand = regexp.MustCompile(`^kubectl patch svc (\S+) -n (\S+) --type merge -p '([^']*)'$`)

// patchService does what a kubectl patch of a Service does.
func patchService(t *testing.T, s *cluster.Snapshot, command string) {
	t.Helper()
	m := patchCommand.FindStringSubmatch(command)
	if m == nil {
		t.Fatalf("command %q", command)
	}
	i := slices.IndexFunc(s.Services, func(svc *corev1.Service) bool { return svc.Name == m[1] && svc.Namespace == m[2] })
	if i < 0 {
		t.Fatalf("there is no Service for %q", command)
	}
	if err := json.Unmarshal([]byte(m[3]), s.Services[i]); err != nil {
		t.Fatalf("patch %s: %v", strconv.Quote(m[3]), err)
	}
}
