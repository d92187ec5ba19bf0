package encode

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// The types are the part of the JUnit format that Jenkins, GitLab and GitHub actions agree on.

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
	Out     *junitText    `xml:"system-out"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	// Text is CDATA, so that the lines of a manifest stay lines.
	Text string `xml:",cdata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitText struct {
	Text string `xml:",cdata"`
}

// JUnit writes r as a JUnit report: one suite for each cluster, in the order of r. Codes are those of the checks that
// were asked for. In each suite a code has one test case for each finding (failed for errors and warnings, passed with
// the text as output for notes), or else one that is skipped where a check of the code did not run, or else one that
// passed. Cases are named by code, object and message, not by place, so that they keep their history.
func JUnit(w io.Writer, r *diagnose.Report, codes []*finding.Code) error {
	suites := junitSuites{Name: "kubectl dnsmesh doctor"}
	for _, c := range clusterParts(r) {
		s := c.suite(codes, r.Judged())
		suites.Tests += s.Tests
		suites.Failures += s.Failures
		suites.Skipped += s.Skipped
		suites.Suites = append(suites.Suites, s)
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	if err := e.Encode(suites); err != nil {
		return fmt.Errorf("encoding report: %w", err)
	}
	b.WriteByte('\n')
	return write(w, b.Bytes())
}

// clusterPart is what a report says about one cluster.
type clusterPart struct {
	name     string
	findings []finding.Finding
	skipped  []diagnose.Skipped
}

// clusterParts splits a report by cluster. Findings of a report on one cluster do not name it.
func clusterParts(r *diagnose.Report) []*clusterPart {
	var parts []*clusterPart
	part := func(name string) *clusterPart {
		if name == "" && len(parts) == 1 {
			return parts[0]
		}
		if i := slices.IndexFunc(parts, func(c *clusterPart) bool { return c.name == name }); i >= 0 {
			return parts[i]
		}
		parts = append(parts, &clusterPart{name: name})
		return parts[len(parts)-1]
	}
	for _, c := range r.Clusters {
		part(c.Name)
	}
	if len(parts) == 0 && len(r.Findings)+len(r.Skipped) == 0 {
		part("")
	}
	for _, f := range r.Findings {
		c := part(f.Cluster)
		c.findings = append(c.findings, f)
	}
	for _, s := range r.Skipped {
		c := part(s.Cluster)
		c.skipped = append(c.skipped, s)
	}
	return parts
}

// suite returns the cases of a cluster; judged tells whether any check ran.
func (c *clusterPart) suite(codes []*finding.Code, judged bool) junitSuite {
	s := junitSuite{Name: "cluster"}
	if c.name != "" {
		s.Name = finding.Printable(c.name)
	}
	found := map[string]bool{}
	times := map[[2]string]int{}
	for _, f := range c.findings {
		found[f.Code] = true
		tc := findingCase(f)
		key := [2]string{tc.Class, tc.Name}
		if times[key]++; times[key] > 1 {
			tc.Name += fmt.Sprintf(" (%d)", times[key])
		}
		s.Cases = append(s.Cases, tc)
	}
	done := map[string]bool{}
	for _, code := range codes {
		if !found[code.ID] && !done[code.ID] {
			done[code.ID] = true
			s.Cases = append(s.Cases, c.quietCase(code.ID, code.Title, judged))
		}
	}
	// A skipped check is told even where the caller does not list its codes.
	for _, skip := range c.skipped {
		for _, id := range skip.Codes {
			if !skip.Partly && !found[id] && !done[id] {
				done[id] = true
				s.Cases = append(s.Cases, c.quietCase(id, skip.Check, judged))
			}
		}
	}
	slices.SortStableFunc(s.Cases, func(a, b junitCase) int { return strings.Compare(a.Class, b.Class) })
	s.Tests = len(s.Cases)
	for _, tc := range s.Cases {
		switch {
		case tc.Failure != nil:
			s.Failures++
		case tc.Skipped != nil:
			s.Skipped++
		}
	}
	return s
}

// className is the class of a test case; viewers show what stands before the dot as a package.
func className(code string) string { return "dnsmesh." + finding.Printable(code) }

func findingCase(f finding.Finding) junitCase {
	c := junitCase{Class: className(f.Code), Name: finding.Printable(f.Object.String() + ": " + f.Message)}
	text := plainText(f)
	switch f.Severity {
	case finding.Error, finding.Warning:
		c.Failure = &junitFailure{Type: f.Severity.String(), Message: finding.Printable(f.Message), Text: text}
	default:
		c.Out = &junitText{text}
	}
	return c
}

// quietCase is the case of a code without findings: skipped where a check of it did not run, passed else.
func (c *clusterPart) quietCase(id, title string, judged bool) junitCase {
	tc := junitCase{Class: className(id), Name: finding.Printable(title)}
	var skipped, partly []string
	for _, s := range c.skipped {
		switch {
		case !slices.Contains(s.Codes, id):
		case s.Partly:
			partly = append(partly, finding.Printable(s.Check+": "+s.Reason))
		default:
			skipped = append(skipped, finding.Printable(s.Check+": "+s.Reason))
		}
	}
	if len(skipped) == 0 && !judged {
		skipped = []string{"no check ran"}
	}
	if len(skipped) > 0 {
		tc.Skipped = &junitSkipped{Message: strings.Join(skipped, "; ")}
	}
	if len(partly) > 0 {
		tc.Out = &junitText{"ran without all that it looks at: " + strings.Join(partly, "; ")}
	}
	return tc
}

// plainText tells a finding in lines.
func plainText(f finding.Finding) string {
	var b strings.Builder
	line := func(indent, text string) {
		for _, l := range printableLines(text) {
			b.WriteString(indented(indent, l) + "\n")
		}
	}
	line("", finding.Printable(fmt.Sprintf("%s %s: %s", f.Severity, f.Code, f.Object)))
	line("", finding.Printable(f.Message))
	if f.Position != nil {
		line("  ", finding.Printable("at: "+f.Position.String()))
	}
	for _, e := range f.Evidence {
		text := strings.TrimPrefix(e.Label+": "+e.Text, ": ")
		if at := place(e); at != "" {
			text += " (" + at + ")"
		}
		line("  ", text)
	}
	for _, o := range f.Related {
		line("  ", finding.Printable("related: "+o.String()))
	}
	if f.Fix == nil {
		return b.String()
	}
	line("", finding.Printable("fix: "+f.Fix.Summary))
	for _, block := range []string{f.Fix.Manifest, f.Fix.Diff, commandLines(f.Fix.Commands)} {
		if block != "" {
			b.WriteByte('\n')
			line("    ", block)
		}
	}
	return b.String()
}
