package reference

import "strings"

// caddy reads a Caddyfile. Its site addresses are how the server is called; only the directives that connect to
// something name hosts to look up: reverse_proxy and the two that are short for it
// (https://caddyserver.com/docs/caddyfile/directives/reverse_proxy).
func (s *scanner) caddy(text string, first int) {
	base := len(s.path)
	defer func() { s.path = s.path[:base] }()
	depth, proxy := 0, 0 // proxy is the depth within the block of such a directive, 0 outside
	l := lines{text: text}
	for l.next() && !s.full() {
		words := strings.Fields(blank(uncomment(strings.TrimSpace(l.line), "#")))
		if len(words) == 0 {
			continue
		}
		s.at(first + l.n)
		opens := words[len(words)-1] == "{"
		if opens {
			words = words[:len(words)-1]
			depth++
		}
		if len(words) == 0 {
			continue
		}
		s.path = append(s.path[:base], words[0])
		switch words[0] {
		case "}":
			if depth == proxy {
				proxy = 0
			}
			depth--
		case "reverse_proxy", "php_fastcgi", "forward_auth":
			if opens {
				proxy = depth
			}
			targets := words[1:]
			if len(targets) > 0 && strings.IndexByte("/*@", targets[0][0]) >= 0 {
				targets = targets[1:] // a matcher
			}
			s.caddyTargets(targets)
		case "to":
			if proxy > 0 && depth == proxy {
				s.caddyTargets(words[1:])
			}
		case "dynamic": // dynamic a NAME PORT, dynamic srv NAME
			if proxy > 0 && len(words) > 2 && (words[1] == "a" || words[1] == "srv") {
				s.scalar(strong, withPort(words[2:]))
			}
		}
	}
}

// caddyTargets reads upstream addresses, of which unix/ and unix+h2c/ are sockets.
func (s *scanner) caddyTargets(words []string) {
	for _, w := range words {
		if !strings.HasPrefix(w, "unix") || strings.IndexByte(w, '/') < 0 {
			s.scalar(strong, unquote(w))
		}
	}
}
