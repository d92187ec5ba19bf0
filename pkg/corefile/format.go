package corefile

import "strings"

// Format returns the file in canonical layout: four spaces per open brace, one space between words, no more than one
// blank line in a row and none next to a brace, lines that end in a line feed, no byte order mark. Lines are neither joined
// nor split, words keep their spelling and comments their place, so the server reads the same. Formatting twice is the
// same as formatting once.
func Format(f *File) []byte {
	if len(f.Src) > MaxSize {
		return []byte(f.Src)
	}
	l := layout{unit: "    ", eol: "\n"}
	out := l.print(f.Tokens)
	if strings.HasPrefix(out, bom) {
		out = bom + out // the file starts with a word that starts with a mark, and the first mark is dropped
	}
	return []byte(out)
}

// layout prints tokens.
type layout struct {
	unit   string // one level of indentation
	prefix string // in front of every line that is not blank
	eol    string
}

// print returns lines that each end in eol; nothing if there is neither word nor comment.
func (l layout) print(tokens []Token) string {
	var b strings.Builder
	depth := 0
	breaks := 0          // ends of lines since the last printed token
	afterOpen := false   // an opening brace ends the line above
	started := false     // something is printed
	lastWasWord := false // the last printed token is a word, to which a glued comment sticks
	for _, t := range tokens {
		if t.Kind == KindSpace {
			breaks += t.breaks()
			continue
		}
		if t.Kind != KindWord && t.Kind != KindComment {
			continue
		}
		closing := t.Kind == KindWord && t.Text == "}"
		if closing && depth > 0 {
			depth--
		}
		switch {
		case started && breaks == 0:
			if !t.is(glued) || !lastWasWord {
				b.WriteByte(' ')
			}
		default:
			if started {
				b.WriteString(l.eol)
				if breaks > 1 && !afterOpen && !closing {
					b.WriteString(l.eol)
				}
			}
			b.WriteString(l.prefix)
			b.WriteString(strings.Repeat(l.unit, min(depth, MaxDepth)))
			afterOpen = false
		}
		b.WriteString(t.canonical())
		started, breaks = true, 0
		lastWasWord = t.Kind == KindWord
		if lastWasWord {
			afterOpen = t.Text == "{"
			if afterOpen {
				depth++
			}
		}
	}
	if started {
		b.WriteString(l.eol)
	}
	return b.String()
}

// canonical returns the spelling of a word or comment without carriage returns that the server skips anyway, and with
// the quotation mark that an unclosed word lacks.
func (t Token) canonical() string {
	source := t.Source()
	switch {
	case t.Kind == KindComment && !t.is(glued):
		return strings.TrimSpace(source)
	case t.Kind == KindComment:
		return source
	case t.Unclosed:
		if pendingEscape(source[1:]) {
			source = source[:len(source)-1]
		}
		return source + `"`
	case strings.Contains(source, "\r") && !strings.HasPrefix(source, `"`):
		return t.Text
	}
	return source
}

// pendingEscape reports whether a quoted text ends in a backslash that escapes what would follow.
func pendingEscape(s string) bool {
	pending := false
	for i := range len(s) {
		pending = !pending && s[i] == '\\'
	}
	return pending
}
