package reference

import "strings"

// blank replaces what templates and variables will fill in by holes, byte for byte, so that lines and columns stay:
// {{ … }}, ${…}, $(…), $name, <% … %>, %(…)s and #{…}. A template ends in its line; one that does not is taken for
// text, its opening aside.
func blank(v string) string {
	if strings.IndexByte(v, '$') < 0 && strings.IndexByte(v, '{') < 0 && strings.IndexByte(v, '%') < 0 {
		return v
	}
	var b []byte
	for i := 0; i+1 < len(v); {
		n := template(v[i:])
		if n == 0 {
			i++
			continue
		}
		if b == nil {
			b = []byte(v)
		}
		for j := i; j < i+n; j++ {
			b[j] = hole
		}
		i += n
	}
	if b == nil {
		return v
	}
	return string(b)
}

// template returns the length of the template at the start of v, which has two bytes or more; 0 where there is none.
func template(v string) int {
	switch v[0] {
	case '$':
		switch c := v[1]; {
		case c == '{':
			return 2 + closing(v[2:], '{', '}')
		case c == '(':
			return 2 + closing(v[2:], '(', ')')
		case isLetter(c) || c == '_':
			n := 2
			for n < len(v) && (isLetter(v[n]) || isDigit(v[n]) || v[n] == '_') {
				n++
			}
			return n
		case isDigit(c):
			return 2
		}
	case '{':
		if v[1] == '{' {
			return 2 + through(v[2:], "}}")
		}
	case '<':
		if v[1] == '%' {
			return 2 + through(v[2:], "%>")
		}
	case '%':
		if v[1] == '(' {
			n := 2 + through(v[2:], ")")
			if n > 2 && n < len(v) && (v[n] == 's' || v[n] == 'd') {
				n++
			}
			return n
		}
	case '#':
		if v[1] == '{' {
			return 2 + closing(v[2:], '{', '}')
		}
	}
	return 0
}

// maxTemplate is how far the end of a template is looked for; it keeps the search linear.
const maxTemplate = 256

// closing returns the length of v up to and with the bracket that closes one opened before v; 0 where the line or
// maxTemplate ends first.
func closing(v string, opened, closed byte) int {
	depth := 1
	for i := 0; i < len(v) && i < maxTemplate && v[i] != '\n'; i++ {
		switch v[i] {
		case opened:
			depth++
		case closed:
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// through returns the length of v up to and with end, 0 where the line or maxTemplate ends first.
func through(v, end string) int {
	v = v[:min(len(v), maxTemplate)]
	if i := strings.IndexByte(v, '\n'); i >= 0 {
		v = v[:i]
	}
	if i := strings.Index(v, end); i >= 0 {
		return i + len(end)
	}
	return 0
}
