package corefile

import (
	"bytes"
	"os"
	"testing"

	"github.com/coredns/caddy/caddyfile"
	"github.com/google/go-cmp/cmp"
)

// The functions of this file ask the specification.

// caddyWords lexes with caddy.
func caddyWords(src []byte) []caddyfile.Token {
	d := caddyfile.NewDispenser("Corefile", bytes.NewReader(src))
	var words []caddyfile.Token
	for d.Next() {
		words = append(words, caddyfile.Token{Line: d.Line(), Text: d.Val()})
	}
	return words
}

// ourWords lexes with this package.
func ourWords(f *File) []caddyfile.Token {
	var words []caddyfile.Token
	for _, t := range f.Tokens {
		if t.Kind == KindWord {
			words = append(words, caddyfile.Token{Line: t.Line, Text: t.Text})
		}
	}
	return words
}

// serverBlock is what can be compared of a block: the texts of its words by directive.
type serverBlock struct {
	Keys  []string
	Words map[string][]string
}

func caddyBlocks(blocks []caddyfile.ServerBlock) []serverBlock {
	var out []serverBlock
	for _, b := range blocks {
		s := serverBlock{Keys: b.Keys, Words: map[string][]string{}}
		for name, tokens := range b.Tokens {
			for _, t := range tokens {
				s.Words[name] = append(s.Words[name], t.Text)
			}
		}
		out = append(out, s)
	}
	return out
}

// ourBlocks flattens the tree again. The first word of a directive keeps its spelling in caddy.
func ourBlocks(blocks []*Block) []serverBlock {
	var out []serverBlock
	for _, b := range blocks {
		if len(b.Keys) == 0 {
			continue // caddy drops it
		}
		s := serverBlock{Words: map[string][]string{}}
		for _, k := range b.Keys {
			s.Keys = append(s.Keys, k.Text)
		}
		for _, d := range b.Body {
			words := flatten(d)
			words[0] = d.Name.File.Tokens[d.Name.index].Text
			s.Words[d.Name.Text] = append(s.Words[d.Name.Text], words...)
		}
		out = append(out, s)
	}
	return out
}

func flatten(d *Directive) []string {
	var words []string
	if d.Name.End > d.Name.Start { // not a brace in place of a name
		words = append(words, d.Name.Text)
	}
	for _, a := range d.Args {
		words = append(words, a.Text)
	}
	if d.Open != nil {
		words = append(words, d.Open.Text)
	}
	for _, line := range d.Body {
		words = append(words, flatten(line)...)
	}
	if d.Close != nil {
		words = append(words, d.Close.Text)
	}
	for _, t := range d.Tail {
		words = append(words, t.Text)
	}
	return words
}

// compareWithCaddy expands src and checks that caddy accepts the same sources and reads the same from them.
func compareWithCaddy(t *testing.T, src []byte, opts Options) {
	t.Helper()
	f, _ := Parse("Corefile", src)
	opts.Env = os.LookupEnv
	view, err := Expand(f, opts)
	blocks, caddyErr := caddyfile.Parse(opts.Path, bytes.NewReader(src), nil)
	if (err == nil) != (caddyErr == nil) {
		t.Fatalf("%q:\nours:  %v\ncaddy: %v", src, err, caddyErr)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(caddyBlocks(blocks), ourBlocks(view.Blocks)); diff != "" {
		t.Fatalf("%q: blocks differ (-caddy +ours):\n%s", src, diff)
	}
}
