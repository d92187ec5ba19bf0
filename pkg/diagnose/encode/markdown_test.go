package encode

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

func TestInline(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"plain words, and more: it's well-known (really)", "plain words, and more: it's well-known (really)"},
		{`"my-app" reaches 3 aliases`, `"my-app" reaches 3 aliases`},
		{`"my-app.shop" is`, "\"`my-app.shop`\" is"},
		{"https://evil.example", "`https://evil.example`"},
		{"@admin", "`@admin`"},
		{"#1", "`#1`"},
		{"1. one", "`1`. one"},
		{"1234567", "`1234567`"},
		{"a|b", "`a`&#124;`b`"},
		{`\|`, "&#92;&#124;"},
		{"``", "&#96;&#96;"},
		{"<b>", "&#60;`b>`"},
		{"*a* _b_ [c](d)", "`*a*` `_b_` `[c](d`)"},
		{"- a", "`-` a"},
		{"a\nb\x1b", "`a`&#92;`nb`&#92;`x1b`"},
		{"a → b …", "a → b …"},
	} {
		if got := inline(tt.in); got != tt.want {
			t.Errorf("inline(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestFence(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a\n", "```x\na\n```\n"},
		{"a", "```x\na\n```\n"},
		{"```\na", "````x\n```\na\n````\n"},
		{"a ````` b ``", "``````x\na ````` b ``\n``````\n"},
		{"\ta\r\n\x1b", "```x\n\ta\\r\n\\x1b\n```\n"},
	} {
		var m markdown
		m.fence("", "x", tt.text)
		if got := m.String(); got != tt.want {
			t.Errorf("fence(%q) =\n%s, want\n%s", tt.text, got, tt.want)
		}
	}
}

func TestDoc(t *testing.T) {
	var m markdown
	m.doc("one\ntwo\n\n    a\n\n      b\n\nthree\n    c\nfour")
	want := "one two\n\n```\na\n\n  b\n```\n\nthree\n\n```\nc\n```\n\nfour\n"
	if diff := cmp.Diff(want, m.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var (
	codeSpans  = regexp.MustCompile("`([^`]*)`")
	references = regexp.MustCompile(`&#([0-9]+);`)
	skeleton   = regexp.MustCompile(`^(# |## |### |- )?(\*\*[^*]*\*\*)?`)
)

// render returns the text that a viewer shows for a line without other markup than code spans and references.
func render(line string) string {
	decode := func(s string) string {
		return references.ReplaceAllStringFunc(s, func(ref string) string {
			n, _ := strconv.Atoi(references.FindStringSubmatch(ref)[1])
			return string(rune(n))
		})
	}
	var b strings.Builder
	last := 0
	for _, at := range codeSpans.FindAllStringIndex(line, -1) {
		b.WriteString(decode(line[last:at[0]]))
		b.WriteString(line[at[0]+1 : at[1]-1])
		last = at[1]
	}
	b.WriteString(decode(line[last:]))
	return b.String()
}

// shown is what a viewer can show of a text in one line.
func shown(text string) string { return strings.Join(strings.Fields(finding.Printable(text)), " ") }

// checkMarkdown fails the test unless the text has the sections of the report and no other markup.
func checkMarkdown(t *testing.T, r *diagnose.Report, text string) {
	t.Helper()
	fence, cells := "", 0
	var headings, rows, blocks []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		trimmed := strings.TrimLeft(line, " ")
		marker := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		if fence != "" {
			// CommonMark, section 4.5: the end is at least as long, and nothing but blanks follow.
			if len(marker) >= len(fence) && strings.TrimSpace(trimmed[len(marker):]) == "" {
				fence = ""
			}
			continue
		}
		if len(marker) >= 3 {
			fence = marker
			blocks = append(blocks, trimmed[len(marker):])
			continue
		}
		if strings.Contains(line, "<") {
			t.Errorf("a tag may begin in %q", line)
		}
		rest := line
		if strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "|-") {
			n := strings.Count(line, "|")
			if cells == 0 {
				cells = n
			}
			if n != cells || !strings.HasSuffix(line, "|") {
				t.Errorf("%d pipes and not %d in the row %q", n, cells, line)
			}
			rows = append(rows, line)
			rest = strings.ReplaceAll(line, "|", "")
		} else {
			cells = 0
			if strings.HasPrefix(line, "#") {
				headings = append(headings, line)
			}
		}
		rest = references.ReplaceAllString(codeSpans.ReplaceAllString(rest, ""), "")
		for _, char := range rest[len(skeleton.FindString(rest)):] {
			if char < unicode.MaxASCII && !unicode.IsLetter(char) && !unicode.IsDigit(char) && !strings.ContainsRune(` "'(),.;:?!-`, char) {
				t.Errorf("%q may be markup in %q", char, line)
			}
		}
	}
	if fence != "" {
		t.Error("a code block does not end")
	}
	if want := 2 + len(r.Findings); len(r.Findings) > 0 && len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	var want []string
	for _, f := range r.Findings {
		want = append(want, strings.TrimSpace("## "+f.Code+" "+strings.TrimSpace(shown(f.Object.Kind)+" "+shown(nameOf(f.Object)))))
	}
	var got []string
	for _, h := range headings {
		if !slices.Contains([]string{"# DNS report", "## Skipped checks", "## Codes"}, h) && !strings.HasPrefix(h, "### ") {
			got = append(got, render(h))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headings (-want +got):\n%s", diff)
	}
	for i, f := range r.Findings {
		if row := render(rows[2+i]); !strings.HasSuffix(row, "| "+shown(f.Message)+" |") {
			t.Errorf("the row %q does not end in the message %q", row, shown(f.Message))
		}
	}
	for _, info := range blocks {
		if !slices.Contains([]string{"", "text", "yaml", "diff", "sh"}, info) {
			t.Errorf("a code block of %q", info)
		}
	}
}

func nameOf(o finding.Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

func TestMarkdown(t *testing.T) {
	for _, r := range append(hostileReports(), full(), clean(), blind()) {
		checkMarkdown(t, r, string(encoded(t, "markdown", r)))
	}
}

func FuzzMarkdown(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, name, message, text, block string) {
		r := hostile(name, message, text, block)
		checkMarkdown(t, r, string(encoded(t, "markdown", r)))
		for _, s := range []string{name, message, text, block} {
			if got := render(inline(s)); got != shown(s) {
				t.Errorf("inline(%q) shows %q, want %q", s, got, shown(s))
			}
		}
	})
}
