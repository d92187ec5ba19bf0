package rehearse

import (
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
)

// printedName is what CoreDNS takes for the name of the file; its messages begin with it.
const printedName = "rehearsed-corefile"

// word is a word of the printed Corefile and the token that it comes from.
type word struct {
	text string
	at   corefile.Token
}

// line is a directive or a property: its words and the lines of its block.
type line struct {
	words []word
	body  []*line
	// open tells that there is a block, be it empty.
	open bool
	// end is the closing brace.
	end corefile.Token
}

func (l *line) name() string { return l.words[0].text }

func (l *line) at() corefile.Token { return l.words[0].at }

// args are the words behind the name.
func (l *line) args() []word { return l.words[1:] }

// newLine copies a directive. What a printed Corefile could not hold with the same meaning is refused.
func newLine(d *corefile.Directive) (*line, error) {
	if d.Name.Text == "" || d.Name.Text == "import" || len(d.Tail) > 0 {
		return nil, unsupported(d.Name, "the judge does not read a line of this form")
	}
	l := &line{words: []word{{d.Name.Text, d.Name}}, open: d.Open != nil, end: d.Name}
	for _, a := range d.Args {
		l.words = append(l.words, word{a.Text, a})
	}
	if d.Close != nil {
		l.end = *d.Close
	}
	for _, sub := range d.Body {
		s, err := newLine(sub)
		if err != nil {
			return nil, err
		}
		l.body = append(l.body, s)
	}
	return l, nil
}

// printer writes a Corefile and remembers for each of its lines which words of the user's stand there.
type printer struct {
	b     strings.Builder
	lines [][]word // by line, from 0
}

// put writes the words of one line. A word with line breaks goes on below; the words behind it belong to the same
// line, as they do in the user's text (dispenser.go, isNewLine).
func (p *printer) put(words []word) error {
	for i, w := range words {
		if (strings.Contains(w.text, "{$") || strings.Contains(w.text, "{%")) && strings.Contains(w.text, "}") {
			// caddy would look into the environment of this process.
			return unsupported(w.at, "a reference to the environment is left in %s", quoted(w.text))
		}
		q, err := corefile.Quote(w.text)
		if err != nil {
			return unsupported(w.at, "the judge cannot spell a word: %v", err)
		}
		if i > 0 {
			p.b.WriteByte(' ')
		}
		p.b.WriteString(q)
		p.note(w)
		for range strings.Count(q, "\n") {
			p.lines = append(p.lines, nil)
			p.note(w)
		}
		if p.b.Len() > maxPrinted {
			return unsupported(w.at, "the Corefile is longer than %d bytes", maxPrinted)
		}
	}
	return nil
}

func (p *printer) note(w word) {
	if len(p.lines) == 0 {
		p.lines = append(p.lines, nil)
	}
	last := len(p.lines) - 1
	p.lines[last] = append(p.lines[last], w)
}

func (p *printer) newline() {
	p.b.WriteByte('\n')
	p.lines = append(p.lines, nil)
}

func (p *printer) line(l *line) error {
	if err := p.put(l.words); err != nil {
		return err
	}
	if !l.open {
		p.newline()
		return nil
	}
	p.b.WriteString(" {")
	p.newline()
	for _, sub := range l.body {
		if err := p.line(sub); err != nil {
			return err
		}
	}
	p.note(word{"}", l.end})
	p.b.WriteByte('}')
	p.newline()
	return nil
}

// block writes a server block, with the directive that marks it in front.
func (p *printer) block(keys []word, body []*line) error {
	for _, k := range keys {
		if k.text == "import" || strings.HasSuffix(k.text, ",") || strings.HasPrefix(k.text, "(") && strings.HasSuffix(k.text, ")") {
			return unsupported(k.at, "the judge does not read %s as a zone", quoted(k.text))
		}
	}
	if err := p.put(keys); err != nil {
		return err
	}
	p.b.WriteString(" {")
	p.newline()
	p.note(word{markDirective, keys[0].at})
	p.b.WriteString(markDirective)
	p.newline()
	for _, l := range body {
		if err := p.line(l); err != nil {
			return err
		}
	}
	p.b.WriteByte('}')
	p.newline()
	return nil
}

// at returns the place of the user's that a message about a printed line is about: the word that the message quotes at
// its end, or else the first word of the line.
func (p *printer) at(printed int, msg string) (word, bool) {
	if printed < 1 || printed > len(p.lines) || len(p.lines[printed-1]) == 0 {
		return word{}, false
	}
	words := p.lines[printed-1]
	i := slices.IndexFunc(words, func(w word) bool {
		return strings.HasSuffix(msg, "'"+w.text+"'") || strings.HasSuffix(msg, `"`+w.text+`"`)
	})
	return words[max(i, 0)], true
}

// quoted shows a word in a message, shortened where it is long.
func quoted(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return `"` + s + `"`
}

// words returns what stands on a printed line.
func (p *printer) words(printed int) []word {
	if printed < 1 || printed > len(p.lines) {
		return nil
	}
	return p.lines[printed-1]
}
