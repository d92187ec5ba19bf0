package checks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// fixture is one archive of testdata: a folder as doctor -f reads one, and beside it, where it shows a fault, the same
// without it. See testdata/README.md.
type fixture struct {
	name string
	// override is what the flags of the comment section say.
	override cluster.Override
	// exact tells that findings of severity I which nothing wants are faults too.
	exact bool
	// fault are the files with what they want found; clean are those of the healthy twin, nil where there is none.
	fault, clean []txtar.File
}

// want is one finding that a comment of a fixture asks for.
type want struct {
	// place is what the finding names: an object, or a line of a text.
	place    string
	code     string
	severity finding.Severity
	// text is a part of the message.
	text string
}

func (w want) String() string {
	return fmt.Sprintf("%s %s at %s with %q", w.code, w.severity, w.place, w.text)
}

var wantComment = regexp.MustCompile(`# want (DM[0-9]{4}) ([EWI])( ["` + "`" + `].*)?$`)

// fixtures reads all archives that show faults.
func fixtures(t testing.TB) []*fixture {
	t.Helper()
	return archives(t, "*")
}

// archives reads the archives of testdata whose names match a pattern.
func archives(t testing.TB, pattern string) []*fixture {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern+".txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding fixtures: %v, %d found", err, len(paths))
	}
	var all []*fixture
	for _, p := range paths {
		archive, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{name: strings.TrimSuffix(filepath.Base(p), ".txtar")}
		for line := range strings.Lines(string(archive.Comment)) {
			words, ok := strings.CutPrefix(strings.TrimSpace(line), "flags:")
			if strings.TrimSpace(line) == "exact" {
				f.exact = true
			}
			if !ok {
				continue
			}
			for _, word := range strings.Fields(words) {
				name, value, _ := strings.Cut(word, "=")
				switch name {
				case "coredns-version":
					f.override.Implementation, f.override.Version = cluster.CoreDNS, value
				case "dns":
					f.override.Implementation = cluster.Implementation(value)
				case "cluster-domain":
					f.override.Domain = value
				default:
					t.Fatalf("%s: flag %q is not known", p, word)
				}
			}
		}
		twin := slices.ContainsFunc(archive.Files, func(file txtar.File) bool { return strings.HasPrefix(file.Name, "clean/") })
		for _, file := range archive.Files {
			folder, rest, _ := strings.Cut(file.Name, "/")
			switch folder {
			case "common":
				file.Name = rest
				f.fault, f.clean = append(f.fault, file), append(f.clean, file)
			case "clean":
				file.Name = rest
				f.clean = append(f.clean, file)
			default:
				f.fault = append(f.fault, file)
			}
		}
		if !twin {
			f.clean = nil
		}
		all = append(all, f)
	}
	return all
}

// snapshot loads files as doctor -f loads a folder that holds them. The names of texts are relative to the folder.
func (f *fixture) snapshot(t testing.TB, files []txtar.File) *cluster.Snapshot {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	result, err := load.Files(context.Background(), []string{dir}, nil, load.Options{Name: "fixture"})
	if err != nil {
		t.Fatalf("%s: loading: %v", f.name, err)
	}
	if result.Ignored > 0 || len(result.Notes) > 0 {
		t.Errorf("%s: the loader ignored %d files and says %q", f.name, result.Ignored, result.Notes)
	}
	s := result.Snapshot
	s.Override = f.override
	for _, text := range s.Texts {
		if rest, err := filepath.Rel(dir, text.Name); err == nil {
			text.Name = filepath.ToSlash(rest)
		}
	}
	return s
}

// wants collects the want comments of files.
func (f *fixture) wants(t testing.TB, files []txtar.File) []want {
	t.Helper()
	var all []want
	add := func(place, line string) {
		m := wantComment.FindStringSubmatch(strings.TrimRight(line, " \r\n"))
		if m == nil {
			if strings.Contains(line, "# want") {
				t.Fatalf("%s: %q is no want comment", f.name, line)
			}
			return
		}
		w := want{place: place, code: m[1]}
		w.severity, _ = finding.ParseSeverity(m[2])
		if m[3] != "" {
			text, err := strconv.Unquote(strings.TrimSpace(m[3]))
			if err != nil {
				t.Fatalf("%s: %q: %v", f.name, line, err)
			}
			w.text = text
		}
		all = append(all, w)
	}
	for _, file := range files {
		text := string(file.Data)
		switch ext := filepath.Ext(file.Name); {
		case ext == ".yaml":
			for doc := range strings.SplitSeq(text, "\n---") {
				f.objectWants(t, doc, add)
			}
		case strings.HasSuffix(file.Name, "Corefile"):
			n := 0
			for line := range strings.Lines(text) {
				n++
				add(fmt.Sprintf("%s:%d", file.Name, n), line)
			}
		default:
			for line := range strings.Lines(text) {
				add("File "+file.Name, line)
			}
		}
	}
	return all
}

// objectWants collects the want comments of one YAML document: those in the data of a ConfigMap belong to the line in
// it, the others to the object.
func (f *fixture) objectWants(t testing.TB, doc string, add func(place, line string)) {
	t.Helper()
	if !strings.Contains(doc, "# want") {
		return
	}
	var o struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
		Data     map[string]string
	}
	if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
		t.Fatalf("%s: %v in:\n%s", f.name, err, doc)
	}
	object := finding.Object{Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	if object.Namespace == "" && object.Kind != "Namespace" && object.Kind != "Node" {
		object.Namespace = "default"
	}
	inData := map[string]bool{}
	for key, value := range o.Data {
		n := 0
		for line := range strings.Lines(value) {
			n++
			if strings.Contains(line, "# want") {
				inData[strings.TrimSpace(line)] = true
				add(fmt.Sprintf("%s %s:%d", object, key, n), line)
			}
		}
	}
	for line := range strings.Lines(doc) {
		if !inData[strings.TrimSpace(line)] {
			add(object.String(), line)
		}
	}
}

// placeOf is the place of a finding as wants name it.
func placeOf(f finding.Finding) string {
	if f.Position != nil {
		return fmt.Sprintf("%s:%d", f.Position.Source, f.Position.Line)
	}
	return f.Object.String()
}

func describe(f finding.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s at %s: %s", f.Code, f.Severity, placeOf(f), f.Message)
	for _, e := range f.Evidence {
		fmt.Fprintf(&b, "\n    %s: %s", e.Label, e.Text)
	}
	if f.Fix != nil {
		fmt.Fprintf(&b, "\n    fix: %s", f.Fix.Summary)
	}
	return b.String()
}

// TestFixtures compares what is found with what the comments of each fixture want.
func TestFixtures(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			wants := f.wants(t, f.fault)
			found := diagnose.Run(f.snapshot(t, f.fault), All(), diagnose.Options{}).Findings
			for _, w := range wants {
				i := slices.IndexFunc(found, func(g finding.Finding) bool {
					return g.Code == w.code && g.Severity == w.severity && placeOf(g) == w.place && strings.Contains(g.Message, w.text)
				})
				if i < 0 {
					t.Errorf("not found: %s", w)
					continue
				}
				found = slices.Delete(found, i, i+1)
			}
			for _, g := range found {
				if g.Severity > finding.Info || f.exact {
					t.Errorf("not wanted: %s", describe(g))
				}
			}
			if f.clean == nil {
				return
			}
			if w := f.wants(t, f.clean); len(w) > 0 {
				t.Fatalf("the clean twin wants %v", w)
			}
			for _, g := range diagnose.Run(f.snapshot(t, f.clean), All(), diagnose.Options{}).Findings {
				wanted := slices.ContainsFunc(wants, func(w want) bool { return w.code == g.Code })
				if wanted || g.Severity > finding.Info {
					t.Errorf("in the clean twin: %s", describe(g))
				}
			}
		})
	}
}

// TestHealthy puts every set of healthy workloads, and all of them together, into every healthy cluster: nothing may be
// found at E or W.
func TestHealthy(t *testing.T) {
	workloads := archives(t, "healthy/workloads-*")
	all := &fixture{name: "all"}
	for _, w := range workloads {
		all.fault = append(all.fault, w.fault...)
	}
	for _, in := range archives(t, "healthy/infra-*") {
		for _, w := range append(workloads, all) {
			t.Run(in.name+"/"+w.name, func(t *testing.T) {
				s := in.snapshot(t, slices.Concat(in.fault, w.fault))
				if s.Partial || len(s.Absent) > 0 {
					t.Errorf("the cluster is not whole: %v", s.Absent)
				}
				r := diagnose.Run(s, All(), diagnose.Options{})
				for _, g := range r.Findings {
					if g.Severity > finding.Info {
						t.Errorf("in a healthy cluster: %s", describe(g))
					}
				}
				for _, skipped := range r.Skipped {
					t.Errorf("skipped: %s %s", skipped.Check, skipped.Reason)
				}
			})
		}
	}
}
