package encode

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// Markdown writes r in GitHub Flavored Markdown, for a pull request or a ticket: what was judged, a table of the
// findings, a section for each with its evidence and fix, the checks that were skipped, and what the codes mean that
// occur. Codes give that meaning; a finding whose code is not among them is written all the same.
//
// No text of r becomes markup: see inline and fence.
func Markdown(w io.Writer, r *diagnose.Report, codes []*finding.Code) error {
	m := &markdown{}
	m.overview(r)
	m.table(r.Findings)
	for _, f := range r.Findings {
		m.finding(f)
	}
	m.skipped(r.Skipped)
	m.meanings(r.Findings, codes)
	return write(w, []byte(m.String()))
}

// markdown is the text that Markdown builds.
type markdown struct{ strings.Builder }

func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(&m.Builder, format, args...) }

func (m *markdown) overview(r *diagnose.Report) {
	m.printf("# DNS report\n\n")
	s := r.Summary
	switch {
	case !r.Judged():
		m.printf("**Nothing was judged**: no check could run.\n")
	case len(r.Findings) == 0:
		m.printf("**No findings** from %s", count(s.Checks, "check"))
	default:
		m.printf("**%s, %s, %s** from %s",
			count(s.Errors, "error"), count(s.Warnings, "warning"), count(s.Infos, "note"), count(s.Checks, "check"))
	}
	if r.Judged() {
		if s.Suppressed > 0 {
			m.printf("; %d suppressed", s.Suppressed)
		}
		if n := len(r.Skipped); n > 0 {
			m.printf("; %s skipped in whole or in part", count(n, "check"))
		}
		m.printf(".\n")
	}
	if len(r.Clusters) > 0 {
		m.printf("\n")
	}
	for _, c := range r.Clusters {
		m.printf("- %s\n", inline(describe(c)))
	}
}

// describe says in one line what was judged.
func describe(c diagnose.ClusterSummary) string {
	parts := []string{"no DNS server found"}
	if d := c.DNS; d != nil {
		parts[0] = strings.TrimSpace(d.Implementation + " " + d.Version)
		if d.Assumed {
			parts[0] += " (assumed)"
		}
		if d.Object != nil {
			parts[0] += fmt.Sprintf(" (%s, %d of %d ready)", d.Object, d.Ready, d.Total)
		}
	}
	if c.NodeLocal {
		parts = append(parts, "NodeLocal DNSCache in front")
	}
	version := c.ServerVersion
	if strings.HasSuffix(c.Distribution, " "+version) {
		version = ""
	}
	for _, p := range []string{c.NodeServer, c.Domain, c.Distribution, version, c.CNI} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	text := strings.Join(parts, ", ")
	if c.Name != "" {
		text = c.Name + ": " + text
	}
	return text
}

func (m *markdown) table(findings []finding.Finding) {
	if len(findings) == 0 {
		return
	}
	clusters := slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Cluster != "" })
	head := []string{"severity", "code", "object", "finding"}
	if clusters {
		head = slices.Insert(head, 2, "cluster")
	}
	m.printf("\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, f := range findings {
		row := []string{f.Severity.String(), span(f.Code), object(f.Object), inline(f.Message)}
		if clusters {
			row = slices.Insert(row, 2, span(f.Cluster))
		}
		m.printf("| %s |\n", strings.Join(row, " | "))
	}
}

func (m *markdown) finding(f finding.Finding) {
	m.printf("\n## %s %s\n\n**%s**", span(f.Code), object(f.Object), f.Severity)
	if f.Cluster != "" {
		m.printf(" in cluster %s", span(f.Cluster))
	}
	if f.Position != nil {
		m.printf(" at %s", span(f.Position.String()))
	}
	m.printf(": %s\n", inline(f.Message))
	if len(f.Evidence) > 0 {
		m.printf("\n")
	}
	for _, e := range f.Evidence {
		m.evidence(e)
	}
	if len(f.Related) > 0 {
		names := make([]string, len(f.Related))
		for i, o := range f.Related {
			names[i] = object(o)
		}
		m.printf("\nRelated: %s\n", strings.Join(names, ", "))
	}
	if f.Fix != nil {
		m.fix(f.Fix)
	}
}

func (m *markdown) evidence(e finding.Evidence) {
	m.printf("-")
	if e.Label != "" {
		m.printf(" **%s**", inline(e.Label))
	}
	several := strings.Contains(e.Text, "\n")
	if !several {
		m.printf(" %s", inline(e.Text))
	}
	if at := place(e); at != "" {
		m.printf(" (%s)", span(at))
	}
	m.printf("\n")
	if several {
		m.printf("\n")
		m.fence("  ", "text", e.Text)
	}
}

func (m *markdown) fix(f *finding.Fix) {
	m.printf("\n**Fix:** %s\n", inline(f.Summary))
	for _, block := range []struct{ info, text string }{
		{"yaml", f.Manifest},
		{"diff", f.Diff},
		{"sh", commandLines(f.Commands)},
	} {
		if block.text != "" {
			m.printf("\n")
			m.fence("", block.info, block.text)
		}
	}
}

// commandLines returns the commands, each on a line of its own whatever it holds.
func commandLines(commands []string) string {
	lines := make([]string, len(commands))
	for i, c := range commands {
		lines[i] = finding.Printable(c)
	}
	return strings.Join(lines, "\n")
}

func (m *markdown) skipped(skipped []diagnose.Skipped) {
	if len(skipped) == 0 {
		return
	}
	m.printf("\n## Skipped checks\n\n")
	for _, s := range skipped {
		m.printf("- %s\n", inline(skippedText(s)))
	}
}

// skippedText says which check did not run and why.
func skippedText(s diagnose.Skipped) string {
	text := s.Check
	if len(s.Codes) > 0 {
		text += " (" + strings.Join(s.Codes, ", ") + ")"
	}
	if s.Cluster != "" {
		text += " in cluster " + s.Cluster
	}
	if s.Partly {
		return text + " ran without all that it looks at: " + s.Reason
	}
	return text + " was skipped: " + s.Reason
}

// meanings explains the codes that occur, in the order of their IDs.
func (m *markdown) meanings(findings []finding.Finding, codes []*finding.Code) {
	known := byID(codes)
	var ids []string
	for _, f := range findings {
		if known[f.Code] != nil {
			ids = append(ids, f.Code)
		}
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	m.printf("\n## Codes\n")
	for _, id := range slices.Compact(ids) {
		m.printf("\n### %s %s\n\n", span(id), inline(known[id].Title))
		m.doc(known[id].Doc)
	}
}

// doc writes the text of a finding.Code: paragraphs, and indented lines as they are.
func (m *markdown) doc(doc string) {
	const indent = "    "
	var paragraph, block []string
	separate := false
	end := func() {
		if len(paragraph)+len(block) == 0 {
			return
		}
		if separate {
			m.printf("\n")
		}
		separate = true
		if len(block) > 0 {
			m.fence("", "", strings.TrimRight(strings.Join(block, "\n"), "\n"))
		} else {
			m.printf("%s\n", inline(strings.Join(paragraph, " ")))
		}
		paragraph, block = nil, nil
	}
	for line := range strings.SplitSeq(doc, "\n") {
		text, indented := strings.CutPrefix(line, indent)
		switch {
		case line == "" && len(block) > 0:
			block = append(block, "") // the block may go on after an empty line
		case line == "":
			end()
		case indented:
			if len(paragraph) > 0 {
				end()
			}
			block = append(block, text)
		default:
			if len(block) > 0 {
				end()
			}
			paragraph = append(paragraph, line)
		}
	}
	end()
}

// fence writes text as a fenced code block, each line indented by indent. The fence is longer than any run of
// backticks inside (CommonMark, section 4.5), so that no line of the text ends the block.
func (m *markdown) fence(indent, info, text string) {
	lines := printableLines(text)
	longest := 2
	for _, line := range lines {
		run := 0
		for _, c := range []byte(line) {
			if c != '`' {
				run = 0
				continue
			}
			run++
			longest = max(longest, run)
		}
	}
	marker := strings.Repeat("`", longest+1)
	m.printf("%s%s%s\n", indent, marker, info)
	for _, line := range lines {
		m.printf("%s\n", indented(indent, line))
	}
	m.printf("%s%s\n", indent, marker)
}

// inline returns text for one line of Markdown, also in a table. A viewer may make a link, a mention, emphasis, a
// formula or an emoji of nearly every punctuation mark, and some do so after escapes and entities are resolved. So words
// of letters stay as they are, and every other word is put into a code span, where nothing is interpreted. Blanks are
// joined.
func inline(text string) string {
	words := strings.Fields(finding.Printable(text))
	for i, w := range words {
		core := strings.TrimLeft(w, `"'(`)
		lead := w[:len(w)-len(core)]
		body := strings.TrimRight(core, `"'),.;:?!`)
		trail := core[len(body):]
		if !isProse(body, trail) {
			words[i] = lead + codeSpan(body) + trail
		}
	}
	return strings.Join(words, " ")
}

// isProse tells whether no viewer sees more in a word than its letters. The word may have hyphens and apostrophes
// inside. A number is prose where it can be neither the mark of a list nor an abbreviated commit.
func isProse(word, trail string) bool {
	if strings.Trim(word, "0123456789") == "" {
		return len(word) < 7 && (word == "" || !strings.HasPrefix(trail, ".") && !strings.HasPrefix(trail, ")"))
	}
	before := '-'
	for _, r := range word {
		switch {
		case r == '-' || r == '\'':
			if before == '-' || before == '\'' {
				return false
			}
		case r < unicode.MaxASCII && !unicode.IsLetter(r):
			return false
		}
		before = r
	}
	return before != '-' && before != '\''
}

// object returns the name of an object for one line of Markdown.
func object(o finding.Object) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return strings.TrimSpace(inline(o.Kind) + " " + span(name))
}

// span returns a name for one line of Markdown, as one code span however many words it has.
func span(name string) string {
	return codeSpan(strings.Join(strings.Fields(finding.Printable(name)), " "))
}

// codeSpan puts text into a code span. A pipe ends the cell of a table in a code span too, escapes of it are read in
// different ways by different viewers, and a backtick ends the span: these stand outside, as references to characters,
// which are never structure (CommonMark, section 2.5). So does the sign that opens a tag, for viewers that look for
// HTML first.
func codeSpan(text string) string {
	const outside = "|\\`<"
	var b strings.Builder
	for text != "" {
		n := strings.IndexAny(text, outside)
		switch n {
		case 0:
			fmt.Fprintf(&b, "&#%d;", text[0])
			text = text[1:]
			continue
		case -1:
			n = len(text)
		}
		b.WriteString("`" + text[:n] + "`")
		text = text[n:]
	}
	return b.String()
}
