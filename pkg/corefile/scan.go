package corefile

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind tells the pieces of a Corefile apart.
type Kind uint8

// The kinds of tokens. Together the tokens of a file cover every byte of it.
const (
	// KindWord is what the server reads: a bare or a quoted word, a brace included.
	KindWord Kind = iota
	// KindComment is a comment from its # on, without the end of the line.
	KindComment
	// KindSpace is a run of blanks and ends of lines.
	KindSpace
	// KindBOM is a byte order mark at the start of the file.
	KindBOM
	// KindJunk is what the server skips although it is neither blank nor comment: a quotation mark with nothing after
	// it, or the whole of a file that is larger than MaxSize.
	KindJunk
)

// Range is a half-open range of byte offsets in the source of one file.
type Range struct {
	Start, End int
}

// Token is one piece of a file.
type Token struct {
	// Text is what the server reads: without quotation marks, and in the view of Expand with the environment filled in.
	// In a server block's key it lacks the comma that separates it from the next key. Of tokens other than words it is
	// the source.
	Text string
	// Range is where the token is written in File.
	Range
	// Line is the line of its first byte, from 1.
	Line int
	// File is the file that holds the token.
	File *File
	// Via is the import that brought the token into the view of Expand; nil for a token of the file itself.
	Via *Import

	// index is the place of the token in File.Tokens.
	index int32
	marks marks

	Kind Kind
	// Unclosed says that a quoted word goes on to the end of the file because no quotation mark closes it. The server
	// accepts that.
	Unclosed bool
}

// marks are what the package has to remember of a token.
type marks uint8

const (
	// glued marks a comment that begins inside a bare word and therefore ends at the next blank, not at the end of the
	// line (lexer.go: the flag is forgotten with the word).
	glued marks = 1 << iota
	// target marks the argument of an import, which is never a brace.
	target
	// comma marks a key whose spelling has a comma that is not in Text.
	comma
)

func (t *Token) is(m marks) bool { return t.marks&m != 0 }

// Source returns the token as it is spelled in its file.
func (t Token) Source() string {
	if t.File == nil {
		return t.Text
	}
	return t.File.Src[t.Start:t.End]
}

// Quoted reports whether the token is a word in quotation marks.
func (t Token) Quoted() bool { return t.Kind == KindWord && strings.HasPrefix(t.Source(), `"`) }

// Position returns where the token starts.
func (t Token) Position() Position {
	if t.File == nil {
		return Position{}
	}
	return t.File.Position(t.Start)
}

// lastLine is the line of the last byte as dispenser.go counts it: from the text, which may have grown line breaks
// with the environment.
func (t Token) lastLine() int { return t.Line + strings.Count(t.Text, "\n") }

// sameLine reports whether b continues the line of a as Dispenser.NextArg sees it.
func sameLine(a, b *Token) bool { return sameFile(a.File, b.File) && a.lastLine() == b.Line }

const bom = "\ufeff"

// scan splits the source of f into tokens after caddyfile/lexer.go.
func scan(f *File) []Token {
	src := f.Src
	tokens := make([]Token, 0, len(src)/6+1)
	line := 1
	pos := 0
	emit := func(t Token, end int) {
		t.Start, t.End, t.Line, t.File, t.index = pos, end, line, f, int32(len(tokens)) // no more tokens than MaxSize
		if t.Kind != KindWord {
			t.Text = src[pos:end]
		}
		tokens = append(tokens, t)
		line += strings.Count(src[pos:end], "\n")
		pos = end
	}
	if strings.HasPrefix(src, bom) {
		emit(Token{Kind: KindBOM}, len(bom))
	}
	inWord := false // the lexer still holds a bare word: only blanks other than \r end it
	for pos < len(src) {
		r, _ := utf8.DecodeRuneInString(src[pos:])
		switch {
		case unicode.IsSpace(r):
			end, kept := spaceEnd(src, pos)
			inWord = inWord && kept
			emit(Token{Kind: KindSpace}, end)
		case r == '#':
			t := Token{Kind: KindComment}
			if inWord {
				t.marks = glued
			}
			emit(t, commentEnd(src, pos, inWord))
		case r == '"' && !inWord:
			text, end, closed := quotedWord(src, pos)
			if !closed && text == "" {
				emit(Token{Kind: KindJunk, Unclosed: true}, end)
				continue
			}
			emit(Token{Kind: KindWord, Text: text, Unclosed: !closed}, end)
		default:
			text, end := bareWord(src, pos)
			emit(Token{Kind: KindWord, Text: text}, end)
			inWord = true
		}
	}
	return tokens
}

// spaceEnd returns the end of the blanks at pos, and whether they are carriage returns only, which the lexer skips
// without ending a word.
func spaceEnd(src string, pos int) (end int, onlyCR bool) {
	onlyCR = true
	for pos < len(src) {
		r, size := utf8.DecodeRuneInString(src[pos:])
		if !unicode.IsSpace(r) {
			break
		}
		onlyCR = onlyCR && r == '\r'
		pos += size
	}
	return pos, onlyCR
}

// commentEnd returns the end of the comment at pos, without the carriage returns in front of an end of line.
func commentEnd(src string, pos int, inWord bool) int {
	end := len(src)
	if inWord {
		isEnd := func(r rune) bool { return r != '\r' && unicode.IsSpace(r) }
		if i := strings.IndexFunc(src[pos:], isEnd); i >= 0 {
			end = pos + i
		}
	} else if i := strings.IndexByte(src[pos:], '\n'); i >= 0 {
		end = pos + i
	}
	return pos + len(strings.TrimRight(src[pos:end], "\r"))
}

// quotedWord reads the quoted word at pos. Only a quotation mark can be escaped; a backslash before anything else stands
// for itself together with what follows, two backslashes included. A backslash at the end of the file is dropped.
func quotedWord(src string, pos int) (text string, end int, closed bool) {
	var b strings.Builder
	i := pos + 1
	from := i // what is not yet in b
	for i < len(src) {
		switch src[i] {
		case '"':
			b.WriteString(src[from:i])
			return decode(b.String()), i + 1, true
		case '\\':
			if i+1 == len(src) || src[i+1] == '"' {
				b.WriteString(src[from:i])
				from = i + 1
			}
			i += 2
		default:
			i++
		}
	}
	b.WriteString(src[min(from, len(src)):])
	return decode(b.String()), len(src), false
}

// bareWord reads the bare word at pos. Carriage returns inside it are skipped, those behind it do not belong to it.
func bareWord(src string, pos int) (text string, end int) {
	end = pos
	hasCR := false
	for i := pos; i < len(src); {
		r, size := utf8.DecodeRuneInString(src[i:])
		if r == '#' || r != '\r' && unicode.IsSpace(r) {
			break
		}
		i += size
		if r != '\r' {
			hasCR = hasCR || i-size > end
			end = i
		}
	}
	if !hasCR {
		return decode(src[pos:end]), end
	}
	// Not ReplaceAll: bytes that are invalid on either side of a carriage return must not become one rune.
	runes := []rune(src[pos:end])
	kept := runes[:0]
	for _, r := range runes {
		if r != '\r' {
			kept = append(kept, r)
		}
	}
	return string(kept), end
}

// decode returns s as a reader of runes sees it: a replacement character for every invalid byte.
func decode(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
