package corefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Limits of Expand where Options leave them at zero.
const (
	// DefaultMaxImports is the number of snippets that caddy imports at most (parse.go, maxSnippetExpansions).
	DefaultMaxImports = 10000
	// DefaultMaxTokens bounds the words that imports bring in.
	DefaultMaxTokens = 1 << 18
	// maxReferences bounds the references in one word, maxGrown the bytes that imports bring in altogether and the same
	// for variables.
	maxReferences = 100
	maxGrown      = 8 * MaxSize
)

// ErrNotRead is what Options.Import returns, possibly wrapped, for files whose content is not known, for instance
// because nobody may read the ConfigMap that holds them. Expand lists the import and goes on without it.
var ErrNotRead = errors.New("content is not known")

// Source is a file that an import brings.
type Source struct {
	// Name is what positions in it print.
	Name string
	// Path is where the file is for the server; imports in it are relative to its directory. Two sources with one Path
	// are one file. If empty it is Name.
	Path string
	// Data is the content.
	Data []byte
}

// Options say what a Corefile finds around it.
type Options struct {
	// Path is where the file is for the server, such as /etc/coredns/Corefile. Relative imports start in its directory.
	Path string
	// Import returns the files that match a pattern, in the order of their paths. The pattern is a path of the server's
	// file system, with at most one * and one ?, joined with the directory of the importing file and cleaned. If Import is nil,
	// there are no files.
	Import func(pattern string) ([]Source, error)
	// Env returns the value of an environment variable of the server and whether it is set. If nil, none is set.
	Env func(name string) (value string, ok bool)
	// MaxImports and MaxTokens bound how many imports are followed and how many words they bring in. Zero means
	// DefaultMaxImports and DefaultMaxTokens.
	MaxImports, MaxTokens int
}

// Import is one use of an import directive.
type Import struct {
	// At is the word import.
	At Token
	// Target is the name of the snippet or the path of the file.
	Target string
	// Snippet tells the two apart.
	Snippet bool
	// Parent is the import that brought At, or nil.
	Parent *Import
}

// Variable is a reference to an environment variable.
type Variable struct {
	Name string
	// Token is the word that holds the reference.
	Token Token
}

// Expanded is what the server reads of a Corefile and of what that imports.
type Expanded struct {
	// Blocks are the server blocks in order. Snippets and imports are gone, their content is in place.
	Blocks []*Block
	// Unset are the references to variables without a value, in order, each place once. The server reads them as
	// the empty string.
	Unset []Variable
	// Empty are the import words whose glob matches no file. The server logs that and goes on.
	Empty []Token
	// Unread are the import words that Options.Import answered with ErrNotRead.
	Unread []Token
	// Files are the file itself and the imported ones, in the order of their first use.
	Files []*File
}

// Expand follows the imports of a file and fills in the environment, as the server does when it starts
// (caddyfile/parse.go). If the server would refuse the result, the error is an *Error with the place; the Expanded is
// never nil and then holds what could be read before it.
func Expand(f *File, opts Options) (*Expanded, error) {
	x := &expansion{
		opts:     opts,
		view:     &Expanded{Files: []*File{f}},
		unset:    map[unsetKey]bool{},
		patterns: map[string][]Source{},
		files:    map[fileKey]*File{},
	}
	if len(f.Src) > MaxSize {
		return x.view, &Error{Position: f.Position(0), Msg: fmt.Sprintf("file has %d bytes, more than %d are not read", len(f.Src), MaxSize)}
	}
	if x.opts.MaxImports == 0 {
		x.opts.MaxImports = DefaultMaxImports
	}
	if x.opts.MaxTokens == 0 {
		x.opts.MaxTokens = DefaultMaxTokens
	}
	p := &parser{imports: x}
	p.push(f.words)
	var out File
	err := p.file(&out)
	x.view.Blocks = out.Blocks
	return x.view, err
}

// expansion is what one run of Expand remembers.
type expansion struct {
	opts     Options
	view     *Expanded
	imports  int // followed so far
	tokens   int // words that imports brought in so far
	brought  int // bytes of those words
	grown    int // bytes that variables brought in so far
	unset    map[unsetKey]bool
	patterns map[string][]Source
	files    map[fileKey]*File
}

type unsetKey struct {
	file  *File
	start int
	name  string
}

// fileKey tells apart a file that is imported inside and outside of a block, because it parses differently.
type fileKey struct {
	path string
	body bool
}

// splice is parser.doImport: the import under the cursor and its argument give way to what they bring. The cursor is
// then in front of that. body says whether the import stands inside a block.
func (p *parser) splice(body bool) error {
	at := *p.cur()
	if err := p.importArg(); err != nil {
		return err
	}
	pattern, err := p.text()
	if err != nil {
		return err
	}
	x := p.imports
	x.imports++
	if x.imports > x.opts.MaxImports {
		return errorAt(&at, "more than %d imports", x.opts.MaxImports)
	}

	var words []*Token
	if snippet, found := p.snippets[pattern]; found {
		words, err = x.bring(at, pattern, true, snippet)
	} else {
		words, err = x.importFiles(at, pattern, body)
	}
	if err != nil {
		return err
	}
	p.done = p.done[:len(p.done)-2]
	p.push(words)
	return nil
}

// bring marks words as the content of an import.
func (x *expansion) bring(at Token, target string, snippet bool, words []*Token) ([]*Token, error) {
	for via := at.Via; via != nil; via = via.Parent {
		if via.Target == target && via.Snippet == snippet {
			return nil, errorAt(&at, "%q imports itself", target)
		}
	}
	x.tokens += len(words)
	if x.tokens > x.opts.MaxTokens {
		return nil, errorAt(&at, "imports bring in more than %d words", x.opts.MaxTokens)
	}
	for i := range words {
		x.brought += len(words[i].Text)
	}
	if x.brought > maxGrown {
		return nil, errorAt(&at, "imports bring in more than %d bytes", maxGrown)
	}
	via := &Import{At: at, Target: target, Snippet: snippet, Parent: at.Via}
	copies := make([]Token, len(words))
	out := make([]*Token, len(words))
	for i, w := range words {
		copies[i] = *w
		copies[i].Via = via
		out[i] = &copies[i]
	}
	return out, nil
}

// importFiles returns the words of the files that match a pattern.
func (x *expansion) importFiles(at Token, pattern string, body bool) ([]*Token, error) {
	full := pattern
	if !path.IsAbs(full) {
		from := at.File.path
		if from == "" {
			from = x.opts.Path
		}
		full = path.Join(path.Dir(from), pattern)
	}
	if strings.Count(full, "*") > 1 || strings.Count(full, "?") > 1 || strings.Contains(full, "[") && strings.Contains(full, "]") {
		return nil, errorAt(&at, "import of %q: only one * and one ? are allowed, and no [ ]", pattern)
	}
	sources, found := x.patterns[full]
	if !found && x.opts.Import != nil {
		var err error
		sources, err = x.opts.Import(full)
		if errors.Is(err, ErrNotRead) {
			x.view.Unread = append(x.view.Unread, at)
			return nil, nil
		}
		if err != nil {
			e := errorAt(&at, "importing %q", pattern)
			e.Err = err
			return nil, e
		}
		x.patterns[full] = sources
	}
	if len(sources) == 0 {
		if !strings.ContainsAny(full, "*?[]") {
			return nil, errorAt(&at, "file to import not found: %s", pattern)
		}
		x.view.Empty = append(x.view.Empty, at)
		return nil, nil
	}
	var all []*Token
	for _, source := range sources {
		f, err := x.file(source, body)
		if err != nil {
			e := errorAt(&at, "importing %q", pattern)
			e.Err = err
			return nil, e
		}
		words, err := x.bring(at, f.path, false, f.words)
		if err != nil {
			return nil, err
		}
		all = append(all, words...)
	}
	return all, nil
}

// file reads an imported source once.
func (x *expansion) file(source Source, body bool) (*File, error) {
	where := cmp.Or(source.Path, source.Name, "import")
	key := fileKey{where, body}
	if f := x.files[key]; f != nil {
		return f, nil
	}
	if len(source.Data) > MaxSize {
		return nil, fmt.Errorf("%s has %d bytes, more than %d are not read", source.Name, len(source.Data), MaxSize)
	}
	// What is wrong with it comes out where it is imported; the tree only serves to find the origin of a node.
	parse := Parse
	if body {
		parse = ParseBody
	}
	f, _ := parse(source.Name, source.Data)
	f.path = where
	x.files[key] = f
	x.view.Files = append(x.view.Files, f)
	return f, nil
}

// replace fills the environment into the text of a word: replaceEnvVars of caddyfile/parse.go, %NAME% first. A value is
// not split into words, and references in it are followed.
func (x *expansion) replace(t *Token) (string, error) {
	if !strings.Contains(t.Text, "{%") && !strings.Contains(t.Text, "{$") {
		return t.Text, nil
	}
	s, err := x.replaceStyle(t, t.Text, "{%", "%}")
	if err != nil {
		return "", err
	}
	return x.replaceStyle(t, s, "{$", "}")
}

func (x *expansion) replaceStyle(t *Token, s, open, end string) (string, error) {
	for range maxReferences {
		start := strings.Index(s, open)
		if start < 0 {
			return s, nil
		}
		length := strings.Index(s[start:], end)
		if length <= len(open) {
			return s, nil // not closed, no name, or %} right behind {% as in {%}
		}
		ref := s[start : start+length+len(end)]
		name := ref[len(open) : len(ref)-len(end)]
		value, err := x.variable(t, name, strings.Count(s, ref))
		if err != nil {
			return "", err
		}
		s = strings.ReplaceAll(s, ref, value)
	}
	return "", errorAt(t, "more than %d references to the environment in one word", maxReferences)
}

// variable looks a variable up and accounts for what count uses of it bring in.
func (x *expansion) variable(t *Token, name string, count int) (string, error) {
	value, ok := "", false
	if x.opts.Env != nil {
		value, ok = x.opts.Env(name)
	}
	if !ok {
		value = ""
		key := unsetKey{t.File, t.Start, name}
		if !x.unset[key] {
			x.unset[key] = true
			x.view.Unset = append(x.view.Unset, Variable{Name: name, Token: *t})
		}
	}
	x.grown += len(value) * count
	if x.grown > maxGrown {
		return "", errorAt(t, "environment variables bring in more than %d bytes", maxGrown)
	}
	return value, nil
}

// ImportFS returns an Options.Import for the files of fsys, whose root is the root of the server's file system. name
// makes a path of the server, such as /etc/coredns/custom/log.override, into what positions print; nil prints the path.
func ImportFS(fsys fs.FS, name func(path string) string) func(pattern string) ([]Source, error) {
	return func(pattern string) ([]Source, error) {
		matches, err := fs.Glob(fsys, strings.TrimPrefix(path.Clean("/"+pattern), "/"))
		if err != nil {
			return nil, err
		}
		sources := make([]Source, 0, len(matches))
		for _, match := range matches {
			data, err := readBounded(fsys, match)
			if err != nil {
				return nil, err
			}
			source := Source{Name: "/" + match, Path: "/" + match, Data: data}
			if name != nil {
				source.Name = name(source.Path)
			}
			sources = append(sources, source)
		}
		return sources, nil
	}
}

// readBounded reads no more than it takes to see that a file is too large.
func readBounded(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	var data []byte
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = fmt.Errorf("/%s is a directory", name)
	default:
		data, err = io.ReadAll(io.LimitReader(f, MaxSize+1))
	}
	return data, errors.Join(err, f.Close())
}
