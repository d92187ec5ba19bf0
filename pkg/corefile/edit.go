package corefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Edit replaces the bytes from Start to End of a source by New. Start equal to End inserts.
type Edit struct {
	Start, End int
	New        string
}

// Apply returns src with the edits made; their order does not matter. It refuses edits outside of src, edits that
// overlap, and two insertions at one place, whose order would be a guess.
func Apply(src []byte, edits []Edit) ([]byte, error) {
	sorted := slices.Clone(edits)
	slices.SortFunc(sorted, func(a, b Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var out []byte
	pos := 0
	for i, e := range sorted {
		switch {
		case e.Start < 0 || e.End < e.Start || e.End > len(src):
			return nil, fmt.Errorf("edit of bytes %d to %d of a source of %d bytes", e.Start, e.End, len(src))
		case e.Start < pos:
			return nil, fmt.Errorf("edits of bytes %d to %d and %d to %d overlap", sorted[i-1].Start, sorted[i-1].End, e.Start, e.End)
		case i > 0 && e.Start == e.End && sorted[i-1].Start == e.Start && sorted[i-1].End == e.End:
			return nil, fmt.Errorf("two insertions at byte %d", e.Start)
		}
		out = append(append(out, src[pos:e.Start]...), e.New...)
		pos = e.End
	}
	return append(out, src[pos:]...), nil
}

// Errors of the typed edits.
var (
	errNoOrigin = errors.New("this is not written as a node of a file of its own, so it cannot be edited")
	errUnclosed = errors.New("the file ends inside a quoted word, so nothing can be added to it")
)

// Delete returns the edit that removes the directive with its comments. For a directive of Expand it edits the place
// where the directive is written, in Origin().File(); so do the other edits.
func (d *Directive) Delete() (Edit, error) {
	o := d.Origin()
	if o == nil {
		return Edit{}, errNoOrigin
	}
	return remove(o.Name, o.last()), nil
}

// Delete returns the edit that removes the block or snippet with its comments.
func (b *Block) Delete() (Edit, error) {
	o := b.Origin()
	if o == nil {
		return Edit{}, errNoOrigin
	}
	return remove(o.first(), o.last()), nil
}

func remove(first, last Token) Edit {
	r := extent(first, last)
	e := Edit{Start: r.Start, End: r.End}
	src := first.File.Src
	if e.Start > 0 && e.End < len(src) && !isBlank(src[e.Start-1]) && !isBlank(src[e.End]) {
		e.New = " " // what stands on both sides must not become one word
	}
	if e.Start == 0 && strings.HasPrefix(src[e.End:], bom) {
		e.New = " " // at the start of a file a byte order mark is no part of a word
	}
	return e
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Replace returns the edit that puts the directives of text in place of the directive. Its comments stay. The text
// is laid out as its new surroundings are.
func (d *Directive) Replace(text string) (Edit, error) {
	o := d.Origin()
	if o == nil {
		return Edit{}, errNoOrigin
	}
	f := o.File()
	l := f.layoutAt(o.Name)
	lines, err := l.body(text)
	if err != nil {
		return Edit{}, err
	}
	last := o.last()
	lines = strings.TrimSuffix(strings.TrimPrefix(lines, l.prefix), l.eol)
	seam, err := last.seam(lines)
	return Edit{Start: o.Name.Start, End: last.End, New: lines + seam}, err
}

// Insert returns the edit that puts the directives of text in front of the i-th directive of the block and its comments, or behind
// the last directive if i is len(b.Body). The text is laid out as its neighbours are.
func (b *Block) Insert(i int, text string) (Edit, error) {
	o := b.Origin()
	if o == nil {
		return Edit{}, errNoOrigin
	}
	return insert(hole{start: o.first(), head: o.head(), body: o.Body, close: o.Close, braced: o.Open != nil}, i, text)
}

// Insert returns the edit that puts the lines of text in front of the i-th line of the directive's own block, or behind the last
// line if i is len(d.Body). If the directive has no block it gets one.
func (d *Directive) Insert(i int, text string) (Edit, error) {
	o := d.Origin()
	if o == nil {
		return Edit{}, errNoOrigin
	}
	if o.Open != nil && o.Close == nil {
		return Edit{}, fmt.Errorf("inserting a line: %s: the brace is not closed", o.Open.Position())
	}
	if o.Open != nil {
		return insert(hole{start: o.Name, head: o.head(), body: o.Body, close: o.Close, braced: true}, i, text)
	}
	if i != 0 || len(o.Tail) > 0 {
		return Edit{}, fmt.Errorf("inserting line %d of a directive without a block", i)
	}
	l := o.File().layoutAt(o.Name)
	inner := l
	inner.prefix += l.unit
	lines, err := inner.body(text)
	if err != nil {
		return Edit{}, err
	}
	return o.head().follow(" {" + l.eol + lines + l.prefix + "}")
}

// hole is what insert needs to know of a block or a directive with a block.
type hole struct {
	start, head Token // the first word and the last one before the body
	body        []*Directive
	close       *Token
	braced      bool
}

func insert(h hole, i int, text string) (Edit, error) {
	f := h.start.File
	if i < 0 || i > len(h.body) {
		return Edit{}, fmt.Errorf("inserting line %d of a block of %d", i, len(h.body))
	}
	if _, unclosed := f.Unclosed(); unclosed {
		return Edit{}, errUnclosed
	}
	l := f.layoutAt(h.start)
	if h.braced {
		l.prefix += l.unit
	}
	for _, j := range []int{i, i - 1} {
		if j >= 0 && j < len(h.body) && startsLine(f.Tokens, h.body[j].Name.index) {
			l.prefix = f.layoutAt(h.body[j].Name).prefix
			break
		}
	}
	lines, err := l.body(text)
	if err != nil {
		return Edit{}, err
	}

	var next Token // the word in front of which the text goes
	switch {
	case i < len(h.body):
		next = h.body[i].Name
	case h.close != nil:
		next = *h.close
	default:
		// Nothing closes the block: behind the last directive, comments included.
		last := h.head
		if len(h.body) > 0 {
			last = h.body[len(h.body)-1].last()
		}
		at := last.lineEnd()
		if h.braced {
			// The server took the brace of the last directive for that of the block; it no longer is the last word.
			lines += f.layoutAt(h.start).prefix + "}" + l.eol
		}
		if at > 0 && f.Src[at-1] != '\n' {
			lines = l.eol + lines
		}
		return Edit{Start: at, End: at, New: lines}, nil
	}
	if startsLine(f.Tokens, next.index) {
		at := next
		if lead := next.lead(); len(lead) > 0 && i < len(h.body) {
			at = lead[0] // those of a closing brace belong to the body
		}
		start := f.lineStart(at.Start)
		return Edit{Start: start, End: start, New: lines}, nil
	}
	tail := l.prefix
	if i == len(h.body) {
		tail = f.layoutAt(h.start).prefix
	}
	return Edit{Start: next.Start, End: next.Start, New: l.eol + lines + tail}, nil
}

// AppendBlock returns the edit that adds the server blocks or snippets of text at the end of the file, after a blank line.
func (f *File) AppendBlock(text string) (Edit, error) {
	l := layout{unit: f.unit(), eol: f.eol(len(f.Src))}
	if f.err != nil {
		return Edit{}, fmt.Errorf("appending a block: %w", f.err)
	}
	if _, unclosed := f.Unclosed(); unclosed {
		return Edit{}, errUnclosed
	}
	for _, b := range f.Blocks {
		if b.Close == nil {
			return Edit{}, fmt.Errorf("appending a block: %s: nothing closes this block, so what follows would belong to it", b.Position())
		}
	}
	if len(f.Body) > 0 {
		return Edit{}, errors.New("appending a block to a file of directives")
	}
	added, err := Parse("", []byte(text))
	if err != nil {
		return Edit{}, fmt.Errorf("reading the text to insert: %w", err)
	}
	if err := complete(added); err != nil {
		return Edit{}, err
	}
	for _, b := range added.Blocks {
		if b.Close == nil {
			return Edit{}, errors.New("the block to insert has no braces")
		}
	}
	lines := l.print(added.Tokens)
	end := len(f.Src)
	switch {
	case strings.Trim(f.Src, " \t\r\n"+bom) == "":
	case !strings.HasSuffix(f.Src, "\n"):
		lines = l.eol + l.eol + lines
	case !strings.HasSuffix(strings.ReplaceAll(f.Src[max(0, end-4):], "\r", ""), "\n\n"):
		lines = l.eol + lines
	}
	return Edit{Start: end, End: end, New: lines}, nil
}

// complete refuses a text that cannot stand in front of something else.
func complete(added *File) error {
	if _, unclosed := added.Unclosed(); unclosed {
		return errors.New("the text to insert ends inside a quoted word")
	}
	if len(added.words) == 0 {
		return errors.New("the text to insert is empty")
	}
	return nil
}

// Replace returns the edit that makes the word read as value. For a word of Expand it replaces what is written,
// references to the environment included.
func (t Token) Replace(value string) (Edit, error) {
	if t.File == nil || t.Kind != KindWord {
		return Edit{}, errNoOrigin
	}
	if value == "{" || value == "}" {
		return Edit{}, fmt.Errorf("replacing a word by %q, which is a brace even in quotation marks", value)
	}
	if t.is(comma) {
		value += ","
		t.End = t.File.Tokens[t.index].End
	}
	spelled, err := Quote(value)
	if err != nil {
		return Edit{}, err
	}
	seam, err := t.seam(spelled)
	return Edit{Start: t.Start, End: t.End, New: spelled + seam}, err
}

// AppendArgs returns the edit that adds arguments to the directive.
func (d *Directive) AppendArgs(values ...string) (Edit, error) {
	o := d.Origin()
	if o == nil {
		return Edit{}, errNoOrigin
	}
	var b strings.Builder
	for _, value := range values {
		if value == "{" || value == "}" {
			return Edit{}, fmt.Errorf("adding the argument %q, which is a brace even in quotation marks", value)
		}
		spelled, err := Quote(value)
		if err != nil {
			return Edit{}, err
		}
		b.WriteString(" " + spelled)
	}
	head := o.Name
	if n := len(o.Args); n > 0 {
		head = o.Args[n-1]
	}
	return head.follow(b.String())
}

// follow returns the edit that puts text, which starts with a blank, behind the word on its line.
func (t Token) follow(text string) (Edit, error) {
	if t.Unclosed {
		return Edit{}, errUnclosed
	}
	at := t.End
	next := t.adhesive()
	switch {
	case next == nil:
	case next.is(glued):
		at = next.End // such a comment ends at the blank
	default:
		text += " "
	}
	return Edit{Start: at, End: at, New: text}, nil
}

// seam returns what has to stand between text, which replaces something that ends with the word t, and what follows t,
// so that the two stay apart.
func (t Token) seam(text string) (string, error) {
	tokens := newFile("", []byte(text)).Tokens
	last := tokens[len(tokens)-1]
	next := t.adhesive()
	if last.Kind == KindComment {
		if t.lineHolds(t.index + 1) {
			return "", errors.New("the text ends in a comment, which would take in the rest of the line")
		}
		return "", nil
	}
	switch {
	case next == nil:
		return "", nil
	case !next.is(glued):
		return " ", nil
	case last.Quoted() && t.lineHolds(next.index+1):
		return "", errors.New("a comment sticks to the word and would take in the rest of the line behind quotation marks")
	}
	return "", nil
}

// lineHolds reports whether a word or comment stands on the line at or behind the token with that index.
func (t Token) lineHolds(index int32) bool {
	for _, next := range t.File.Tokens[index:] {
		if next.Kind != KindSpace {
			return true
		}
		if next.breaks() > 0 {
			return false
		}
	}
	return false
}

// body reads directives and prints them.
func (l layout) body(text string) (string, error) {
	added, err := ParseBody("", []byte(text))
	if err != nil {
		return "", fmt.Errorf("reading the text to insert: %w", err)
	}
	if err := complete(added); err != nil {
		return "", err
	}
	return l.print(added.Tokens), nil
}

// layoutAt returns the layout of the line that the token starts on.
func (f *File) layoutAt(t Token) layout {
	start := f.lineStart(t.Start)
	line := f.Src[start:]
	return layout{
		unit:   f.unit(),
		prefix: line[:len(line)-len(strings.TrimLeft(line, " \t"))],
		eol:    f.eol(t.Start),
	}
}

// eol returns how the line in front of the offset ends, or the first line if there is none in front.
func (f *File) eol(offset int) string {
	i := strings.LastIndexByte(f.Src[:offset], '\n')
	if i < 0 {
		i = strings.IndexByte(f.Src, '\n')
	}
	if i > 0 && f.Src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// unit returns what the first indented directive is indented by.
func (f *File) unit() string {
	indent := func(t Token) string {
		line := f.Src[f.lineStart(t.Start):t.Start]
		return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	}
	deeper := func(outer Token, body []*Directive) string {
		for _, d := range body {
			if in, out := indent(d.Name), indent(outer); startsLine(f.Tokens, d.Name.index) && len(in) > len(out) && strings.HasPrefix(in, out) {
				return in[len(out):]
			}
		}
		return ""
	}
	for _, b := range slices.Concat(f.Blocks, f.Snippets) {
		if unit := deeper(b.first(), b.Body); unit != "" {
			return unit
		}
	}
	for _, d := range f.Body {
		if unit := deeper(d.Name, d.Body); unit != "" {
			return unit
		}
	}
	return "    "
}
