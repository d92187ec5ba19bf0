package reference

import "strings"

// conf reads files with a directive in each line: nginx, HAProxy, Apache, Fluent Bit, Redis, and those with "key = value"
// among them.
func (s *scanner) conf(text string, first int) {
	base := len(s.path)
	haproxy := strings.Contains(text, "\nbackend ") || strings.HasPrefix(text, "backend ") || strings.Contains(text, "\nlisten ")
	muted := false // within a section such as [global_tags]
	l := lines{text: text}
	for l.next() && !s.full() {
		line := strings.TrimSpace(l.line)
		if line == "" || isComment(line) || line == "}" {
			continue
		}
		s.at(first + l.n)
		line = uncomment(line, "#")
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			s.path = append(s.path[:base], strings.Trim(line, "[]"))
			muted = mutesSection(s.path[base])
			continue
		}
		if muted {
			continue
		}
		if end := mutedElement(line); end != "" {
			for l.next() && !strings.HasPrefix(strings.TrimSpace(l.line), end) {
			}
			continue
		}
		if key, value, ok := pair(line); ok && (strings.IndexByte(key, '/') < 0) {
			top := len(s.path)
			s.path = append(s.path, key)
			value = strings.TrimSuffix(uncomment(value, "//"), ";")
			switch c := classify(key); {
			case opensCollection(value) && value != "{":
				s.flow(blank(l.collection(value)), c)
			default:
				s.value(c, strings.TrimSuffix(value, ","))
			}
			s.path = s.path[:top]
			continue
		}
		for statement := range statements(line) {
			s.directive(statement, haproxy)
		}
	}
	s.path = s.path[:base]
}

// mutedElement returns the start of the line that ends a section of Fluentd in which keys are fields of events or labels,
// empty where line opens none. A section <label @NAME> is a route and holds what any other does.
func mutedElement(line string) string {
	if len(line) < 3 || line[0] != '<' {
		return ""
	}
	name := line[1:]
	if i := strings.IndexAny(name, " >"); i >= 0 {
		name = name[:i]
	}
	if name == "record" || mutes(name) {
		return "</" + name
	}
	return ""
}

// statements yields what stands between braces and semicolons: "location / { proxy_pass http://a; }" holds two.
func statements(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if !strings.ContainsAny(line, ";{}") {
			yield(line)
			return
		}
		start := 0
		var quote byte
		masked := blank(line)
		for i := 0; i <= len(masked); i++ {
			if i < len(masked) {
				c := masked[i]
				if quote != 0 {
					if c == quote {
						quote = 0
					}
					continue
				}
				if c == '"' || c == '\'' {
					quote = c
				}
				if c != ';' && c != '{' && c != '}' {
					continue
				}
			}
			if part := strings.TrimSpace(line[start:i]); part != "" && !yield(part) {
				return
			}
			start = i + 1
		}
	}
}

// directive reads one statement.
func (s *scanner) directive(line string, haproxy bool) {
	name, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	rest = strings.TrimSpace(rest)
	if rest == "" {
		s.free(line)
		return
	}
	lower := strings.ToLower(name)
	top := len(s.path)
	s.path = append(s.path, name)
	defer func() {
		s.path, s.pass = s.path[:top], false
	}()
	words := strings.Fields(blank(rest))
	if len(words) == 0 {
		return
	}
	first := unquote(words[0])
	switch lower {
	case "upstream":
		s.upstreams = append(s.upstreams, strings.ToLower(first))
	case "server_name", "listen", "return", "rewrite", "add_header", "proxy_set_header", "fastcgi_param", "uwsgi_param",
		"grpc_set_header", "more_set_headers", "error_page", "location", "if", "map", "acl", "http-request", "http-response",
		"redirect", "bind", "use_backend", "default_backend", "backend", "frontend", "option", "log_format", "log-format",
		"proxy_redirect", "proxy_cookie_domain", "valid_referers", "sub_filter", "geo", "include", "load_module", "split_clients",
		"servername", "serveralias", "proxypassreverse", "proxypassreversecookiedomain", "header", "requestheader", "rewriterule",
		"rewritecond", "redirectmatch", "serveradmin", "errordocument", "logformat", "customlog", "sslcertificatefile", "name",
		"match", "tag", "proxy_ssl_name", "http-check", "tcp-request", "monitor-uri", "errorfile", "description", "announce-ip",
		"cluster-announce-ip", "replica-announce-ip", "cluster-announce-hostname", "<virtualhost", "user", "maxmemory-policy",
		"local-zone", "local-data", "default_type", "types", "use-server", "stats", "requirepass", "masterauth":
		// Names of the program's own, of those who call it, or of files.
	case "server":
		if haproxy && len(words) > 1 {
			first = words[1]
		}
		s.scalar(weak, first)
	case "proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass", "auth_request", "mirror":
		s.pass = true
		if !strings.HasPrefix(first, "/") {
			s.scalar(strong, first)
		}
	case "set": // of nginx; proxy_pass may name it, and then looks for an upstream block first
		s.pass = true
		s.free(rest)
	case "replicaof", "slaveof":
		s.scalar(strong, withPort(words))
	case "sentinel":
		if len(words) > 2 && words[0] == "monitor" {
			s.scalar(strong, withPort(words[2:]))
		}
	case "nameserver", "server-template":
		if len(words) > 1 {
			first = words[len(words)-1]
			for _, w := range words[1:] {
				if strings.ContainsAny(w, ".:") {
					first = w
					break
				}
			}
		}
		s.scalar(strong, first)
	case "resolver":
		for _, w := range words {
			if strings.IndexByte(w, '=') < 0 {
				s.scalar(strong, unquote(w))
			}
		}
	default:
		c := classify(name)
		if c == silent {
			return
		}
		if c >= peer && (len(words) == 1 || len(words) == 2 && parsePort(words[1]) > 0) {
			s.scalar(min(c, weak), withPort(words))
			return
		}
		s.free(rest)
	}
}

// withPort returns the first word, with the second one behind a colon where that is a port.
func withPort(words []string) string {
	host := unquote(words[0])
	if len(words) > 1 && parsePort(words[1]) > 0 && isHost(host) {
		return host + ":" + words[1]
	}
	return host
}
