package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/encode"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/trace"
)

// printTrace writes a trace in a format.
func printTrace(w io.Writer, t *trace.Trace, format string) error {
	switch format {
	case "json":
		return encode.DocumentJSON(w, t)
	case "yaml":
		return encode.DocumentYAML(w, t)
	case "mermaid":
		return trace.Mermaid(w, t)
	}
	p := newPage(w)
	p.trace(t)
	return p.err
}

// trace writes the trace for people: who asks, the queries, how it ends, and the same after a fix.
func (p *page) trace(t *trace.Trace) {
	p.hang("", plain, t.Server.Text)
	p.resolvConf(t)
	for _, n := range t.Notes {
		p.hang("note  ", plain, n)
	}
	p.walk(t, t.Walk)
	next := commandName + " doctor"
	if i := slices.IndexFunc(t.Walk.Resolvers, func(r trace.Result) bool { return r.Code != "" }); i >= 0 {
		next = commandName + " explain " + t.Walk.Resolvers[i].Code
	}
	if f := t.Fix; f != nil {
		p.write("\n")
		p.hang("fix  ", plain, f.Summary)
		if f.Manifest != "" {
			p.block("     ", f.Manifest, 1<<30)
		}
		p.write("\n")
		p.hang("with the fix: ", plain, f.Walk.Name)
		p.walk(t, f.Walk)
	}
	p.write("\n")
	p.hang("next  ", plain, next)
}

// resolvConf writes the file as the pod has it.
func (p *page) resolvConf(t *trace.Trace) {
	who := "a pod in " + t.Client.Namespace
	if o := t.Client.Object; o != nil {
		who = o.String()
	}
	about := []string{}
	if t.Client.Policy != "" {
		about = append(about, t.Client.Policy)
	}
	if !t.Client.AsksCluster {
		about = append(about, "asks another server than the cluster's")
	}
	if len(about) > 0 {
		who += " (" + strings.Join(about, ", ") + ")"
	}
	c := t.ResolvConf
	p.hang("asked by          ", plain, who)
	servers := strings.Join(c.Nameservers, " ")
	if slices.Contains(c.Unknown, "nameservers") {
		servers = strings.TrimSpace(servers + " (those of the node)")
	}
	options := c.Options
	if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "ndots:") }) {
		options = append([]string{"ndots:" + strconv.Itoa(c.NDots)}, options...)
	}
	word := strings.Join(options, " ")
	if slices.Contains(c.Unknown, "options") {
		word += " (or those of the node)"
	}
	p.hang("pod resolv.conf   ", plain, "nameserver "+cmp.Or(servers, "none"))
	search := make([]string, len(c.Search))
	for i, s := range c.Search {
		search[i] = s
		if s != "." && s != trace.UnknownSearch {
			search[i] = strings.TrimSuffix(s, ".")
		}
	}
	p.hang("                  ", plain, "search "+cmp.Or(strings.Join(search, " "), "none"))
	p.hang("                  ", plain, "options "+word)
}

// walk writes the queries as a table and how the look-up ends.
func (p *page) walk(t *trace.Trace, w trace.Walk) {
	if len(w.Queries) > 0 {
		p.write("\n")
		p.queries(t, w)
	}
	p.write("\n")
	width := 0
	groups := w.Groups()
	for _, g := range groups {
		width = max(width, utf8.RuneCountInString(g.Names))
	}
	for _, g := range groups {
		s := plain
		if g.Verdict == trace.Fails {
			s = red
		}
		text := g.Text
		if g.Assumed != "" {
			text += "; assumed: " + g.Assumed
		}
		if g.Code != "" {
			text += " (" + g.Code + ")"
		}
		p.hang(fmt.Sprintf("%-*s   ", width, g.Names), s, text)
	}
	if parting := w.Parting(); parting != "" {
		p.hang("part ways   ", plain, parting)
	}
}

// The least widths of the columns of a table of queries, and the blanks between two columns.
const (
	leastName   = 24
	leastResult = 16
	columnGap   = 2
)

// queries writes the table of queries, with the aliases on the way to an answer below its name. Where a line has no room
// for all columns, who answered stands there as well. A name that is still too long is cut behind a label.
func (p *page) queries(t *trace.Trace, w trace.Walk) {
	type row struct {
		name       []string // and the aliases
		by, result string
	}
	rows := make([]row, len(w.Queries))
	names, bys, results := len("query"), len("answered by"), len("result")
	for i, q := range w.Queries {
		rows[i] = row{append([]string{queryName(q)}, aliasLines(q)...), finding.Printable(answeredBy(t, q)), finding.Printable(q.Text)}
		for j := range rows[i].name {
			rows[i].name[j] = finding.Printable(rows[i].name[j])
			names = max(names, utf8.RuneCountInString(rows[i].name[j]))
		}
		bys = max(bys, utf8.RuneCountInString(rows[i].by))
		results = max(results, utf8.RuneCountInString(rows[i].result))
	}
	// What is left for the others beside the numbers and the resolvers, each of which has a gap in front.
	room := p.width - len(strconv.Itoa(len(w.Queries))) - columnGap
	for _, r := range w.Resolvers {
		room -= columnGap + max(len(r.Resolver), len("leave"))
	}
	flat := names+bys+min(results, leastResult)+2*columnGap <= room
	resultRoom := room - names - bys - 2*columnGap
	if !flat {
		resultRoom = min(results, max(room-names-columnGap, leastResult))
		used := len("result")
		for _, r := range rows {
			for _, l := range wrap(r.result, resultRoom) {
				used = max(used, utf8.RuneCountInString(l))
			}
		}
		names = max(room-columnGap-used, leastName)
	}
	header := []any{"#", "query", "answered by", "result"}
	if !flat {
		header = []any{"#", "query, answered by", "result"}
	}
	for _, r := range w.Resolvers {
		header = append(header, r.Resolver)
	}
	var b bytes.Buffer
	table := newTable(&b)
	table.Header(header...)
	for i, q := range w.Queries {
		var lines []string
		for _, n := range rows[i].name {
			lines = append(lines, breakName(n, names)...)
		}
		cells := []any{strconv.Itoa(q.Number)}
		result := strings.Join(wrap(rows[i].result, resultRoom), "\n")
		if flat {
			cells = append(cells, strings.Join(lines, "\n"), rows[i].by, result)
		} else {
			for _, l := range wrap(rows[i].by, names-2) {
				lines = append(lines, "  "+l)
			}
			cells = append(cells, strings.Join(lines, "\n"), result)
		}
		for _, r := range w.Resolvers {
			cells = append(cells, map[string]string{"next": "↓", "take": "take", "stop": "stop", "leave": "leave"}[q.Actions[r.Resolver]])
		}
		if err := table.Append(cells...); err != nil {
			p.fail(err)
			return
		}
	}
	if err := table.Render(); err != nil {
		p.fail(err)
		return
	}
	for line := range strings.Lines(b.String()) {
		p.write(strings.TrimRight(line, " \n") + "\n")
	}
}

// fail keeps the first error.
func (p *page) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func queryName(q trace.Query) string {
	switch {
	case q.Name != "":
		return q.Name
	case q.Domain != "":
		return "(no valid name with " + q.Domain + ")"
	case q.Text == trace.NotKnown:
		return trace.UnknownSearch
	}
	return "(no valid name)"
}

// answeredBy says which part of which server answers a query.
func answeredBy(t *trace.Trace, q trace.Query) string {
	s := strings.TrimSpace(q.Block + " " + q.Plugin)
	switch {
	case q.Name == "":
		return ""
	case s == "" && !q.Known:
		return trace.NotKnown
	case s == "":
		return t.Server.Implementation
	}
	if len(q.Upstream) > 0 {
		s += " → " + strings.Join(q.Upstream, " ")
	}
	return s
}

// aliasLines are the aliases on the way to an answer, one a line.
func aliasLines(q trace.Query) []string {
	const shown = 4
	var list []string
	for i, a := range q.Aliases {
		if i == shown && len(q.Aliases) > shown+1 {
			return append(list, fmt.Sprintf("  → … %d more", len(q.Aliases)-shown))
		}
		list = append(list, "  → "+a)
	}
	return list
}

// breakName cuts a name behind labels into lines of at most width columns, where its labels allow it.
func breakName(name string, width int) []string {
	var lines []string
	line := ""
	for label := range strings.SplitAfterSeq(name, ".") {
		if strings.TrimSpace(line) != "" && utf8.RuneCountInString(line)+utf8.RuneCountInString(label) > width {
			lines = append(lines, line)
			line = "    "
		}
		line += label
	}
	return append(lines, line)
}
