package corefile

import "strings"

// Lead returns the comments that belong to the block: the lines of comments directly above it, without a blank line
// between. For a block of Expand they are those of its first key.
func (b *Block) Lead() []Token { first := b.first(); return first.lead() }

// Trail returns the comments at the end of the line of the opening brace and of the line of the closing brace.
func (b *Block) Trail() []Token { return trails(b.head(), b.last()) }

// Lead returns the comments that belong to the directive: the lines of comments directly above it, without a blank line
// between.
func (d *Directive) Lead() []Token { return d.Name.lead() }

// Trail returns the comments at the end of the directive's first line and of its last line.
func (d *Directive) Trail() []Token { return trails(d.head(), d.last()) }

func trails(head, last Token) []Token {
	comments := head.trail()
	if last.File != head.File || last.Line != head.Line {
		comments = append(comments, last.trail()...)
	}
	return comments
}

// lead returns the comments directly above the line that starts with the word t.
func (t Token) lead() []Token {
	if t.File == nil {
		return nil
	}
	tokens := t.File.Tokens
	first := int(t.index) // of the token above which the next comment would have to be
	for first >= 2 && tokens[first-1].breaks() == 1 && tokens[first-2].Kind == KindComment && startsLine(tokens, first-2) {
		first -= 2
	}
	var comments []Token
	for i := first; i < int(t.index); i += 2 {
		comments = append(comments, tokens[i])
	}
	return comments
}

// trail returns the comments behind the word t on its last line, up to the next word.
func (t Token) trail() []Token {
	if t.File == nil {
		return nil
	}
	var comments []Token
	for _, next := range t.File.Tokens[t.index+1:] {
		if next.Kind == KindWord || next.breaks() > 0 {
			break
		}
		if next.Kind == KindComment {
			comments = append(comments, next)
		}
	}
	return comments
}

// breaks counts the ends of lines in a token of blanks.
func (t Token) breaks() int {
	if t.Kind != KindSpace {
		return 0
	}
	return strings.Count(t.Text, "\n")
}

// startsLine reports whether only blanks stand before the token on its line.
func startsLine[I int | int32](tokens []Token, i I) bool {
	if i > 0 && tokens[i-1].Kind == KindSpace {
		if tokens[i-1].breaks() > 0 {
			return true
		}
		i--
	}
	return i == 0 || tokens[i-1].Kind == KindBOM
}

// extent returns the bytes that belong to the words from first to last: the comments above and behind them, and the
// whole lines where nothing else stands on them.
func extent(first, last Token) Range {
	f := first.File
	tokens := f.Tokens
	r := Range{first.Start, last.End}
	top := int(first.index)
	if lead := first.lead(); len(lead) > 0 {
		top = int(lead[0].index)
		r.Start = lead[0].Start
	}
	bottom := int(last.index)
	if trail := last.trail(); len(trail) > 0 {
		bottom = int(trail[len(trail)-1].index)
		r.End = tokens[bottom].End
	}

	after := bottom + 1
	switch {
	case !startsLine(tokens, top):
		return r
	case after == len(tokens):
		r.End = len(f.Src)
	case tokens[after].breaks() > 0:
		r.End = tokens[after].Start + strings.IndexByte(tokens[after].Text, '\n') + 1
	default:
		return r // something follows on the last line
	}
	r.Start = f.lineStart(r.Start)
	return r
}

// lineEnd returns the offset behind the end of the line that the word is last on, or behind what stands there that is
// no comment.
func (t Token) lineEnd() int {
	tokens := t.File.Tokens
	last := t
	if trail := t.trail(); len(trail) > 0 {
		last = trail[len(trail)-1]
	}
	if after := int(last.index) + 1; after < len(tokens) && tokens[after].breaks() > 0 {
		return tokens[after].Start + strings.IndexByte(tokens[after].Text, '\n') + 1
	}
	return last.End
}

// adhesive returns the token that follows without a blank between, or nil. Carriage returns are no blanks to a word.
func (t Token) adhesive() *Token {
	for i := int(t.index) + 1; i < len(t.File.Tokens); i++ {
		next := &t.File.Tokens[i]
		if next.Kind != KindSpace {
			return next
		}
		if strings.Trim(next.Text, "\r") != "" {
			return nil
		}
	}
	return nil
}

// lineStart returns the offset of the start of the line, behind a byte order mark.
func (f *File) lineStart(offset int) int {
	start := f.lines[f.Position(offset).Line-1]
	if start == 0 && strings.HasPrefix(f.Src, bom) {
		return min(len(bom), offset)
	}
	return start
}
