package reference

import (
	"path"
	"strings"
)

// syntax is how a text is read.
type syntax int

const (
	// unread texts hold no host that the workload looks up: certificates, pages, zone files, Corefiles (which have
	// checks of their own).
	unread syntax = iota
	// guessed texts are read as their content suggests.
	guessed
	yamlText
	jsonText
	xmlText
	shellText
	// confText is a line for each directive, with blanks between its words: nginx, HAProxy, Fluent Bit, Redis.
	confText
	// pairText is a line for each key and value: properties, INI, TOML, env files.
	pairText
	// codeText is a program in a language that is not read further.
	codeText
	// caddyText is a Caddyfile.
	caddyText
)

// syntaxOf tells how a file of this name is read.
func syntaxOf(name string) syntax {
	base := strings.ToLower(path.Base(name))
	for _, end := range []string{".tmpl", ".tpl", ".ctmpl", ".gotmpl", ".template", ".j2", ".erb", ".in", ".default", ".dist", ".sample"} {
		base = strings.TrimSuffix(base, end)
	}
	switch base {
	case "corefile", "hosts", "resolv.conf", "nsswitch.conf", "license", "notice", "readme", "ca-bundle", "known_hosts",
		"authorized_keys":
		return unread
	case "caddyfile":
		return caddyText
	}
	if strings.HasSuffix(base, "known_hosts") {
		return unread
	}
	switch strings.TrimPrefix(path.Ext(base), ".") {
	case "yaml", "yml":
		return yamlText
	case "json", "jsonc", "json5":
		return jsonText
	case "xml":
		return xmlText
	case "sh", "bash", "ash", "zsh":
		return shellText
	case "conf", "cfg":
		return confText
	case "caddyfile":
		return caddyText
	case "properties", "props", "ini", "toml", "env", "cnf":
		return pairText
	case "py", "js", "mjs", "cjs", "ts", "lua", "rb", "pl", "php", "groovy", "go", "java", "kt", "cs", "ps1", "rego", "star", "r",
		"jsonnet", "libsonnet", "hcl", "tf", "vcl", "awk":
		return codeText
	case "server", "override", "hosts", "zone", "crt", "pem", "key", "cer", "csr", "pub", "crl", "html", "htm", "css", "svg", "md",
		"rst", "adoc", "sql", "csv", "tsv", "xsd", "xsl", "xslt", "dtd", "wsdl", "proto", "graphql", "po", "scss", "lock",
		"jwks", "asc", "gpg", "ldif", "pac":
		return unread
	}
	return guessed
}

// guess tells how a text without a telling name is read.
func guess(text string) syntax {
	t := strings.TrimLeft(text, " \t\r\n\ufeff")
	switch {
	case t == "" || strings.HasPrefix(t, "-----BEGIN "):
		return unread
	case strings.HasPrefix(t, "#!"):
		line, _, _ := strings.Cut(t, "\n")
		if strings.Contains(line, "sh") {
			return shellText
		}
		return codeText
	case strings.HasPrefix(t, "---"):
		return yamlText
	case strings.HasPrefix(t, "<") && !strings.HasPrefix(t, "<%"):
		if strings.Contains(t, "\n  @type ") {
			return confText // Fluentd, whose sections look like elements
		}
		if i := strings.IndexByte(t, '\n'); i > 0 && strings.Contains(t, "</") || strings.HasPrefix(t, "<?xml") {
			return xmlText
		}
		return confText
	case strings.HasPrefix(t, "{") && !strings.HasPrefix(t, "{{"):
		return jsonText
	case strings.HasPrefix(t, "["):
		if line, _, _ := strings.Cut(t, "\n"); strings.HasSuffix(strings.TrimSpace(line), "]") && strings.TrimSpace(line) != t &&
			len(line) > 2 && (isLetter(line[1]) || line[1] == '[') {
			return pairText
		}
		return jsonText
	}
	colons, equals, directives, lines := 0, 0, 0, 0
	for line := range strings.SplitSeq(t[:min(len(t), 8192)], "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		lines++
		if last := line[len(line)-1]; last == ';' || last == '{' {
			directives++
			continue
		}
		if line[0] == '-' && len(line) > 1 && line[1] == ' ' {
			colons++
			continue
		}
		i := strings.IndexAny(line, ":= \t")
		switch {
		case i <= 0:
		case line[i] == '=':
			equals++
		case line[i] == ':' && (i+1 == len(line) || line[i+1] == ' '):
			colons++
		case line[i] == ' ' && strings.HasPrefix(strings.TrimLeft(line[i:], " "), "="):
			equals++
		}
	}
	switch {
	case colons > equals && colons >= directives && 2*colons >= lines:
		return yamlText
	case directives > equals:
		return confText
	}
	return pairText
}

// at notes the line of what is read next. Within a text that stands in one line of another it stays that line.
func (s *scanner) at(line int) {
	if !s.inline {
		s.line = line
	}
}

// document reads a text whose first line is s.line+1, or 1 where the text is not part of another.
func (s *scanner) document(name, text string) {
	if s.depth >= maxDepth || s.full() {
		return
	}
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	how := syntaxOf(name)
	if how == unread {
		return
	}
	s.depth++
	defer func(line, base int) {
		s.depth--
		s.line, s.path, s.key = line, s.path[:base], ""
	}(s.line, len(s.path))
	first := s.line
	if trimmed := strings.TrimRight(text, "\r\n \t"); how == guessed && strings.IndexByte(trimmed, '\n') < 0 {
		// A value of its own: the name is its key.
		s.at(first + 1)
		if k := guess(trimmed); k != unread {
			s.value(classify(name), trimmed)
		}
		return
	}
	if how == guessed || how == confText && strings.HasPrefix(strings.TrimSpace(text), "<?xml") {
		how = guess(text)
	}
	if how == jsonText && !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "[") {
		how = pairText
	}
	switch how {
	case yamlText:
		s.yaml(text, first)
	case jsonText:
		if strings.Contains(text, `"panels"`) && strings.Contains(text, `"schemaVersion"`) {
			return // a dashboard of Grafana: queries and links for people
		}
		s.at(first + 1)
		s.flow(blank(text), plain)
	case xmlText:
		s.xml(text, first)
	case shellText:
		s.at(first + 1)
		s.shell(text)
	case confText:
		s.conf(text, first)
	case pairText:
		s.pairLines(text, first)
	case codeText:
		s.code(text, first)
	case caddyText:
		s.caddy(text, first)
	}
}

// code reads a program: only what stands in its own right counts, and no literal under a silent key.
func (s *scanner) code(text string, first int) {
	comment := false
	l := lines{text: text}
	for l.next() && !s.full() {
		s.at(first + l.n)
		line := strings.TrimSpace(l.line)
		if comment {
			if i := strings.Index(line, "*/"); i >= 0 {
				comment = false
			}
			continue
		}
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "--"):
			continue
		case strings.HasPrefix(line, "/*"):
			comment = !strings.Contains(line, "*/")
			continue
		}
		line = l.withoutSilent(line)
		s.free(uncomment(line, "//"))
	}
}

// maxLiterals is how many literals of one line are taken out; it keeps the work linear.
const maxLiterals = 16

// withoutSilent takes the literals under silent keys out of the current line of a program, which line ends: the string of
// redirectURL: "http://web", the list of const corsOrigins = ["http://web"]. It goes to the line where the last one
// ends. What a call gives back is no literal, and its arguments count, but for constants: ALLOWED_HOSTS =
// environ.get("HOSTS", "http://web").
func (l *lines) withoutSilent(line string) string {
	for off, n := 0, 0; n < maxLiterals; {
		i := strings.IndexAny(line[off:], "=:")
		if i < 0 {
			break
		}
		i += off
		key := codeKey(line[max(off, i-maxKey):i])
		off = i + 1
		value := line[off:]
		if line[i] == ':' {
			// name: type = value, name := value
			head := value[:min(len(value), maxKey)]
			if eq := strings.IndexByte(head, '='); eq >= 0 && !strings.ContainsAny(head[:eq], "\"'`,({") {
				value = value[eq+1:]
			}
		}
		value = strings.TrimLeft(strings.TrimPrefix(value, ">"), " \t")
		if value == "" || value[0] == '=' || classify(key) != silent {
			continue
		}
		if strings.IndexByte("\"'`[{(", value[0]) < 0 {
			if strings.ToUpper(key) == key {
				return line[:off]
			}
			continue
		}
		off = len(line) - len(value)
		line = line[:off] + l.behindLiteral(value)
		n++
	}
	return line
}

// codeKey returns the name in front of an equals sign or a colon: the last word, without the brackets and quotes around.
func codeKey(left string) string {
	left = strings.TrimRight(left, " \t")
	left = left[strings.LastIndexAny(left, " \t({[,")+1:]
	return strings.Trim(left, "\"'`)]}")
}

// behindLiteral returns what follows on the literal at the start of literal, the rest of the current line. Where it ends in
// a later line, it goes to that line, and nothing follows.
func (l *lines) behindLiteral(literal string) string {
	var end int
	switch q := literal[0]; q {
	case '[':
		whole := l.collectionAt(literal, strings.LastIndex(l.line, literal))
		if len(whole) > len(literal) {
			return ""
		}
		return literal[len(whole):]
	case '(':
		end = strings.IndexByte(literal, ')')
		for closed := end >= 0; !closed && l.next(); {
			closed = strings.IndexByte(l.line, ')') >= 0
		}
	case '{':
		end = strings.IndexByte(literal, '}')
	default:
		if end = strings.IndexByte(literal[1:], q); end >= 0 {
			end++
		}
	}
	if end < 0 {
		return ""
	}
	return literal[end+1:]
}

// pairLines reads lines of keys and values.
func (s *scanner) pairLines(text string, first int) {
	base := len(s.path)
	open := plain // of a value that goes on in the next line
	goesOn := false
	muted := false // within a section such as [global_tags]
	l := lines{text: text}
	for l.next() && !s.full() {
		s.at(first + l.n)
		line := strings.TrimSpace(l.line)
		if line == "" || isComment(line) {
			goesOn = false
			continue
		}
		if goesOn {
			value := strings.TrimSpace(strings.TrimSuffix(line, `\`))
			goesOn = len(value) != len(line)
			s.value(open, value)
			continue
		}
		if line[0] == '[' && line[len(line)-1] == ']' {
			s.path = append(s.path[:base], strings.Trim(line, "[] \t"))
			muted = mutesSection(s.path[base])
			continue
		}
		if muted {
			continue
		}
		key, value, ok := pair(line)
		if !ok {
			s.free(line)
			continue
		}
		if hostless(value) && !strings.HasSuffix(value, `\`) && !opensCollection(value) {
			continue
		}
		top := len(s.path)
		s.path = append(s.path, key)
		c := classify(key)
		value = uncomment(value, "#")
		value = uncomment(value, ";")
		switch {
		case strings.HasSuffix(value, `\`):
			goesOn, open = true, c
			s.value(c, strings.TrimSuffix(value, `\`))
		case opensCollection(value):
			s.flow(blank(l.collection(value)), c)
		default:
			s.value(c, value)
		}
		s.path = s.path[:top]
	}
}

// mutesSection tells whether nothing in a section of INI or TOML is a host, by the last part of its name.
func mutesSection(name string) bool {
	return mutes(name[strings.LastIndexByte(name, '.')+1:])
}

// isComment tells whether a line that starts so is a comment in one of the languages of keys and values.
func isComment(line string) bool {
	switch line[0] {
	case '#', ';', '!':
		return true
	}
	return strings.HasPrefix(line, "//") || strings.HasPrefix(line, "--") || strings.HasPrefix(line, "/*") || strings.HasPrefix(line, "* ")
}

// uncomment cuts a comment off that follows a blank.
func uncomment(v, mark string) string {
	for off := 0; ; {
		i := strings.Index(v[off:], mark)
		if i < 0 {
			return v
		}
		i += off
		if i == 0 || v[i-1] == ' ' || v[i-1] == '\t' {
			return strings.TrimSpace(v[:i])
		}
		off = i + len(mark)
	}
}

// pair splits "key = value", "key: value", "export KEY=value". A key is one word.
func pair(line string) (key, value string, ok bool) {
	line = strings.TrimPrefix(line, "export ")
	i := 0
	for i < len(line) && line[i] != '=' && line[i] != ':' {
		i++
	}
	if i == len(line) || strings.HasPrefix(line[i:], "://") {
		return "", "", false
	}
	if i <= 0 {
		return "", "", false
	}
	key = strings.TrimSpace(line[:i])
	value = line[i+1:]
	if i+1 < len(line) && line[i+1] == '=' {
		return "", "", false
	}
	value = strings.TrimSpace(strings.TrimPrefix(value, ">")) // key => value
	key = strings.Trim(strings.TrimRight(key, "+?:"), `"'`)
	if key == "" || strings.ContainsAny(key, " \t\"'()<>{}|,;") {
		return "", "", false
	}
	if line[i] == ':' && i+1 < len(line) && line[i+1] != ' ' && line[i+1] != '\t' && !strings.Contains(value, "://") {
		return "", "", false // kafka:9092 in a line of its own
	}
	return key, value, true
}

// lines walks through a text line by line.
type lines struct {
	text string
	// line is the current one without its line end, n its number from 1, start its place in text, after that of the
	// next one.
	line         string
	n            int
	start, after int
	// unbalanced is true once a bracket was found that nothing closes.
	unbalanced bool
}

// next goes to the next line and tells whether there is one.
func (l *lines) next() bool {
	if l.after >= len(l.text) {
		return false
	}
	l.start = l.after
	l.n++
	if i := strings.IndexByte(l.text[l.start:], '\n'); i >= 0 {
		l.after = l.start + i + 1
		l.line = strings.TrimSuffix(l.text[l.start:l.start+i], "\r")
	} else {
		l.after = len(l.text)
		l.line = l.text[l.start:]
	}
	return true
}

// opensCollection tells whether a value starts a list or a map in brackets.
func opensCollection(v string) bool {
	return v != "" && (v[0] == '[' || v[0] == '{' && !strings.HasPrefix(v, "{{"))
}

// collection returns the value, a part of the current line that starts with a bracket, up to the bracket that closes
// it, in a later line if need be, and goes to that line.
func (l *lines) collection(value string) string {
	return l.collectionAt(value, strings.Index(l.line, value))
}

// collectionAt does the same for a value at the given place of the line.
func (l *lines) collectionAt(value string, at int) string {
	if l.unbalanced {
		return value
	}
	from := l.start + at
	depth := 0
	var quote byte
	for i := from; i < len(l.text); i++ {
		c := l.text[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote, '\n':
				quote = 0
			}
		case c == '"' || c == '\'':
			if i > 0 && !isHostByte(l.text[i-1]) {
				quote = c
			}
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
			if depth == 0 {
				whole := l.text[from : i+1]
				for l.after <= i && l.next() {
				}
				return whole
			}
		}
	}
	l.unbalanced = true
	return value
}
