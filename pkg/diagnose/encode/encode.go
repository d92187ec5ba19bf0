// Package encode writes a report of doctor for machines and for other viewers than a terminal: JSON and YAML after the
// versioned contract of docs/report.schema.json, Markdown for pull requests and tickets, SARIF for code scanning, and
// JUnit for CI servers.
//
// A report quotes names and values of a cluster, which may be hostile. Every encoder keeps them from steering what
// shows its output: in JSON, YAML and SARIF properties they stay exact behind the escapes of the format; in texts
// that people read they pass finding.Printable and the quoting of the format.
//
// Every encoder writes once, at the end, and returns only the errors of the writer and of the standard encoders.
package encode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// JSON writes r after docs/report.schema.json, indented by two spaces, lists never null. Every rune that is not
// printable is written as an escape, which a decoder takes back; only bytes that are no UTF-8 are lost to U+FFFD.
func JSON(w io.Writer, r *diagnose.Report) error { return writeJSON(w, normal(r)) }

// YAML writes what JSON writes, as YAML with sorted keys.
func YAML(w io.Writer, r *diagnose.Report) error { return writeYAML(w, normal(r)) }

// DocumentJSON writes any other document as JSON writes a report. Its lists are the caller's to fill in.
func DocumentJSON(w io.Writer, document any) error { return writeJSON(w, document) }

// DocumentYAML writes any other document as YAML writes a report.
func DocumentYAML(w io.Writer, document any) error { return writeYAML(w, document) }

func writeYAML(w io.Writer, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encoding report: %w", err)
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return fmt.Errorf("encoding report: %w", err)
	}
	// The YAML writer leaves runes that reverse the direction of text as they are, and its reader refuses some control
	// characters. They are replaced by a mark that begins with U+0001, which forces a double-quoted scalar; there the
	// mark becomes the escape. No text of the report holds the mark itself.
	mark := "rune"
	for bytes.Contains(data, []byte(mark)) {
		mark += "e"
	}
	tree = mapStrings(tree, func(s string) string {
		return replaceUnprintable(s, func(r rune) string { return fmt.Sprintf("\x01%s%08X", mark, r) })
	})
	out, err := yaml.Marshal(tree)
	if err != nil {
		return fmt.Errorf("encoding report: %w", err)
	}
	return write(w, bytes.ReplaceAll(out, []byte(`\x01`+mark), []byte(`\U`)))
}

// mapStrings applies f to all strings and keys of a decoded JSON value.
func mapStrings(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = mapStrings(v[i], f)
		}
		return v
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[f(k)] = mapStrings(e, f)
		}
		return m
	}
	return v
}

// replaceUnprintable replaces the runes that could steer a viewer, line feeds and tabs apart.
func replaceUnprintable(s string, f func(rune) string) string {
	steers := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if steers(r) {
			b.WriteString(f(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// normal returns r with empty lists and maps where r has none, so that no consumer meets null in place of a list. It
// does not change r.
func normal(r *diagnose.Report) *diagnose.Report {
	n := *r
	n.Clusters = append([]diagnose.ClusterSummary{}, r.Clusters...)
	n.Findings = append([]finding.Finding{}, r.Findings...)
	n.Skipped = append([]diagnose.Skipped{}, r.Skipped...)
	for i, c := range n.Clusters {
		if c.Objects == nil {
			n.Clusters[i].Objects = map[string]int{}
		}
	}
	for i, f := range n.Findings {
		if f.Evidence == nil {
			n.Findings[i].Evidence = []finding.Evidence{}
		}
	}
	for i, s := range n.Skipped {
		if s.Codes == nil {
			n.Skipped[i].Codes = []string{}
		}
	}
	return &n
}

// writeJSON writes v, indented, without the escapes that HTML needs and with those that terminals need.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding report: %w", err)
	}
	// Between strings JSON has only line feeds and printable ASCII, and in them the encoder has escaped the control
	// characters of ASCII but one. What is left is in a string.
	return write(w, []byte(replaceUnprintable(b.String(), func(r rune) string {
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})))
}

func write(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// printableLines splits s into lines, each without what could steer a viewer. Tabs stay: they stand in Corefiles and in
// the differences between them. A final line feed ends the last line and starts no other.
func printableLines(s string) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j, p := range parts {
			parts[j] = finding.Printable(p)
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return lines
}

// indented returns line behind indent; blanks at its end stay, because they count in a diff.
func indented(indent, line string) string {
	if line == "" {
		return ""
	}
	return indent + line
}

// byID returns the codes by their ID.
func byID(codes []*finding.Code) map[string]*finding.Code {
	m := make(map[string]*finding.Code, len(codes))
	for _, c := range codes {
		m[c.ID] = c
	}
	return m
}

// place returns where a piece of evidence stands, or "" where its text already says so.
func place(e finding.Evidence) string {
	if e.Position == nil {
		return ""
	}
	line := finding.Position{Source: e.Position.Source, Line: e.Position.Line}
	if strings.Contains(e.Text, line.String()) {
		return ""
	}
	return e.Position.String()
}

// count returns "1 error", "2 errors".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
