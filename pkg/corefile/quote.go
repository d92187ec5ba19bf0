package corefile

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Errors of Quote.
var (
	errNotUTF8   = errors.New("the text is not valid UTF-8, which the server cannot read")
	errBackslash = errors.New("the text has blanks, # or quotation marks, and a backslash before a quotation mark or at its end, " +
		"which no quoted word can hold")
)

// Quote spells s as one word that the server reads back as s: bare where that is possible, else in quotation marks.
// Some texts have no spelling; then it returns an error.
//
// Quotes do not protect a text from its meaning: { } and import are what they are with and without them, and so are
// references to the environment.
func Quote(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errNotUTF8
	}
	// A byte order mark is dropped at the start of a file.
	bare := s != "" && s[0] != '"' && !strings.HasPrefix(s, bom) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r == '#' || unicode.IsSpace(r) })
	if bare {
		return s, nil
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			b.WriteString(`\"`)
		case '\\':
			// The lexer takes a backslash together with what follows; see quotedWord.
			if i+1 == len(s) || s[i+1] == '"' {
				return "", errBackslash
			}
			b.WriteString(s[i : i+2])
			i++
		default:
			b.WriteByte(s[i])
		}
	}
	b.WriteByte('"')
	return b.String(), nil
}
