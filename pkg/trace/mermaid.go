package trace

import (
	"fmt"
	"io"
	"strings"
)

// Mermaid writes the walk as a sequence diagram in the language of https://mermaid.js.org: the queries of each resolver
// with their answers, a note at the end of each look-up.
func Mermaid(w io.Writer, t *Trace) error {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	for i, r := range t.Walk.Resolvers {
		fmt.Fprintf(&b, "    participant R%d as %s\n", i, mermaidText(display(r.Resolver)))
	}
	fmt.Fprintf(&b, "    participant S as %s\n", mermaidText(strings.TrimSpace(t.Server.Implementation+" "+t.Server.Version)))
	types := t.Type
	if types == "" {
		types = "A AAAA"
	}
	for i, r := range t.Walk.Resolvers {
		for _, q := range t.Walk.Queries {
			action := q.Actions[r.Resolver]
			if action == "" {
				continue
			}
			name := q.Name
			if name == "" {
				name = UnknownSearch
			}
			fmt.Fprintf(&b, "    R%d->>S: %d %s %s\n", i, q.Number, mermaidText(name), types)
			by := strings.TrimSpace(q.Block + " " + q.Plugin)
			if by != "" {
				by = " (" + by + ")"
			}
			fmt.Fprintf(&b, "    S-->>R%d: %s → %s\n", i, mermaidText(q.Text+by), action)
		}
		fmt.Fprintf(&b, "    Note over R%d: %s\n", i, mermaidText(r.Text))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the diagram: %w", err)
	}
	return nil
}

// mermaidText writes every character that has a meaning in the language, or none on a screen, as the entity that the
// language has for it.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '.' || r == '-' || r == '_' || r == ' ' || r == ',' || r == '(' || r == ')' || r == '/',
			'0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
