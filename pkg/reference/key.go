package reference

// class tells what the key of a value says about it.
type class int8

const (
	// silent keys name hosts that the workload does not look up (what it listens on, what it allows, how browsers
	// reach it), or texts for people: nothing under them is a reference.
	silent class = iota - 2
	// quiet keys hold names of other things (a path, a user, a version): only URLs and names under the cluster domain
	// count.
	quiet
	// plain keys say nothing, and so does having no key.
	plain
	// peer keys hold something to connect to, often by a name of their own (a backend, a target): host:port counts, a
	// dotted name is likely, a bare word is none.
	peer
	// weak keys name a host, or a kind of server: a bare word is likely a host.
	weak
	// strong keys name a host: a bare word is one.
	strong
)

// maxKey is how many bytes at the end of a key are looked at.
const maxKey = 64

// keyWords holds the words of a key in lower case: split at everything but letters and digits, and at capitals inside
// a word. It keeps the last ones.
type keyWords struct {
	buf  [maxKey]byte
	from [maxKey]int8
	to   [maxKey]int8
	n    int
}

// split reads a key.
func (w *keyWords) split(key string) {
	if len(key) > maxKey {
		key = key[len(key)-maxKey:]
	}
	w.n = 0
	start := -1
	for i := 0; i <= len(key); i++ {
		inside := i < len(key) && (isLetter(key[i]) || isDigit(key[i]))
		if start >= 0 && (!inside || camel(key, i)) {
			w.from[w.n], w.to[w.n] = int8(start), int8(i)
			w.n++
			start = -1
		}
		if inside {
			if start < 0 {
				start = i
			}
			c := key[i]
			if isUpper(c) {
				c |= 0x20
			}
			w.buf[i] = c
		}
	}
}

// camel tells whether a new word starts at key[i], a letter or digit: "dbHost", "URLPrefix".
func camel(key string, i int) bool {
	if !isUpper(key[i]) {
		return false
	}
	prev := key[i-1]
	if !isUpper(prev) {
		return true
	}
	return i+1 < len(key) && isLetter(key[i+1]) && !isUpper(key[i+1])
}

// at returns the i-th word. The conversions in comparisons and switches do not allocate.
func (w *keyWords) at(i int) []byte {
	if i < 0 || i >= w.n {
		return nil
	}
	return w.buf[w.from[i]:w.to[i]]
}

// classify reads what the last words of a key say: "--ledger-endpoint", "SPRING_DATASOURCE_URL", "bootstrapServers".
func classify(key string) class {
	if key == "" {
		return plain
	}
	if key[0] == '$' || key[0] == '@' || key[0] == '.' {
		return silent // $schema, $ref, @context: names of JSON Schema and JSON-LD; .host: a field of an event in Vector
	}
	var w keyWords
	w.split(key)
	for i := range w.n {
		if silentWord(w.at(i), w.at(i+1)) {
			return silent
		}
	}
	if forBrowsers(&w) || ownName(&w) {
		return silent
	}
	n := w.n
	for n > 1 && qualifier(w.at(n-1)) {
		n--
	}
	if n == 0 {
		return plain
	}
	last, before := string(w.at(n-1)), string(w.at(n-2))
	switch last {
	case "name", "names":
		switch before {
		case "host":
			last, before = "hostname", string(w.at(n-3))
		case "server", "common":
			return silent // the name to verify, or the server's own
		case "secret", "secrets", "configmap", "map", "issuer", "class", "account":
			return silent // of an object in the cluster, which may look like the name of a Service
		}
	case "secret", "secrets":
		switch before {
		case "ca", "tls", "cert", "certificate", "webhook", "pull":
			return silent // likewise; DB_SECRET may hold a URL
		}
	case "issuer":
		if before == "cluster" {
			return silent // of cert-manager; that of tokens is a URL
		}
	case "map":
		if before == "config" {
			return silent
		}
	case "aliases", "alias":
		if before == "host" || before == "server" {
			return silent
		}
	case "address", "addresses", "addr":
		switch before {
		case "email", "mail", "mac", "wallet", "street", "postal", "billing", "from", "to", "sender", "reply", "contract":
			return silent
		}
	case "url", "urls", "uri", "uris", "location":
		switch before {
		case "schema", "namespace", "doc", "docs", "documentation", "license", "help", "support", "icon", "logo", "image",
			"homepage", "terms", "privacy", "avatar", "badge", "dashboard":
			return silent
		}
	}
	switch last {
	case "host", "hostname", "url", "uri", "address", "addr", "endpoint", "domain":
		switch before {
		case "external", "public", "root", "self", "own", "canonical", "instance", "report", "visible":
			return silent // how others reach the workload
		case "server":
			if last != "url" && last != "uri" && last != "domain" {
				return weak // mostly where the workload itself listens
			}
		case "":
			if last == "host" && key == "HOST" {
				return weak
			}
			// HOSTNAME is set to the pod's own name by the runtime; as a key of a file it may be anything.
			if last == "hostname" && w.n == 1 {
				if key == "HOSTNAME" {
					return silent
				}
				return weak
			}
			if last == "hostname" && n == 2 {
				return weak // HOST_NAME is as vague as HOST
			}
		}
	}
	switch last {
	case "hostname":
		switch before {
		case "node", "machine", "client", "pod", "container":
			return silent // where the workload runs
		}
	case "upstream":
		for i := range n {
			if string(w.at(i)) == "git" {
				return quiet // a branch or a remote
			}
		}
	}
	return lastWord(last, before)
}

// silentWord tells whether one word of a key, or two, make everything under it silent.
func silentWord(word, next []byte) bool {
	switch string(word) {
	case "listen", "listens", "listener", "listeners", "listening", "bind", "binding", "advertise", "advertised", "cors", "csp",
		"csrf", "allowed", "allow", "allowlist", "whitelist", "blacklist", "denylist", "deny", "blocked", "blocklist",
		"redirect", "redirects", "callback", "callbacks", "xmlns", "runbook", "noproxy", "sni", "san", "sans", "vhost",
		"vhosts", "cookie", "cookies", "exclude", "excluded", "excludes", "ignore", "ignored", "skip", "altnames", "dnsnames",
		"servername", "nonproxyhosts", "trusted", "helo", "ehlo":
		return true
	case "no", "non":
		return string(next) == "proxy"
	case "alt":
		return string(next) == "names" || string(next) == "name"
	case "dns": // of certificates: dnsNames, DNS.1
		return string(next) == "names" || string(next) == "name" || len(next) > 0 && isDigit(next[0])
	case "virtual", "known", "letsencrypt":
		return string(next) == "host" || string(next) == "hosts"
	case "auto": // TLS_AUTO_HOSTS, of certificates to ask for
		return string(next) == "hosts"
	case "announce":
		switch string(next) {
		case "host", "hostname", "address", "addr":
			return true
		}
	case "wsrep": // Galera's own address, as the other members and the donor of a state transfer see it
		return string(next) == "node" || string(next) == "sst"
	}
	return false
}

// ownName knows settings of programs that say how others call or see the program, by the first words of the key.
func ownName(w *keyWords) bool {
	second := string(w.at(1))
	switch string(w.at(0)) {
	case "kc":
		return second == "hostname"
	case "hostname":
		return second == "url" || second == "admin" // flags of Keycloak
	case "keycloak":
		return second == "frontend"
	case "nextauth":
		return w.n == 2 && second == "url" // NEXTAUTH_URL_INTERNAL is called
	case "wp":
		return second == "home" || second == "siteurl"
	case "gf":
		return second == "server"
	case "nginx", "dd":
		return w.n == 2 && (second == "hostname" || second == "host" && w.at(0)[0] == 'n')
	case "dubbo":
		return second == "protocol" || second == "protocols"
	}
	return false
}

// forBrowsers knows the prefixes of variables that build tools of web pages copy into what browsers load.
func forBrowsers(w *keyWords) bool {
	second := string(w.at(1))
	switch string(w.at(0)) {
	case "vite":
		return w.n > 1
	case "next", "nuxt", "expo":
		return second == "public"
	case "react":
		return second == "app"
	}
	return false
}

// qualifier tells whether a word at the end of a key only tells hosts of one kind apart: DB_HOST_READ, server.1.
func qualifier(word []byte) bool {
	digits := true
	for _, c := range word {
		digits = digits && isDigit(c)
	}
	if digits {
		return true
	}
	switch string(word) {
	case "list", "read", "write", "reader", "writer", "ro", "rw", "primary", "secondary", "master", "slave", "replica", "internal",
		"fallback", "string":
		return true
	}
	return false
}

func lastWord(last, before string) class {
	switch last {
	case "host", "hosts", "hostname", "hostnames", "addr", "addrs", "address", "addresses", "hostport", "hostports", "nameserver",
		"nameservers", "hostaddr":
		return strong
	case "url", "urls", "uri", "uris", "endpoint", "endpoints", "server", "servers", "upstream", "upstreams", "peers", "seeds":
		if before == "bootstrap" {
			return strong
		}
		return weak
	case "connect", "quorum":
		switch {
		case before == "zookeeper" || before == "zk":
			return strong
		case last == "connect":
			return peer
		}
		return plain
	case "join", "members":
		switch before {
		case "join", "memberlist", "retry":
			return strong // join_members of dskit's memberlist, retry_join of Consul
		}
		return peer
	case "backend", "backends", "broker", "brokers", "peer", "seed", "target", "targets", "dsn", "proxy", "gateway", "dest",
		"destination", "remote", "masters", "node", "nodes", "member", "connection", "conn", "resolver",
		"resolvers", "contactpoints", "points", "bootstrap", "brokerlist", "replicaof", "slaveof", "discovery", "collector",
		"authority", "sentinels", "sentinel", "forward", "store":
		return peer
	case "description", "summary", "message", "title", "homepage", "docs", "documentation", "doc", "link", "links", "license",
		"schema", "schemalocation", "image", "images", "audience", "audiences", "aud", "email", "emails", "expr", "regex", "regexp",
		"pattern", "patterns", "origin", "origins", "comment", "comments", "help", "logo", "icon", "label", "labels",
		"annotation", "annotations", "author", "maintainer", "copyright", "subject", "tooltip", "legend", "contact", "cn", "subj",
		"class", "configmap":
		return silent
	case "name", "names", "id", "ids", "key", "keys", "tag", "tags", "version", "password", "passwd", "pwd", "secret", "token",
		"cert", "certificate", "ca", "path", "paths", "file", "files", "filename", "dir", "directory", "package",
		"packages", "module", "modules", "format", "template", "namespace", "namespaces", "cron", "schedule", "timezone",
		"tz", "user", "username", "realm", "scope", "scopes", "date", "time", "level", "locale", "query", "sql", "type",
		"kind", "repository", "registry", "registries", "revision", "build", "size", "limit", "ttl", "timeout", "interval", "port", "ports",
		"domain", "domains", "issuer", "auth", "credentials", "selector", "resource", "resources":
		return quiet
	}
	return plain
}
