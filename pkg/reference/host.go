package reference

import "strings"

// hole is the byte that stands for what a template, a variable or a Secret would put there. It is no part of a host
// name and ends none, so that a name beside a hole is unknown.
const hole = 0

// unknown is a value that consists of what is not known.
const unknown = "\x00"

// maxHost is the length of a name without its final dot (RFC 1035 section 2.3.4, less length byte and root).
const maxHost = 253

// isHostByte tells whether c may stand in a host name as programs accept it: letters, digits, hyphens, dots, and
// underscores, which SRV names have and resolvers let pass.
func isHostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '-' || c == '.' || c == '_'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// isHost tells whether s is a host name that a resolver would ask a server for: labels of RFC 1123 section 2.1 with
// underscores, at most one final dot, no IPv4 address or version number (the last label has a letter), not localhost
// (RFC 6761 section 6.3).
func isHost(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxHost {
		return false
	}
	start, letter := 0, false
	srv := s[0] == '_'
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '.' {
			n := i - start
			if n == 0 || n > 63 || s[start] == '-' || s[i-1] == '-' || s[i-1] == '_' || s[start] == '_' && !srv {
				return false // __HOST__ is a place to fill in
			}
			if i < len(s) {
				letter = false
			}
			start = i + 1
			continue
		}
		if !isHostByte(s[i]) {
			return false
		}
		if isLetter(s[i]) {
			letter = true
		}
	}
	if !letter {
		return false
	}
	if srv && strings.Count(s, ".") < 2 || placeholder(s) {
		return false
	}
	last := s[strings.LastIndexByte(s, '.')+1:]
	return !strings.EqualFold(last, "localhost") && !strings.EqualFold(s, "localhost.localdomain") && !isHexNumber(last)
}

// placeholder tells whether s is a word such as DB_HOST that somebody is meant to replace.
func placeholder(s string) bool {
	return strings.IndexByte(s, '_') > 0 && strings.ToUpper(s) == s && strings.IndexByte(s, '.') < 0
}

// isHexNumber tells whether s is a number of inet_aton such as 0x7f.
func isHexNumber(s string) bool {
	if len(s) < 3 || s[0] != '0' || s[1]|0x20 != 'x' {
		return false
	}
	for i := 2; i < len(s); i++ {
		if !isDigit(s[i]) && (s[i]|0x20 < 'a' || s[i]|0x20 > 'f') {
			return false
		}
	}
	return true
}

// parsePort reads a port of 1 to 65535 without signs or leading zeros, 0 where s is none.
func parsePort(s string) int {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0
		}
		n = n*10 + int(s[i]-'0')
	}
	if n > 65535 {
		return 0
	}
	return n
}

// usualPort tells whether a number behind a word and a colon is more likely a port than a tag of an image, a
// count or a size. Ports below 1024 are those of services that are reached by name.
func usualPort(n int) bool {
	switch n {
	case 22, 25, 53, 80, 88, 110, 123, 143, 389, 443, 465, 514, 587, 636, 853, 873, 993, 995:
		return true
	}
	return n >= 1024
}

// isAddress tells whether s is shaped like an IPv4 address or an IPv6 address in brackets.
func isAddress(s string) bool {
	if strings.HasPrefix(s, "[") {
		return strings.HasSuffix(s, "]")
	}
	if strings.Count(s, ".") != 3 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) && s[i] != '.' {
			return false
		}
	}
	return true
}

// fileLike tells whether a dotted name looks like a file, a class or a member of a program rather than a host.
func fileLike(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	if last == s {
		return false
	}
	if last != "" && isUpper(last[0]) && strings.ToUpper(s) != s {
		return true // com.example.Driver
	}
	switch strings.ToLower(last) {
	case "yaml", "yml", "json", "log", "conf", "cfg", "cnf", "ini", "xml", "txt", "properties", "toml", "sock", "socket", "pid",
		"pem", "crt", "cer", "csr", "jks", "p12", "pfx", "keytab", "jar", "war", "ear", "class", "java", "so", "dll", "exe",
		"sh", "bash", "py", "rb", "js", "mjs", "ts", "lua", "pl", "php", "sql", "sqlite", "html", "htm", "css", "tmpl", "tpl",
		"j2", "gz", "tgz", "bz2", "xz", "zip", "tar", "zst", "csv", "tsv", "png", "jpg", "svg", "ico", "md", "rst", "wasm",
		"proto", "dtd", "xsd", "xsl", "go", "c", "h", "cc", "cpp", "kt", "scala":
		return true
	}
	return false
}
