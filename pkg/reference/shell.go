package reference

import (
	"path"
	"slices"
	"strings"
)

// word is one word of a command line. Holes stand for what the shell would put there.
type word struct {
	text string
	kind Kind
	line int
}

// argv reads the command and arguments of a container, which no shell has split.
func (s *scanner) argv(words []word, depth int) {
	for i := range words {
		if len(words[i].text) > MaxText {
			words[i].text = words[i].text[:MaxText]
		}
	}
	// sh -c 'script', behind whatever starts the shell; args: ["-c", "script"] where the image's entrypoint is a shell.
	for i := range words {
		if i > 0 && isScriptFlag(words[i-1].text) && (i > 1 && isShell(words[i-2].text) || i > 2 && isShell(words[i-3].text) ||
			strings.ContainsAny(words[i].text, " \n")) {
			script := words[i]
			if i > 1 {
				s.simple(words[:i-1])
			}
			s.script(script, depth+1)
			return
		}
	}
	s.simple(words)
}

func isShell(w string) bool {
	switch path.Base(w) {
	case "sh", "bash", "ash", "dash", "zsh", "ksh":
		return true
	}
	return false
}

// isScriptFlag tells whether w is -c, alone or with other letters: -ec, -lc.
func isScriptFlag(w string) bool {
	if len(w) < 2 || len(w) > 8 || w[0] != '-' || w[len(w)-1] != 'c' {
		return false
	}
	for i := 1; i < len(w); i++ {
		if !isLetter(w[i]) {
			return false
		}
	}
	return true
}

// script reads a shell script in one word.
func (s *scanner) script(w word, depth int) {
	if depth > maxDepth {
		return
	}
	p := shell{s: s, text: w.text, kind: w.kind, depth: depth, line: s.line, inline: true}
	p.run()
}

// shell reads a script whose first line is s.line.
func (s *scanner) shell(text string) {
	p := shell{s: s, text: text, kind: s.origin.Kind, depth: s.depth, line: s.line, inline: s.inline}
	p.run()
}

// shell splits a script into simple commands: enough of POSIX XCU chapter 2 to tell words, quotes, comments,
// substitutions, redirections and here-documents apart.
type shell struct {
	s     *scanner
	text  string
	kind  Kind
	depth int
	line  int
	// inline is true where lines are not counted.
	inline bool

	words   []word
	current []byte
	started bool
	// first is the line on which the current word starts.
	first int
	// target is true where the next word is the file of a redirection.
	target bool
	// heredocs are the delimiters of here-documents that begin in the next line.
	heredocs []string
	heredoc  bool
	// unclosed is true once a substitution was found that nothing closes; no other is looked for then.
	unclosed bool
}

func (p *shell) endWord() {
	if !p.started {
		return
	}
	w := word{text: string(p.current), kind: p.kind, line: p.first}
	p.current, p.started = p.current[:0], false
	switch {
	case p.heredoc:
		p.heredocs = append(p.heredocs, strings.TrimPrefix(w.text, "-"))
		p.heredoc = false
	case p.target:
		p.target = false
		if strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/") {
			p.words = append(p.words, w)
		}
	default:
		p.words = append(p.words, w)
	}
}

func (p *shell) endCommand() {
	p.endWord()
	if len(p.words) > 0 {
		p.s.simple(p.words)
	}
	p.words = p.words[:0]
	p.target = false
}

func (p *shell) add(c byte) {
	p.start()
	p.current = append(p.current, c)
}

// start begins a word, if none has begun.
func (p *shell) start() {
	if !p.started {
		p.started, p.first = true, p.line
	}
}

func (p *shell) run() {
	s := p.s
	for i := 0; i < len(p.text) && !s.full(); {
		c := p.text[i]
		switch c {
		case '\n':
			p.endCommand()
			p.newline()
			i++
			i = p.skipHeredocs(i)
		case ' ', '\t', '\r':
			p.endWord()
			i++
		case '#':
			if p.started {
				p.add(c)
				i++
				break
			}
			for i < len(p.text) && p.text[i] != '\n' {
				i++
			}
		case ';', '|', '&', '(', ')':
			if c == '&' && (p.target || i+1 < len(p.text) && p.text[i+1] == '>') {
				i++
				break
			}
			p.endCommand()
			i++
		case '<', '>':
			p.endWord()
			i++
			if c == '<' && i < len(p.text) && p.text[i] == '<' {
				if i++; i < len(p.text) && p.text[i] == '<' {
					i++ // <<< word
				} else {
					p.heredoc = true
				}
				break
			}
			p.target = true
			for i < len(p.text) && (p.text[i] == '>' || p.text[i] == '&') {
				i++
			}
		case '\\':
			if i+1 < len(p.text) {
				if p.text[i+1] == '\n' {
					p.newline()
				} else {
					p.add(p.text[i+1])
				}
			}
			i += 2
		case '\'':
			i++
			p.start()
			for i < len(p.text) && p.text[i] != '\'' {
				p.literal(p.text[i])
				i++
			}
			i++
		case '"':
			i++
			p.start()
			for i < len(p.text) && p.text[i] != '"' {
				switch {
				case p.text[i] == '\\' && i+1 < len(p.text):
					p.literal(p.text[i+1])
					i += 2
				case p.text[i] == '$' || p.text[i] == '`':
					i += p.expansion(p.text[i:])
				default:
					p.literal(p.text[i])
					i++
				}
			}
			i++
		case '$', '`':
			i += p.expansion(p.text[i:])
		default:
			p.add(c)
			i++
		}
	}
	p.endCommand()
}

func (p *shell) newline() {
	p.line++
	if !p.inline {
		p.s.line = p.line
	}
}

func (p *shell) literal(c byte) {
	p.add(c)
	if c == '\n' {
		p.newline()
	}
}

// expansion takes a variable or a command substitution at the start of v, and returns its length. The word gets a hole;
// the command inside is read as a script of its own.
func (p *shell) expansion(v string) int {
	if v[0] == '`' {
		end := -1
		if !p.unclosed {
			end = strings.IndexByte(v[1:], '`')
		}
		if end < 0 {
			p.unclosed = true
			return 1
		}
		p.inner(v[1 : 1+end])
		return end + 2
	}
	if len(v) < 2 {
		p.add('$')
		return 1
	}
	if v[1] == '(' {
		n := p.substitution(v[2:])
		if n < 0 {
			p.add(hole)
			return 2
		}
		p.inner(v[2 : 2+n])
		return 2 + n + 1
	}
	n := template(v)
	if n == 0 {
		n = 2 // $?, $@, $$
		if v[1] == ' ' || v[1] == '"' || v[1] == '\n' || v[1] == '\'' {
			n = 1
		}
	}
	p.add(hole)
	return n
}

// substitution returns the length of v up to the parenthesis that closes one opened before v, -1 where none does.
func (p *shell) substitution(v string) int {
	if p.unclosed {
		return -1
	}
	depth := 1
	for i := range len(v) {
		switch v[i] {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	p.unclosed = true
	return -1
}

func (p *shell) inner(script string) {
	p.add(hole)
	if p.depth >= maxDepth || strings.HasPrefix(script, "(") { // the latter is arithmetic
		for range strings.Count(script, "\n") {
			p.newline()
		}
		return
	}
	sub := shell{s: p.s, text: script, kind: p.kind, depth: p.depth + 1, line: p.line, inline: p.inline}
	sub.run()
	p.line += strings.Count(script, "\n")
	if !p.inline {
		p.s.line = p.line
	}
}

// skipHeredocs reads the here-documents that begin at p.text[i] and returns where they end.
func (p *shell) skipHeredocs(i int) int {
	for _, delimiter := range p.heredocs {
		l := lines{text: p.text[i:]}
		for l.next() {
			if strings.TrimLeft(l.line, "\t") == delimiter {
				break
			}
			p.s.free(l.line)
			p.newline()
		}
		if l.after > 0 && l.after < len(l.text) || strings.TrimLeft(l.line, "\t") == delimiter {
			p.newline()
		}
		i += l.after
	}
	p.heredocs = p.heredocs[:0]
	return i
}

// simple reads one simple command.
func (s *scanner) simple(words []word) {
	words = unwrap(s, words)
	if len(words) == 0 {
		return
	}
	name := ""
	if first := words[0].text; !strings.HasPrefix(first, "-") {
		name = path.Base(first)
	}
	switch name {
	case "echo", "printf", "[", "[[", "test", "grep", "egrep", "sed", "awk", "case", "esac", "alias", "trap", "log", "function", "cut", "tr":
		return // texts and patterns
	case "openssl", "cfssl", "keytool", "ssh-keygen":
		if len(words) < 2 || words[1].text != "s_client" {
			return // names in certificates
		}
	case "eval", "exec", "sh", "bash", "ash", "dash", "zsh":
		for i := 1; i+1 < len(words); i++ {
			if isScriptFlag(words[i].text) {
				if s.depth < maxDepth {
					s.depth++
					s.script(words[i+1], s.depth)
					s.depth--
				}
				return
			}
		}
	}
	images := isImageTool(name) || isKaniko(name, words)
	words, below := s.firstLines(words)
	defer func() { s.lines(below) }()
	positional := 0
	for i := 0; i < len(words); i++ {
		w := words[i]
		s.word(w)
		switch {
		case len(w.text) > 1 && w.text[0] == '-':
			if images && isImageFlag(w.text) {
				if strings.IndexByte(w.text, '=') < 0 && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") {
					i++
				}
				continue
			}
			i += s.flag(name, words[i:])
		case isAssignment(w.text):
			key, value, _ := strings.Cut(w.text, "=")
			s.keyed(key, key+"=", classify(key), value)
		case strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/"):
			parts := strings.Split(w.text, "/")
			if len(parts) > 4 && isHost(parts[3]) {
				s.lead = "/dev/" + parts[2] + "/"
				s.emit(hit{host: parts[3], port: parsePort(parts[4]), strength: Certain})
			}
		case i == 0 && name != "":
			// The program itself, unless the image's entrypoint stands before it.
			if strings.ContainsRune(w.text, ':') || strings.Contains(w.text, ".svc") {
				s.keyed("", "", plain, w.text)
			}
		case images && isImage(w.text):
		default:
			s.key = ""
			s.lead = ""
			if name != "" {
				s.lead = name + " "
			}
			if hostArgument(name, positional, w.text) {
				next := 0
				if i+1 < len(words) {
					next = parsePort(words[i+1].text)
				}
				if isHost(w.text) && !fileLike(w.text) {
					s.emit(hit{host: w.text, port: next, strength: Certain})
				}
				positional++
				continue
			}
			if !isNumber(w.text) {
				positional++
			}
			c := plain
			if name == "curl" || name == "wget" || name == "http" || name == "grpcurl" {
				c = peer
				if parseItem(w.text).port == 0 && !strings.Contains(w.text, "://") {
					c = plain
				}
			}
			s.positional(c, w.text)
		}
	}
	s.key, s.lead = "", ""
}

// firstLines cuts words of several lines to their first one, and returns the other lines as words of their own, each with
// its line. Where lines are not counted, words stay whole.
func (s *scanner) firstLines(words []word) (cut, below []word) {
	if s.inline {
		return words, nil
	}
	for i, w := range words {
		first, rest, several := strings.Cut(w.text, "\n")
		if !several || w.line == 0 {
			continue
		}
		if cut == nil {
			cut = slices.Clone(words)
		}
		cut[i].text = first
		for line := range strings.SplitSeq(rest, "\n") {
			w.line++
			below = append(below, word{text: line, kind: w.kind, line: w.line})
		}
	}
	if cut == nil {
		return words, nil
	}
	return cut, below
}

// lines reads the lines that firstLines took off.
func (s *scanner) lines(below []word) {
	for _, w := range below {
		s.word(w)
		s.positional(plain, w.text)
	}
}

// word notes where a word stands.
func (s *scanner) word(w word) {
	s.origin.Kind = w.kind
	if w.line > 0 {
		s.at(w.line)
	}
}

// positional reads a word without a key.
func (s *scanner) positional(c class, v string) {
	if strings.ContainsAny(v, " \n") {
		s.prose = true
		v = blank(v)
		s.urls(v)
		s.clusterNames(v)
		s.prose = false
		return
	}
	s.value(c, v)
}

// keyed reads a value under a key; lead stands before the host in excerpts.
func (s *scanner) keyed(key, lead string, c class, value string) {
	saved := s.lead
	s.key, s.lead = key, lead
	s.value(c, value)
	s.key, s.lead = "", saved
}

// flag reads the flag at words[0] and returns how many words behind it are its value.
func (s *scanner) flag(program string, words []word) int {
	flag := words[0].text
	bare := strings.TrimLeft(flag, "-")
	if bare == "" {
		return 0
	}
	eq := strings.IndexByte(flag, '=')
	if eq > 0 && !strings.ContainsAny(flag[:eq], "/ ") {
		key := flag[:eq]
		name := strings.TrimPrefix(key, "-D")
		if len(name) == len(key) {
			name = strings.TrimLeft(key, "-")
		}
		value := flag[eq+1:]
		if isAssignment(value) && (bare[:1] == "e" || strings.HasPrefix(bare, "set") || strings.HasPrefix(bare, "env")) {
			inner, v, _ := strings.Cut(value, "=")
			s.keyed(key, key+"="+inner+"=", classify(inner), v)
			return 0
		}
		s.keyed(key, key+"=", classify(name), value)
		return 0
	}
	client := hostFlag(program)
	if client && strings.HasPrefix(flag, "-h") && len(flag) > 2 && flag[2] != '-' {
		if strings.HasPrefix(program, "mysql") || strings.HasPrefix(program, "mariadb") {
			s.keyed("-h", "-h", strong, flag[2:])
		}
		return 0
	}
	if len(words) < 2 || strings.HasPrefix(words[1].text, "-") {
		return 0
	}
	value := words[1].text
	s.word(words[1])
	lead := flag + " "
	switch flag {
	case "-h":
		if client {
			s.keyed(flag, lead, strong, value)
			return 1
		}
	case "-H", "-d", "--data", "--header", "-A", "-o", "-u", "--user":
		if program == "curl" || program == "wget" {
			return 1
		}
	}
	switch c := classify(bare); {
	case c == silent:
		return 1
	case c >= peer:
		// The flag may take no value: "--server start". A word then needs a sign of its own.
		if c == weak && !strings.ContainsAny(value, ".:") {
			return 0
		}
		s.keyed(flag, lead, c, value)
		return 1
	case c == quiet:
		s.keyed(flag, lead, c, value)
		return 1
	case hostArgument(program, 0, value):
		return 0
	case flag == "-t" || flag == "-p" || flag == "-v":
		return 1 // tags, ports and volumes of docker and its like
	case strings.HasPrefix(flag, "--") && strings.Contains(value, ":"):
		s.keyed(flag, lead, plain, value)
		return 1
	}
	return 0
}

// isImageTool knows programs whose arguments are images. A reference to one looks like host:port, or starts with a
// registry that the daemon of the node looks up.
func isImageTool(program string) bool {
	switch program {
	case "docker", "podman", "nerdctl", "buildah", "skopeo", "crane", "regctl", "oras", "trivy", "grype", "syft", "cosign", "notation",
		"ctr", "crictl":
		return true
	}
	return false
}

// isKaniko tells whether the words are options of kaniko, whose image starts it without a command.
func isKaniko(program string, words []word) bool {
	if program != "" && program != "executor" {
		return false
	}
	destination, build := false, false
	for _, w := range words {
		flag, _, _ := strings.Cut(w.text, "=")
		switch flag {
		case "--destination":
			destination = true
		case "--dockerfile", "--context":
			build = true
		}
	}
	return destination && build
}

// isImageFlag knows the flags of these programs that take an image or name the new container.
func isImageFlag(w string) bool {
	flag, _, _ := strings.Cut(w, "=")
	switch flag {
	case "--destination", "-d", "--image", "--tag", "-t", "--cache-repo", "--cache-from", "--cache-to", "--from", "--hostname", "-h", "--add-host",
		"--network-alias":
		return true
	}
	return false
}

// isImage tells whether an argument of such a program is no URL but of an image, and no text.
func isImage(v string) bool {
	scheme, _, url := strings.Cut(v, "://")
	return !strings.ContainsAny(v, " \n") && !isAssignment(v) && (!url || scheme == "docker" || scheme == "oci")
}

// hostFlag knows the clients whose -h takes a host.
func hostFlag(program string) bool {
	switch program {
	case "psql", "pg_isready", "pg_dump", "pg_dumpall", "pg_restore", "pg_basebackup", "createdb", "dropdb", "createuser", "vacuumdb", "mysql",
		"mysqladmin", "mysqldump", "mysqlcheck", "mysqlsh", "mariadb", "mariadb-admin", "mariadb-dump", "redis-cli", "mongodump",
		"mongorestore", "mongo", "clickhouse-client", "ldapsearch", "mosquitto_pub", "mosquitto_sub", "valkey-cli", "nats",
		"redis-benchmark", "pgbench":
		return true
	}
	return false
}

// hostArgument tells whether the n-th argument of a program that is no flag is a host.
func hostArgument(program string, n int, v string) bool {
	switch program {
	case "nc", "ncat", "netcat", "telnet", "ping", "ping6", "nslookup", "host", "tcping", "fping":
		return n == 0 && !isNumber(v)
	case "dig", "drill":
		return n == 0 && strings.Contains(v, ".") && v[0] != '@' && v[0] != '+'
	case "getent":
		return n == 1
	}
	return false
}

func isNumber(v string) bool {
	for i := 0; i < len(v); i++ {
		if !isDigit(v[i]) && v[i] != '.' && v[i] != 's' && v[i] != 'm' {
			return false
		}
	}
	return v != ""
}

// isAssignment tells whether a word is NAME=value.
func isAssignment(v string) bool {
	i := strings.IndexByte(v, '=')
	if i <= 0 || isDigit(v[0]) || v[0] == '-' {
		return false
	}
	for j := range i {
		if c := v[j]; !isLetter(c) && !isDigit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// unwrap takes off what stands before the program of a simple command: keywords, assignments, sudo and its like. The
// assignments are read on the way.
func unwrap(s *scanner, words []word) []word {
	for len(words) > 0 {
		w := words[0].text
		switch path.Base(w) {
		case "if", "then", "else", "elif", "while", "until", "do", "done", "fi", "!", "{", "}", "time", "sudo", "nohup", "env", "exec",
			"command", "export", "readonly", "declare", "local", "eval", "tini", "dumb-init", "--":
			words = words[1:]
			continue
		case "timeout", "sleep", "nice":
			words = words[1:]
			for len(words) > 0 && (isNumber(words[0].text) || strings.HasPrefix(words[0].text, "-")) {
				words = words[1:]
			}
			continue
		}
		if !isAssignment(w) {
			break
		}
		first, below := s.firstLines(words[:1])
		s.word(first[0])
		key, value, _ := strings.Cut(first[0].text, "=")
		s.keyed(key, key+"=", classify(key), value)
		s.lines(below)
		words = words[1:]
	}
	return words
}
