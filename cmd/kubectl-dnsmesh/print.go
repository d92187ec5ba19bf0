package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/encode"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// reportFormats are the values of doctor's -o.
var reportFormats = []string{"table", "wide", "json", "yaml", "markdown", "sarif", "junit"}

// printOptions say how a report is printed.
type printOptions struct {
	format string
	// verbose adds why checks were skipped.
	verbose bool
	codes   []*finding.Code
	// status is the exit code that the command will end with.
	status int
	// again is the command line without -o, for the hint at the end.
	again string
}

// printReport writes a report in a format.
func printReport(w io.Writer, r *diagnose.Report, o printOptions) error {
	switch o.format {
	case "json":
		return encode.JSON(w, r)
	case "yaml":
		return encode.YAML(w, r)
	case "markdown":
		return encode.Markdown(w, r, o.codes)
	case "sarif":
		return encode.SARIF(w, r, o.codes, version)
	case "junit":
		return encode.JUnit(w, r, o.codes)
	}
	p := newPage(w)
	p.report(r, o)
	return p.err
}

// report writes the report for people: what was judged, one story for each finding, what to do next.
func (p *page) report(r *diagnose.Report, o printOptions) {
	wide := o.format == "wide"
	several := len(r.Clusters) > 1
	for _, c := range r.Clusters {
		head := ""
		if several {
			head = finding.Printable(c.Name) + "  "
		}
		p.hang(head, plain, describe(c))
	}
	p.hang("", plain, counts(r, o))
	for _, f := range r.Findings {
		if f.Severity == finding.Info && !wide {
			continue
		}
		p.write("\n")
		p.finding(f, wide, several)
	}
	if o.verbose || wide {
		p.skipped(r)
	}
	p.write("\n")
	p.summary(r, o, wide)
}

// describe says in one line what a cluster is.
func describe(c diagnose.ClusterSummary) string {
	var parts []string
	switch d := c.DNS; {
	case d == nil:
		parts = append(parts, "no DNS server found")
	default:
		name := map[string]string{
			"coredns": "CoreDNS", "kube-dns": "kube-dns", "cloud-dns": "Cloud DNS", "node-local-dns": "NodeLocal DNSCache", "unknown": "a DNS server",
		}[d.Implementation]
		s := cmp.Or(name, d.Implementation)
		if d.Version != "" {
			s += " " + d.Version
		}
		var about []string
		if o := d.Object; o != nil {
			about = append(about, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		}
		if d.Total > 0 {
			about = append(about, fmt.Sprintf("%d of %d ready", d.Ready, d.Total))
		}
		if d.Assumed {
			about = append(about, "assumed")
		}
		if len(about) > 0 {
			s += " (" + strings.Join(about, ", ") + ")"
		}
		parts = append(parts, s)
	}
	if c.NodeLocal {
		parts = append(parts, "NodeLocal DNSCache")
	}
	parts = append(parts, c.Domain)
	switch {
	case c.Distribution != "":
		parts = append(parts, c.Distribution)
	case c.ServerVersion != "":
		parts = append(parts, "Kubernetes "+c.ServerVersion)
	}
	if c.CNI != "" {
		parts = append(parts, c.CNI)
	}
	if c.NodeServer != "" {
		parts = append(parts, c.NodeServer)
	}
	return strings.Join(parts, ", ")
}

// counts says what was read and how many checks ran.
func counts(r *diagnose.Report, o printOptions) string {
	total := map[string]int{}
	for _, c := range r.Clusters {
		for k, n := range c.Objects {
			total[k] += n
		}
	}
	var parts []string
	for _, k := range []struct{ key, one, many string }{
		{"namespaces", "namespace", "namespaces"},
		{"services", "service", "services"},
		{"pods", "pod", "pods"},
		{"templates", "workload", "workloads"},
	} {
		if n, ok := total[k.key]; ok && (n > 0 || k.key != "templates") {
			parts = append(parts, plural(n, k.one, k.many))
		}
	}
	s := strings.Join(parts, ", ")
	if s != "" {
		s += "; "
	}
	s += plural(r.Summary.Checks, "check", "checks")
	if n := len(r.Skipped); n > 0 {
		s += fmt.Sprintf(", %d skipped in whole or in part", n)
		if !o.verbose && o.format != "wide" {
			s += " (--verbose tells why)"
		}
	}
	return s
}

// plural writes a number, in groups of three digits, with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + many
}

// finding writes one finding as a story: who is hurt, what happens, why, how to mend it.
func (p *page) finding(f finding.Finding, wide, several bool) {
	word := map[finding.Severity]string{finding.Error: "ERROR", finding.Warning: "WARNING", finding.Info: "INFO"}[f.Severity]
	colour := map[finding.Severity]style{finding.Error: red, finding.Warning: yellow, finding.Info: cyan}[f.Severity]
	title := f.Object.String()
	if f.Position != nil && f.Position.Line > 0 {
		title += fmt.Sprintf(", line %d", f.Position.Line)
	}
	if several {
		title = f.Cluster + "  " + title
	}
	p.write(p.styled(colour, word) + "  " + p.styled(bold, f.Code) + "  " + finding.Printable(title) + "\n")
	p.hang("  ", bold, f.Message)

	const shown = 4 // places of one kind that the short form shows
	labels := 0
	for _, e := range f.Evidence {
		labels = max(labels, len(e.Label))
	}
	previous, same := "", 0
	for i, e := range f.Evidence {
		label := e.Label
		if label == previous {
			same++
			label = ""
		} else {
			previous, same = label, 0
		}
		if !wide && same >= shown {
			more := 1
			for i+more < len(f.Evidence) && f.Evidence[i+more].Label == e.Label {
				more++
			}
			if same == shown && more > 1 {
				p.write(fmt.Sprintf("    %-*s  … %d more (-o wide)\n", labels, "", more))
			}
			if more > 1 || same > shown {
				continue
			}
		}
		p.hang(fmt.Sprintf("    %-*s  ", labels, finding.Printable(label)), plain, e.Text)
	}
	p.fix(f.Fix, wide)
}

func (p *page) fix(fix *finding.Fix, wide bool) {
	if fix == nil {
		return
	}
	p.hang("  fix  ", plain, fix.Summary)
	limit := 12
	if wide {
		limit = 1 << 30
	}
	for _, text := range []string{fix.Diff, fix.Manifest} {
		if text != "" {
			p.block("       ", text, limit)
		}
	}
	for _, c := range fix.Commands {
		p.command("       ", c)
	}
}

// skipped writes which checks did not run, and why.
func (p *page) skipped(r *diagnose.Report) {
	if len(r.Skipped) == 0 {
		return
	}
	name := func(s diagnose.Skipped) string {
		return finding.Printable(strings.TrimSpace(s.Cluster + " " + s.Check))
	}
	width := 0
	for _, s := range r.Skipped {
		width = max(width, utf8.RuneCountInString(name(s)))
	}
	p.write("\n")
	for _, s := range r.Skipped {
		how := "skipped"
		if s.Partly {
			how = "in part"
		}
		p.hang(fmt.Sprintf("%s  %-*s  ", how, min(width, 24), name(s)), plain, s.Reason)
	}
}

// summary writes the last lines: the count, the exit code, the next command.
func (p *page) summary(r *diagnose.Report, o printOptions, wide bool) {
	s := r.Summary
	var parts []string
	if s.Errors > 0 {
		parts = append(parts, plural(s.Errors, "error", "errors"))
	}
	if s.Warnings > 0 {
		parts = append(parts, plural(s.Warnings, "warning", "warnings"))
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "nothing wrong was found"
		if !r.Judged() {
			text = "nothing could be judged"
		}
	}
	if s.Infos > 0 {
		text += ", " + plural(s.Infos, "note", "notes")
		if !wide {
			text += " (-o wide shows them)"
		}
	}
	if s.Suppressed > 0 {
		text += fmt.Sprintf(", %d suppressed", s.Suppressed)
	}
	p.hang("", plain, text+fmt.Sprintf(" [exit %d]", o.status))
	next := "kubectl dnsmesh explain CODE says more about a finding"
	switch {
	case len(r.Findings) > 0 && s.Errors+s.Warnings > 0:
		i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Severity > finding.Info })
		next = "kubectl dnsmesh explain " + r.Findings[i].Code
	case s.Infos > 0 && !wide:
		next = o.again + " -o wide"
	case len(r.Findings) == 0:
		next = "kubectl dnsmesh doctor --list-checks"
	}
	p.hang("next  ", plain, next)
}

// newTable returns a table without lines, its columns two blanks apart.
func newTable(w io.Writer) *tablewriter.Table {
	return tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithPadding(tw.Padding{Right: "  ", Overwrite: true}),
		tablewriter.WithTrimSpace(tw.Off),
	)
}

// printChecks writes the list of codes as a table.
func printChecks(w io.Writer, analyzers []*diagnose.Analyzer) error {
	p := newPage(w)
	const columns = 9 + 10 + 13 // code, severity and check with the blanks between them
	table := newTable(w)
	table.Header("CODE", "SEVERITY", "CHECK", "FOUND WHEN")
	type row struct {
		code  *finding.Code
		check string
	}
	var rows []row
	for _, a := range analyzers {
		for _, c := range a.Codes {
			// The first analyzer with a code is the one that it is chiefly for.
			if !slices.ContainsFunc(rows, func(r row) bool { return r.code == c }) {
				rows = append(rows, row{c, a.Name})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.code.ID, b.code.ID) })
	width := 0
	for _, r := range rows {
		width = max(width, len(r.check))
	}
	for _, r := range rows {
		title := strings.Join(wrap(r.code.Title, max(p.width-columns-width, 30)), "\n")
		if err := table.Append(r.code.ID, r.code.Severity.String(), r.check, title); err != nil {
			return err
		}
	}
	return table.Render()
}
