// Package diagnose judges a snapshot of a cluster: a list of analyzers, each a value, and a driver that gives each of
// them only the inputs that it names, takes their findings, and makes a report of them.
package diagnose

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// Analyzer is one check, or a small family of checks that share their work.
type Analyzer struct {
	// Name is a lower-case word that --checks and --skip take besides codes.
	Name string
	// Doc says in one sentence what the analyzer looks at.
	Doc string
	// Needs are the inputs that Run reads. It gets no others, and it does not run when one of them is absent.
	Needs []cluster.Resource
	// Uses are inputs that Run reads where they are there and does without where they are absent.
	Uses []cluster.Resource
	// Codes are all codes that Run may report.
	Codes []*finding.Code
	// Run reports what it finds. Over data in memory nothing can go wrong but the code itself, so it returns no error.
	Run func(*Pass)
}

// Pass is what one run of an analyzer sees.
type Pass struct {
	// View holds the snapshot, reduced to what the analyzer named, with what is derived from it.
	*View
	analyzer *Analyzer
	report   func(finding.Finding)
	outcome  outcome
}

// outcome is what an analyzer says about its own run.
type outcome struct {
	idle            bool
	skipped, partly []string
}

// Idle says that the input holds nothing that the analyzer is for: it neither ran nor was skipped.
func (p *Pass) Idle() { p.outcome.idle = true }

// Skip says why Run could judge nothing. The reason is a clause.
func (p *Pass) Skip(reason string) { p.outcome.skipped = append(p.outcome.skipped, reason) }

// SkipPart says why Run could not judge a part of what it is for. The reason is a clause.
func (p *Pass) SkipPart(reason string) { p.outcome.partly = append(p.outcome.partly, reason) }

// Report adds a finding. Code must be one that the analyzer lists; the severity is that of the code where f has none.
func (p *Pass) Report(code *finding.Code, f finding.Finding) {
	if !slices.Contains(p.analyzer.Codes, code) {
		panic(fmt.Sprintf("analyzer %s reports %s, which it does not list", p.analyzer.Name, code.ID))
	}
	f.Code = code.ID
	if f.Severity == 0 {
		f.Severity = code.Severity
	}
	if f.Evidence == nil {
		f.Evidence = []finding.Evidence{}
	}
	p.report(f)
}

// Options say what to run and what to leave out of the report. The zero value runs and reports everything.
type Options struct {
	// Checks are the codes, code prefixes (DM10) or names of analyzers to run; empty runs all. Skip leaves out.
	Checks, Skip []string
	// Severities replaces the severity of every finding of a code.
	Severities map[string]finding.Severity
	// Suppress leaves out findings of a code, of an object, or both.
	Suppress []Suppression
	// Namespace keeps only the findings about this namespace and the objects in it; empty keeps all.
	Namespace string
}

// Suppression leaves findings out of a report.
type Suppression struct {
	// Code is a code or a prefix of codes; empty stands for every code.
	Code string `json:"code,omitempty"`
	// Object is a pattern of path.Match over "namespace/name", or over "name" for objects without namespace; empty
	// stands for every object.
	Object string `json:"object,omitempty"`
	// Kind is a kind of object; empty stands for every kind.
	Kind string `json:"kind,omitempty"`
	// Reason is for the reader of the configuration.
	Reason string `json:"reason,omitempty"`
}

// Validate says what is wrong with a suppression that would match nothing or everything.
func (s Suppression) Validate() error {
	if s.Code == "" && s.Object == "" {
		return fmt.Errorf("a suppression names a code or an object")
	}
	if _, err := path.Match(s.Object, ""); err != nil {
		return fmt.Errorf("the object pattern %q: %w", s.Object, err)
	}
	return nil
}

func (s Suppression) matches(f finding.Finding) bool {
	if s.Code != "" && !strings.HasPrefix(f.Code, strings.ToUpper(s.Code)) {
		return false
	}
	if s.Kind != "" && !strings.EqualFold(s.Kind, f.Object.Kind) {
		return false
	}
	if s.Object == "" {
		return true
	}
	name := f.Object.Name
	if f.Object.Namespace != "" {
		name = f.Object.Namespace + "/" + name
	}
	ok, err := path.Match(s.Object, name)
	return ok && err == nil
}

// Skipped is an analyzer that did not run, or ran without an input that it uses.
type Skipped struct {
	Check string   `json:"check"`
	Codes []string `json:"codes"`
	// Cluster is as in Finding.
	Cluster string `json:"cluster,omitempty"`
	Reason  string `json:"reason"`
	// Partly tells that the check ran all the same and may have missed what it could not see.
	Partly bool `json:"partly,omitempty"`
}

// Summary counts what a report holds.
type Summary struct {
	Errors     int `json:"errors"`
	Warnings   int `json:"warnings"`
	Infos      int `json:"infos"`
	Suppressed int `json:"suppressed"`
	// Checks is how many analyzers ran to the end.
	Checks int `json:"checks"`
}

// Report is what doctor prints. Its JSON form is versioned: docs/report.schema.json.
type Report struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Clusters   []ClusterSummary  `json:"clusters"`
	Findings   []finding.Finding `json:"findings"`
	Skipped    []Skipped         `json:"skipped"`
	Summary    Summary           `json:"summary"`
}

// The version and kind of a Report in JSON.
const (
	APIVersion = "dnsmesh.io/v1alpha1"
	ReportKind = "Report"
)

// Judged tells whether at least one analyzer ran.
func (r *Report) Judged() bool { return r.Summary.Checks > 0 }

// Worst returns the worst severity among the findings, or 0.
func (r *Report) Worst() finding.Severity {
	var worst finding.Severity
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// Run runs the analyzers over one snapshot and returns their findings in order. It changes nothing that s holds.
func Run(s *cluster.Snapshot, analyzers []*Analyzer, opts Options) *Report {
	r := &Report{
		APIVersion: APIVersion, Kind: ReportKind,
		Findings: []finding.Finding{}, Skipped: []Skipped{},
	}
	views := newViews(s)
	r.Clusters = []ClusterSummary{summarise(views.get(cluster.Resources()))}
	for _, a := range analyzers {
		if !opts.wants(a) {
			continue
		}
		if why := missing(s, a.Needs); why != "" {
			r.Skipped = append(r.Skipped, Skipped{Check: a.Name, Codes: codeIDs(a), Reason: why})
			continue
		}
		p := &Pass{
			View:     views.get(append(slices.Clone(a.Needs), a.Uses...)),
			analyzer: a,
			report:   func(f finding.Finding) { r.add(f, opts, views.ignored) },
		}
		a.Run(p)
		absent := missing(s, a.Uses)
		if s.Partial {
			// Whoever hands over a selection of objects knows that the others are not there.
			absent = ""
		}
		r.record(a, p.outcome, absent)
	}
	r.sort()
	return r
}

// record counts a run, or says why there was none. Absent is why inputs that the analyzer uses were not there.
func (r *Report) record(a *Analyzer, o outcome, absent string) {
	if o.idle {
		return
	}
	skip := Skipped{Check: a.Name, Codes: codeIDs(a)}
	if len(o.skipped) > 0 {
		skip.Reason = strings.Join(o.skipped, "; ")
		r.Skipped = append(r.Skipped, skip)
		return
	}
	r.Summary.Checks++
	if absent != "" {
		o.partly = append(o.partly, absent)
	}
	if len(o.partly) > 0 {
		skip.Reason, skip.Partly = strings.Join(o.partly, "; "), true
		r.Skipped = append(r.Skipped, skip)
	}
}

// Merge puts the reports of several clusters side by side. Names are those of the clusters, in the order of reports.
func Merge(reports []*Report, names []string) *Report {
	if len(reports) == 1 {
		return reports[0]
	}
	m := &Report{APIVersion: APIVersion, Kind: ReportKind, Findings: []finding.Finding{}, Skipped: []Skipped{}}
	for i, r := range reports {
		for _, c := range r.Clusters {
			c.Name = names[i]
			m.Clusters = append(m.Clusters, c)
		}
		for _, f := range r.Findings {
			f.Cluster = names[i]
			m.Findings = append(m.Findings, f)
		}
		for _, s := range r.Skipped {
			s.Cluster = names[i]
			m.Skipped = append(m.Skipped, s)
		}
		m.Summary.Errors += r.Summary.Errors
		m.Summary.Warnings += r.Summary.Warnings
		m.Summary.Infos += r.Summary.Infos
		m.Summary.Suppressed += r.Summary.Suppressed
		m.Summary.Checks += r.Summary.Checks
	}
	m.sort()
	return m
}

func (r *Report) add(f finding.Finding, opts Options, ignored func(finding.Finding) bool) {
	if !opts.wantsCode(f.Code) || !opts.wantsObject(f.Object) {
		return
	}
	if s, ok := opts.Severities[f.Code]; ok {
		f.Severity = s
	}
	if ignored(f) || slices.ContainsFunc(opts.Suppress, func(s Suppression) bool { return s.matches(f) }) {
		r.Summary.Suppressed++
		return
	}
	switch f.Severity {
	case finding.Error:
		r.Summary.Errors++
	case finding.Warning:
		r.Summary.Warnings++
	default:
		r.Summary.Infos++
	}
	r.Findings = append(r.Findings, f)
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, finding.Compare)
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Reason, b.Reason))
	})
}

// Reported returns the codes, of all analyzers, that the options do not leave out.
func (o Options) Reported(codes []*finding.Code) []*finding.Code {
	return slices.DeleteFunc(slices.Clone(codes), func(c *finding.Code) bool { return !o.wantsCode(c.ID) })
}

// wantsObject tells whether an object is in the namespace that findings are wanted for, or is the namespace.
func (o Options) wantsObject(object finding.Object) bool {
	return o.Namespace == "" || object.Namespace == o.Namespace ||
		object.Namespace == "" && object.Kind == "Namespace" && object.Name == o.Namespace
}

// wants tells whether any code of a may be reported.
func (o Options) wants(a *Analyzer) bool {
	return slices.ContainsFunc(a.Codes, func(c *finding.Code) bool { return o.wantsCode(c.ID) })
}

// Expand replaces names of analyzers by the codes that they may report, and refuses a word that is neither a name nor
// a prefix of a code.
func Expand(words []string, analyzers []*Analyzer) ([]string, error) {
	var out []string
	for _, w := range words {
		known := false
		for _, a := range analyzers {
			if strings.EqualFold(a.Name, w) {
				out = append(out, codeIDs(a)...)
				known = true
				continue
			}
			if len(w) >= 3 && slices.ContainsFunc(a.Codes, func(c *finding.Code) bool { return strings.HasPrefix(c.ID, strings.ToUpper(w)) }) {
				out = append(out, strings.ToUpper(w))
				known = true
			}
		}
		if !known {
			return nil, fmt.Errorf("%q is no check and no code", w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (o Options) wantsCode(id string) bool {
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(id, w) })
	}
	return (len(o.Checks) == 0 || has(o.Checks)) && !has(o.Skip)
}

// missing says why a needed input is absent, or "".
func missing(s *cluster.Snapshot, needs []cluster.Resource) string {
	var why []string
	for _, n := range needs {
		if reason, ok := s.Absent[n]; ok {
			why = append(why, reason)
		}
	}
	slices.Sort(why)
	return strings.Join(slices.Compact(why), "; ")
}

func codeIDs(a *Analyzer) []string {
	ids := make([]string, len(a.Codes))
	for i, c := range a.Codes {
		ids[i] = c.ID
	}
	slices.Sort(ids)
	return ids
}
