package corefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds on input, which may come from anyone who can write a ConfigMap.
const (
	// MaxSize is the size in bytes of the largest source that is read: twice what a ConfigMap can hold.
	MaxSize = 2 << 20
	// MaxDepth is how deep braces may nest inside a directive. Plugins of CoreDNS read two levels.
	MaxDepth = 32
)

// Position is a place in a file, for people.
type Position struct {
	// File is the name that was given to Parse.
	File string
	// Line and Col count from 1; Col counts bytes.
	Line, Col int
}

// String returns file:line:col, without the file if that has no name.
func (p Position) String() string {
	if p.File == "" {
		return fmt.Sprintf("%d:%d", p.Line, p.Col)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Error is a place where a Corefile is not what the server accepts.
type Error struct {
	Position Position
	// Msg says what is wrong, without the position.
	Msg string
	// Via is the import that brought the faulty token into the view of Expand, nil if it stands in the file itself.
	Via *Import
	// Err is the error behind this one, such as that of Options.Import, or nil.
	Err error
}

// Error returns file:line:col: text, and after it the imports that lead to the place.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Position.String() + ": " + e.Msg)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	for via := e.Via; via != nil; via = via.Parent {
		b.WriteString(" (imported at " + via.At.Position().String() + ")")
	}
	return b.String()
}

// Unwrap returns the error behind this one.
func (e *Error) Unwrap() error { return e.Err }

// File is one source and what it says. It is not changed after Parse.
type File struct {
	// Name is what positions print.
	Name string
	// Src is the source, byte for byte.
	Src string
	// Tokens cover every byte of Src, in order.
	Tokens []Token
	// Blocks are the server blocks in order.
	Blocks []*Block
	// Snippets are the blocks with a key in parentheses, in order.
	Snippets []*Block
	// Imports are the imports outside of blocks, in order.
	Imports []*Directive
	// Body are the directives of a file that was read by ParseBody, in order.
	Body []*Directive

	// err is what Parse returned with the file.
	err error
	// path is where the file is for the server; empty for the main file. Tokens of one path are of one file.
	path string
	// lines are the offsets where lines start.
	lines []int
	// words are the words of Tokens.
	words []*Token
	// blocks and directives are all nodes, also those inside others, by the place of their first word.
	blocks     []*Block
	directives []*Directive
}

// Block is a server block or a snippet.
type Block struct {
	// Keys are the zones as written, one per key. The first key of a snippet is its name in parentheses.
	Keys []Token
	// KeyImports are imports that stand where a key is expected after a comma.
	KeyImports []*Directive
	// Open and Close are the braces; nil where the file has none. A file with one server block needs none, and the
	// server accepts a block without Close if the last word of the file is the closing brace of a directive.
	Open, Close *Token
	// Body are the directives in order, imports included (Expand replaces those).
	Body []*Directive
}

// Directive is a line of a block: a plugin with its arguments and its own block, and in there a property with its.
type Directive struct {
	// Name is the first word. It has no text where a brace stands in place of a name.
	Name Token
	// Args are the other words of the line.
	Args []Token
	// Open and Close are the braces of its own block, or nil.
	Open, Close *Token
	// Body are the lines of its own block.
	Body []*Directive
	// Tail are words that belong to the directive as caddyfile/parse.go counts, but that neither its line nor its
	// block holds, such as what follows the closing brace. No well-formed Corefile has any.
	Tail []Token
}

// Position returns the place of a byte offset of the source.
func (f *File) Position(offset int) Position {
	offset = min(max(offset, 0), len(f.Src))
	i, found := slices.BinarySearch(f.lines, offset)
	if !found {
		i--
	}
	return Position{File: f.Name, Line: i + 1, Col: offset - f.lines[i] + 1}
}

// Unclosed returns the quoted word (or the lone quotation mark) that swallows the rest of the file because nothing closes it. The server accepts it.
func (f *File) Unclosed() (Token, bool) {
	if n := len(f.Tokens); n > 0 && f.Tokens[n-1].Unclosed {
		return f.Tokens[n-1], true
	}
	return Token{}, false
}

// BlockAt returns the server block or snippet that contains the byte offset, or nil.
func (f *File) BlockAt(offset int) *Block {
	for _, list := range [][]*Block{f.Blocks, f.Snippets} {
		for _, b := range list {
			if r := b.Range(); r.Start <= offset && offset < r.End {
				return b
			}
		}
	}
	return nil
}

// File returns the file in which the block starts.
func (b *Block) File() *File { return b.first().File }

// Range returns the bytes from the first key to the closing brace, or to the last directive if there is none.
func (b *Block) Range() Range { return Range{b.first().Start, b.last().End} }

// Position returns where the block starts.
func (b *Block) Position() Position { return b.first().Position() }

// SnippetName returns the name of a snippet, without the parentheses.
func (b *Block) SnippetName() (string, bool) { return snippetName(b.Keys) }

// Named returns the directives of the block with that name, in order.
func (b *Block) Named(name string) []*Directive { return named(b.Body, name) }

// Origin returns the block as it is written, for a block of Expand whose first key is written as the first key of a
// block; nil otherwise. The origin of a block of Parse is the block.
func (b *Block) Origin() *Block {
	first := b.first()
	if first.File == nil {
		return nil
	}
	blocks := first.File.blocks
	i, found := slices.BinarySearchFunc(blocks, first.index, func(b *Block, index int32) int { return cmp.Compare(b.first().index, index) })
	if !found {
		return nil
	}
	return blocks[i]
}

// first returns the first word. There is one: a block without any is not kept.
func (b *Block) first() Token {
	switch {
	case len(b.KeyImports) > 0 && (len(b.Keys) == 0 || b.KeyImports[0].Name.Start < b.Keys[0].Start):
		return b.KeyImports[0].Name
	case len(b.Keys) > 0:
		return b.Keys[0]
	case b.Open != nil:
		return *b.Open
	case len(b.Body) > 0:
		return b.Body[0].Name
	}
	return Token{}
}

func (b *Block) last() Token {
	switch {
	case b.Close != nil:
		return *b.Close
	case len(b.Body) > 0:
		return b.Body[len(b.Body)-1].last()
	case b.Open != nil:
		return *b.Open
	}
	return b.head()
}

// head is the last word before the body.
func (b *Block) head() Token {
	var last Token
	if b.Open != nil {
		return *b.Open
	}
	if n := len(b.Keys); n > 0 {
		last = b.Keys[n-1]
	}
	if n := len(b.KeyImports); n > 0 && b.KeyImports[n-1].Name.Start > last.Start {
		last = b.KeyImports[n-1].last()
	}
	return last
}

// File returns the file in which the directive starts.
func (d *Directive) File() *File { return d.Name.File }

// Range returns the bytes from the name to the last word that belongs to the directive.
func (d *Directive) Range() Range { return Range{d.Name.Start, d.last().End} }

// Position returns where the directive starts.
func (d *Directive) Position() Position { return d.Name.Position() }

// Named returns the lines of the directive's own block that start with name, in order.
func (d *Directive) Named(name string) []*Directive { return named(d.Body, name) }

// Values returns the texts of the arguments.
func (d *Directive) Values() []string {
	values := make([]string, len(d.Args))
	for i, arg := range d.Args {
		values[i] = arg.Text
	}
	return values
}

// Origin returns the directive as it is written, for a directive of Expand; nil if its file could not be parsed that
// far. The origin of a directive of Parse is the directive.
func (d *Directive) Origin() *Directive {
	if d.Name.File == nil {
		return nil
	}
	list := d.Name.File.directives
	i, found := slices.BinarySearchFunc(list, d.Name.index, func(d *Directive, index int32) int { return cmp.Compare(d.Name.index, index) })
	if !found {
		return nil
	}
	return list[i]
}

// Walk calls visit for the directive and all lines inside it, outer before inner.
func (d *Directive) Walk(visit func(*Directive)) {
	visit(d)
	for _, line := range d.Body {
		line.Walk(visit)
	}
}

// last returns the last word that belongs to the directive.
func (d *Directive) last() Token {
	for {
		switch {
		case len(d.Tail) > 0:
			return d.Tail[len(d.Tail)-1]
		case d.Close != nil:
			return *d.Close
		case len(d.Body) > 0:
			d = d.Body[len(d.Body)-1]
			continue
		}
		return d.head()
	}
}

// head returns the last word before the directive's own block.
func (d *Directive) head() Token {
	switch {
	case d.Open != nil:
		return *d.Open
	case len(d.Args) > 0:
		return d.Args[len(d.Args)-1]
	}
	return d.Name
}

func named(body []*Directive, name string) []*Directive {
	var list []*Directive
	for _, d := range body {
		if d.Name.Text == name {
			list = append(list, d)
		}
	}
	return list
}

// snippetName is parser.isSnippet of caddyfile/parse.go.
func snippetName(keys []Token) (string, bool) {
	if len(keys) != 1 {
		return "", false
	}
	text := keys[0].Text
	if !strings.HasPrefix(text, "(") || !strings.HasSuffix(text, ")") {
		return "", false
	}
	return strings.TrimSuffix(text[1:], ")"), true
}
