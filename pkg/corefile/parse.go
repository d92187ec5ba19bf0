package corefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Parse reads a Corefile. The name is what positions print.
//
// The File is never nil and its tokens cover every byte of src. If the server would refuse the file, the error is an
// *Error with the place, and the File holds what could be read before it.
func Parse(name string, src []byte) (*File, error) {
	return parseFile(name, src, (*parser).file)
}

// ParseBody reads a file that is imported inside a server block and so consists of directives, such as the *.override
// files of AKS and k3s. They are in File.Body. It is otherwise as Parse.
func ParseBody(name string, src []byte) (*File, error) {
	return parseFile(name, src, (*parser).bodyFile)
}

func parseFile(name string, src []byte, parse func(*parser, *File) error) (*File, error) {
	f := newFile(name, src)
	if len(src) > MaxSize {
		return f, &Error{Position: f.Position(0), Msg: fmt.Sprintf("file has %d bytes, more than %d are not read", len(src), MaxSize)}
	}
	p := &parser{}
	p.push(f.words)
	f.err = parse(p, f)
	f.link()
	return f, f.err
}

// newFile returns a file with its tokens and without a tree.
func newFile(name string, src []byte) *File {
	f := &File{Name: name, Src: string(src), lines: []int{0}}
	if len(f.Src) > MaxSize {
		f.Tokens = []Token{{Kind: KindJunk, Text: f.Src, Range: Range{0, len(f.Src)}, Line: 1, File: f}}
		return f
	}
	for i := range len(f.Src) {
		if f.Src[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	f.Tokens = scan(f)
	for i := range f.Tokens {
		if f.Tokens[i].Kind == KindWord {
			f.words = append(f.words, &f.Tokens[i])
		}
	}
	return f
}

// link fills the indices that lead from words to nodes.
func (f *File) link() {
	add := func(d *Directive) {
		d.Walk(func(d *Directive) { f.directives = append(f.directives, d) })
	}
	f.blocks = slices.Concat(f.Blocks, f.Snippets)
	for _, b := range f.blocks {
		for _, d := range b.KeyImports {
			add(d)
		}
		for _, d := range b.Body {
			add(d)
		}
	}
	for _, d := range slices.Concat(f.Imports, f.Body) {
		add(d)
	}
	slices.SortFunc(f.blocks, func(a, b *Block) int { return cmp.Compare(a.first().index, b.first().index) })
	slices.SortFunc(f.directives, func(a, b *Directive) int { return cmp.Compare(a.Name.index, b.Name.index) })
}

// parser follows the parser of caddyfile/parse.go step by step, over a stack instead of a slice with a cursor, so that
// an import costs what it brings and not what is left of the file.
type parser struct {
	done []*Token // the words before the cursor; the last one is under it
	rest []*Token // the words behind the cursor, the next one last
	// atClose says that body ended at a closing brace of its own.
	atClose bool
	// snippets are the words of the snippets defined so far.
	snippets map[string][]*Token
	// imports is nil where imports stay in the tree and the environment is not filled in.
	imports *expansion
}

func (p *parser) push(words []*Token) {
	for _, w := range slices.Backward(words) {
		p.rest = append(p.rest, w)
	}
}

func (p *parser) next() bool {
	n := len(p.rest)
	if n == 0 {
		return false
	}
	p.done = append(p.done, p.rest[n-1])
	p.rest = p.rest[:n-1]
	return true
}

func (p *parser) back() {
	n := len(p.done)
	p.rest = append(p.rest, p.done[n-1])
	p.done = p.done[:n-1]
}

// cur is the word under the cursor. There is one whenever next returned true.
func (p *parser) cur() *Token { return p.done[len(p.done)-1] }

// nextArg is Dispenser.NextArg.
func (p *parser) nextArg() bool {
	return len(p.rest) > 0 && sameLine(p.cur(), p.rest[len(p.rest)-1]) && p.next()
}

// newLine is Dispenser.isNewLine. It is not the opposite of sameLine: a word of a snippet that is written further up
// counts as the same line here.
func (p *parser) newLine() bool {
	n := len(p.done)
	if n < 2 {
		return true
	}
	last, cur := p.done[n-2], p.done[n-1]
	return !sameFile(last.File, cur.File) || last.lastLine() < cur.Line
}

func sameFile(a, b *File) bool { return a == b || a.path == b.path }

func (p *parser) errorf(format string, args ...any) *Error {
	if len(p.done) == 0 {
		return &Error{Position: Position{Line: 1, Col: 1}, Msg: fmt.Sprintf(format, args...)}
	}
	return errorAt(p.cur(), format, args...)
}

func errorAt(t *Token, format string, args ...any) *Error {
	return &Error{Position: t.Position(), Msg: fmt.Sprintf(format, args...), Via: t.Via}
}

// with returns the token with another text.
func (t *Token) with(text string) *Token {
	if text == t.Text {
		return t
	}
	changed := *t
	changed.Text = text
	return &changed
}

// text returns the text of the word under the cursor with the environment filled in.
func (p *parser) text() (string, error) {
	if p.imports == nil {
		return p.cur().Text, nil
	}
	return p.imports.replace(p.cur())
}

// file is parser.parseAll.
func (p *parser) file(f *File) error {
	for p.next() {
		if p.imports == nil && p.cur().Text == "import" && p.newLine() {
			d, err := p.keepImport()
			f.Imports = append(f.Imports, d)
			if err != nil {
				return err
			}
			continue
		}
		b := &Block{}
		snippet, err := p.block(b)
		switch {
		case snippet:
			f.Snippets = append(f.Snippets, b)
		case len(b.Keys) > 0 || len(b.KeyImports) > 0 || p.imports == nil && (b.Open != nil || len(b.Body) > 0):
			// The server reads a block without keys and drops it.
			f.Blocks = append(f.Blocks, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bodyFile reads directives only.
func (p *parser) bodyFile(f *File) error {
	if err := p.body(&f.Body); err != nil {
		return err
	}
	if len(p.done) > 0 && p.atClose {
		return p.errorf("unexpected %q, no block is open", "}")
	}
	return nil
}

// block is parser.begin.
func (p *parser) block(b *Block) (snippet bool, err error) {
	eof, err := p.keys(b)
	if err != nil || eof {
		return false, err
	}
	if name, ok := snippetName(b.Keys); ok && len(b.KeyImports) == 0 {
		return true, p.snippet(b, name)
	}

	if p.cur().Text != "{" {
		p.back() // one server block needs no braces
		return false, p.body(&b.Body)
	}
	open := p.cur()
	b.Open = open
	if err := p.body(&b.Body); err != nil {
		return false, err
	}
	// The server is content with the closing brace of the last directive.
	if p.cur().Text != "}" {
		return false, p.errorf("unexpected end of file after %q, expecting %q to close the block of line %d", p.cur().Text, "}", open.Line)
	}
	if p.atClose {
		b.Close = p.cur()
	}
	return false, nil
}

// keys is parser.addresses. It ends with the cursor on the first word that is no key, if eof is false.
func (p *parser) keys(b *Block) (eof bool, err error) {
	another := false // a comma asks for one more key
	for {
		text, err := p.text()
		if err != nil {
			return false, err
		}
		switch {
		case text == "import" && p.newLine() && p.imports != nil:
			if err := p.splice(false); err != nil {
				return false, err
			}
			if !p.next() {
				if another {
					return true, p.errorf("unexpected end of file, expecting another key after the comma")
				}
				return true, nil
			}
			continue
		case text == "import" && p.newLine():
			d, err := p.keepImport()
			b.KeyImports = append(b.KeyImports, d)
			if err != nil {
				return false, err
			}
			if !p.next() {
				return true, nil
			}
			another = false // it may bring any number of keys
			continue
		case text == "{":
			if another {
				return false, p.errorf("unexpected %q, expecting another key after the comma", "{")
			}
			return false, nil
		case text != "":
			another = strings.HasSuffix(text, ",")
			b.Keys = append(b.Keys, keyToken(*p.cur(), text))
		}
		if !p.next() {
			if another {
				return true, p.errorf("unexpected end of file, expecting another key after the comma")
			}
			return true, nil
		}
		if !another && p.newLine() {
			return false, nil
		}
	}
}

// keyToken takes the comma off a key.
func keyToken(t Token, text string) Token {
	if strings.HasSuffix(t.Text, ",") {
		t.marks |= comma
		if strings.HasSuffix(t.Source(), ",") {
			t.End--
		}
	}
	t.Text = strings.TrimSuffix(text, ",")
	return t
}

// body is parser.directives: directives up to a closing brace, which is then under the cursor with atClose set, or up
// to the end of the file.
func (p *parser) body(body *[]*Directive) error {
	p.atClose = false
	for p.next() {
		if p.cur().Text == "}" {
			p.atClose = true
			return nil
		}
		if p.cur().Text == "import" {
			if p.imports != nil {
				if err := p.splice(true); err != nil {
					return err
				}
				continue
			}
			d, err := p.keepImport()
			*body = append(*body, d)
			if err != nil {
				return err
			}
			continue
		}
		words, err := p.directive()
		*body = append(*body, nest(words))
		if err != nil {
			return err
		}
	}
	return nil
}

// directive is parser.directive: it returns the words that belong to the directive under the cursor.
func (p *parser) directive() ([]*Token, error) {
	text, err := p.text()
	// The name goes into the tree with the environment filled in, but what stands in the file decides about lines.
	words := []*Token{p.cur().with(text)}
	if err != nil {
		return words, err
	}
	var open []*Token
	for p.next() {
		switch cur := p.cur(); {
		case cur.Text == "{":
			open = append(open, cur)
			if len(open) > MaxDepth {
				return words, p.errorf("braces nest more than %d deep", MaxDepth)
			}
		case len(open) == 0 && p.newLine():
			p.back()
			return words, nil
		case cur.Text == "}" && len(open) > 0:
			open = open[:len(open)-1]
		case cur.Text == "}":
			return words, p.errorf("unexpected %q, no block of %q is open; a closing brace stands on its own line", "}", text)
		case cur.Text == "import" && p.newLine():
			if p.imports != nil {
				if err := p.splice(true); err != nil {
					return words, err
				}
				continue
			}
			d, err := p.keepImport()
			words = append(words, &d.Name)
			for i := range d.Args {
				words = append(words, &d.Args[i])
			}
			if err != nil {
				return words, err
			}
			continue
		}
		text, err := p.text()
		if err != nil {
			return words, err
		}
		p.done[len(p.done)-1] = p.cur().with(text)
		words = append(words, p.cur())
	}
	if n := len(open); n > 0 {
		return words, p.errorf("unexpected end of file, the brace of %s is not closed", place(open[n-1]))
	}
	return words, nil
}

// place names a word's line, and its file where that is another one.
func place(t *Token) string {
	if t.Via != nil {
		return t.Position().String()
	}
	return fmt.Sprintf("line %d", t.Line)
}

// importArg is the syntax check of parser.doImport. It moves the cursor to the argument.
func (p *parser) importArg() error {
	if !p.nextArg() {
		return p.errorf("import without an argument, expecting a file, a glob or a snippet")
	}
	text, err := p.text()
	if err != nil {
		return err
	}
	if text == "" {
		return p.errorf("import of an empty name")
	}
	if p.nextArg() {
		return p.errorf("unexpected %q, import takes one argument only", p.cur().Text)
	}
	return nil
}

// keepImport reads an import without following it.
func (p *parser) keepImport() (*Directive, error) {
	d := &Directive{Name: *p.cur()}
	n := len(p.done)
	err := p.importArg()
	for _, arg := range p.done[n:] {
		d.Args = append(d.Args, *arg)
		d.Args[len(d.Args)-1].marks |= target
	}
	return d, err
}

// snippet is parser.snippetTokens, and the reading of the body, which the server leaves until it is imported.
func (p *parser) snippet(b *Block, name string) error {
	if p.cur().Text != "{" {
		return p.errorf("unexpected %q, expecting %q after the name of a snippet", p.cur().Text, "{")
	}
	open := p.cur()
	b.Open = open
	depth := 1
	start := len(p.done)
	for depth > 0 && p.next() {
		switch p.cur().Text {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
	words := slices.Clone(p.done[start:])
	if depth == 0 {
		b.Close = p.cur()
		words = words[:len(words)-1]
	}
	// An error in here counts where the snippet is used.
	inner := &parser{}
	inner.push(words)
	_ = inner.body(&b.Body)
	if depth != 0 {
		return p.errorf("unexpected end of file, expecting %q to close the snippet of line %d", "}", open.Line)
	}
	return p.define(name, words)
}

// define stores a snippet under the two rules that parser.begin has for it.
func (p *parser) define(name string, words []*Token) error {
	if _, found := p.snippets[name]; found {
		return p.errorf("snippet %q is defined a second time", name)
	}
	for i := 0; i+1 < len(words); i++ {
		lineStart := i == 0 || !sameFile(words[i-1].File, words[i].File) || words[i-1].Line != words[i].Line
		if words[i].Text != "import" || !lineStart {
			continue
		}
		imported := words[i+1].Text
		if p.imports != nil {
			var err error
			if imported, err = p.imports.replace(words[i+1]); err != nil {
				return err
			}
		}
		if imported == name {
			return errorAt(words[i], "snippet %q imports itself", name)
		}
	}
	if p.snippets == nil {
		p.snippets = map[string][]*Token{}
	}
	p.snippets[name] = words
	return nil
}

// nest arranges the words of one directive by lines and braces, lines as the plugins see them (Dispenser.NextArg).
func nest(words []*Token) *Directive {
	root := &Directive{Name: *words[0]}
	var open []*Directive // whose own block is being read, the innermost last
	line := root          // the line that the previous word belongs to; nil after an opening brace
	for i := 1; i < len(words); i++ {
		w := *words[i]
		same := sameLine(words[i-1], &w)
		opens, closes := w.Text == "{" && !w.is(target), w.Text == "}" && !w.is(target)
		switch {
		case root.Close != nil || len(root.Tail) > 0:
			root.Tail = append(root.Tail, w)
		case opens && len(open) < MaxDepth:
			if line == nil || line.Open != nil {
				// A brace where a name should be.
				line = &Directive{Name: Token{File: w.File, Range: Range{w.Start, w.Start}, Line: w.Line, Via: w.Via, index: w.index}}
				top := open[len(open)-1]
				top.Body = append(top.Body, line)
			}
			line.Open = words[i]
			open = append(open, line)
			line = nil
		case len(open) == 0 && same:
			root.Args = append(root.Args, w)
		case len(open) == 0:
			root.Tail = append(root.Tail, w)
		case closes:
			line = open[len(open)-1]
			open = open[:len(open)-1]
			line.Close = words[i]
		case line == nil || !same:
			line = &Directive{Name: w}
			top := open[len(open)-1]
			top.Body = append(top.Body, line)
		case line.Close != nil:
			line.Tail = append(line.Tail, w)
		default:
			line.Args = append(line.Args, w)
		}
	}
	return root
}
