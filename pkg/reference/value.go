package reference

import (
	"strconv"
	"strings"
)

// scanner collects the references of one value: a variable, a command line, or a text.
type scanner struct {
	domain    string
	origin    Origin
	found     []found
	upstreams []string

	// path holds the keys that enclose the value, in the text; key is what stands for them where it is not empty.
	path []string
	key  string
	line int
	// lead is what stands in front of the host in the excerpt of a command line: a flag or the name of the program.
	lead string
	// prose is true where the value is a piece of free text.
	prose bool
	// pass is true where the host may be an upstream block of nginx.
	pass  bool
	depth int
	// inline is true within a text that stands in one line of another.
	inline bool
}

func newScanner(domain string, o Origin) *scanner { return &scanner{domain: domain, origin: o} }

// hit is one host as it stands in a value.
type hit struct {
	host, scheme string
	port         int
	strength     Strength
	// user and tail tell whether a user stands before and a path behind the host; both are left out of excerpts.
	user, tail bool
}

// full tells whether no more references are taken.
func (s *scanner) full() bool { return len(s.found) >= MaxReferences }

// emit records a host. The same host again in the same line or variable adds what is new to the first.
func (s *scanner) emit(h hit) {
	if s.full() {
		return
	}
	if s.prose && h.strength == Certain && h.scheme != "" {
		h.strength = Likely
	}
	host := strings.ToLower(h.host)
	o := s.origin
	o.Line = s.line
	if o.Kind != Env {
		o.Key = s.key
		if o.Key == "" {
			o.Key = strings.Join(s.path, ".")
		}
	}
	if o.Kind == Arg || o.Kind == Command {
		o.Excerpt = s.excerpt(h)
	}
	for i := len(s.found) - 1; i >= 0; i-- {
		r := &s.found[i]
		if r.Origin.Line != s.line || (s.line == 0 && r.Origin.Excerpt != o.Excerpt && r.Origin.Key != o.Key) {
			break
		}
		if r.Host == host && (r.Port == h.port || r.Port == 0 || h.port == 0) {
			r.Port = max(r.Port, h.port)
			r.Strength = max(r.Strength, h.strength)
			if r.Scheme == "" {
				r.Scheme = h.scheme
			}
			return
		}
	}
	s.found = append(s.found, found{Reference{host, h.port, h.scheme, h.strength, o}, s.pass})
}

// excerpt quotes a hit without what could be secret.
func (s *scanner) excerpt(h hit) string {
	var b strings.Builder
	b.WriteString(s.lead)
	if h.scheme != "" {
		b.WriteString(h.scheme)
		b.WriteString("://")
	}
	if h.user {
		b.WriteString("***@")
	}
	b.WriteString(h.host)
	if h.port > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(h.port))
	}
	if h.tail {
		b.WriteString("/…")
	}
	return b.String()
}

// variable reads the value of an environment variable.
func (s *scanner) variable(name, value string) {
	s.origin.Key = name
	if len(value) > MaxText {
		value = value[:MaxText]
	}
	if classify(name) == silent {
		return
	}
	if strings.IndexByte(value, '\n') >= 0 && strings.TrimSpace(value) != "" && strings.Count(strings.TrimSpace(value), "\n") > 0 {
		s.document(name, value)
		for i := range s.found {
			s.found[i].Origin.Line = 0
		}
		return
	}
	s.value(classify(name), value)
}

// value reads a value of one line under a key of the given class.
func (s *scanner) value(c class, v string) {
	if c == silent || s.full() {
		return
	}
	v = unquote(v)
	if v == "" || hostless(v) {
		return
	}
	if strings.IndexByte(v, ':') < 0 && strings.IndexByte(v, '.') < 0 && strings.IndexByte(v, '=') < 0 {
		// No port, no dot, no pair: only a bare word is left, which counts under a key that names a host.
		if c >= weak {
			s.list(c, blank(v))
		}
		return
	}
	v = blank(v)
	switch v[0] {
	case '{', '[':
		if len(v) > 2 && s.depth < maxDepth {
			s.depth++
			s.flow(v, c)
			s.depth--
			return
		}
	case '-':
		if c > silent && strings.ContainsAny(v, " =") {
			s.options(v)
			return
		}
	}
	s.scalar(c, v)
}

// hostless tells, at little cost, that a value without a dot, a colon and an equals sign is no list of bare host names
// either: it starts with no letter and no quote, or has capitals or blanks without commas.
func hostless(v string) bool {
	if v == "" {
		return true
	}
	odd := !isLetter(v[0])
	for i := range len(v) {
		switch c := v[i]; {
		case c == '.' || c == ':' || c == '=' || c == ',' || c == ';' || c == '"' || c == '\'' || c == '`' || c == hole:
			return false
		case isUpper(c) || c == ' ':
			odd = true
		}
	}
	return odd
}

// scalar reads a value without templates that is no collection.
func (s *scanner) scalar(c class, v string) {
	url := s.urls(v)
	dsn := s.dsn(v)
	s.clusterNames(v)
	if !url && !dsn && c > quiet {
		s.list(c, v)
	}
}

// free reads a line of text in which a key was not recognised.
func (s *scanner) free(v string) {
	if strings.IndexByte(v, ':') < 0 && strings.IndexByte(v, '.') < 0 {
		return
	}
	v = blank(v)
	s.prose = true
	s.urls(v)
	s.clusterNames(v)
	s.prose = false
}

// options reads a value that holds command line options, as JAVA_OPTS does.
func (s *scanner) options(v string) {
	if s.depth >= maxDepth {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	var words []word
	for f := range strings.FieldsSeq(v) {
		words = append(words, word{text: unquote(f), kind: s.origin.Kind, line: s.line})
	}
	s.simple(words)
}

// unquote takes blanks and one pair of quotes off.
func unquote(v string) string {
	v = strings.TrimSpace(v)
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'' || v[0] == '`') && v[len(v)-1] == v[0] {
		v = strings.TrimSpace(v[1 : len(v)-1])
	}
	return v
}

// urls reads every scheme://authority and tells whether there is one.
func (s *scanner) urls(v string) bool {
	found := false
	for off := 0; ; {
		i := strings.Index(v[off:], "://")
		if i < 0 || s.full() {
			return found
		}
		i += off
		found = true
		s.url(v, off, i)
		off = i + len("://")
	}
}

// url reads the URL whose "://" is at v[i]; its scheme starts at v[from] or later.
func (s *scanner) url(v string, from, i int) {
	start := i
	for start > from && isSchemeByte(v[start-1]) {
		start--
	}
	for start < i && !isLetter(v[start]) {
		start++
	}
	scheme := strings.ToLower(v[start:i])
	kind := unknownScheme
	switch {
	case start > 0 && v[start-1] == hole:
		scheme = "" // $(SCHEME)://host
	case scheme == "":
		return
	default:
		// jdbc:mysql:loadbalance://a,b: the second word is the protocol.
		head := start
		for head > from && (isSchemeByte(v[head-1]) || v[head-1] == ':') {
			head--
		}
		if j := v[head:i]; len(j) > 5 && strings.EqualFold(j[:5], "jdbc:") {
			scheme, _, _ = strings.Cut(strings.ToLower(j[5:]), ":")
		}
		kind = schemeKind(scheme)
	}
	if kind == opaqueScheme {
		return
	}
	rest := v[i+3:]
	end := 0
	for end < len(rest) && !endsAuthority(rest[end]) {
		end++
	}
	authority, rest := rest[:end], rest[end:]
	if (scheme == "dns" || scheme == "passthrough") && len(rest) > 1 && rest[0] == '/' {
		// gRPC names: dns://authority/host:port, the authority being a DNS server (grpc/grpc doc/naming.md).
		authority = rest[1:]
		end = 0
		for end < len(authority) && !endsAuthority(authority[end]) {
			end++
		}
		authority, rest = authority[:end], authority[end:]
	}
	if strings.HasPrefix(rest, "//") {
		// amqp://a,amqp://b: what stands before these slashes is the scheme of the next URL.
		authority = authority[:max(strings.LastIndexByte(authority, ','), 0)]
	}
	if spoils(rest) {
		// The last host is not complete, those before it are.
		authority += unknown
	}
	user := false
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority = true, authority[at+1:]
	}
	tail := len(rest) > 1 && (rest[0] == '/' || rest[0] == '?' || rest[0] == '#')
	first := true
	for item := range strings.SplitSeq(authority, ",") {
		host, port, ok := splitHostPort(item)
		if s.prose && strings.HasSuffix(host, ".") && port == 0 && !tail {
			host = host[:len(host)-1] // the end of a sentence
		}
		lone := first
		first = false
		if !ok || !isHost(host) || namesOnly(host, rest) {
			continue
		}
		if !lone && port == 0 && (s.prose || strings.HasPrefix(scheme, "http") || scheme == "") {
			continue
		}
		strength := Certain
		if kind == unknownScheme {
			strength = Likely
			if port == 0 && !strings.Contains(host, ".") && scheme != "" {
				continue
			}
		}
		s.emit(hit{host: host, port: port, scheme: scheme, strength: strength, user: user, tail: tail})
	}
}

func isSchemeByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '+' || c == '-' || c == '.' || c == '_'
}

// endsAuthority tells whether c ends the authority of a URL, there (RFC 3986 section 3.2) or in the text around it.
func endsAuthority(c byte) bool {
	switch c {
	case '/', '?', '#', '"', '\'', '`', '<', '>', '\\', '{', '}', '(', ')', '|', '^', ';', '&':
		return true
	}
	return c <= ' ' && c != hole
}

// spoils tells whether the text behind a host shows that the host goes on with something that is no literal.
func spoils(rest string) bool {
	if rest == "" {
		return false
	}
	switch rest[0] {
	case '{', '(', '^', hole, '*':
		return true
	case '<':
		return !strings.HasPrefix(rest, "</") && !strings.HasPrefix(rest, "<!")
	case '\\':
		if len(rest) == 1 {
			return false // a line goes on
		}
		return strings.IndexByte("\"'nrt/\n", rest[1]) < 0 // an escape of the text around, or a regular expression
	}
	return false
}

// splitHostPort splits host, host:port and host:, and any of them with a port that is not known. A literal address in
// brackets is not ok.
func splitHostPort(s string) (host string, port int, ok bool) {
	i := strings.IndexByte(s, ':')
	if i < 0 {
		return s, 0, true
	}
	host, p := s[:i], s[i+1:]
	if p == "" || strings.Trim(p, unknown) == "" {
		return host, 0, true
	}
	port = parsePort(p)
	return host, port, port > 0
}

type scheme int

const (
	unknownScheme scheme = iota
	// networkScheme has a host as its authority.
	networkScheme
	// opaqueScheme has a bucket, a file or a key there.
	opaqueScheme
)

func schemeKind(name string) scheme {
	base, plus, _ := strings.Cut(name, "+")
	switch plus {
	case "unix", "socket", "file", "uds":
		return opaqueScheme
	}
	switch base {
	case "http", "https", "ws", "wss", "h2", "h2c", "grpc", "grpcs", "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "tls", "tcps",
		"ssl", "redis", "rediss", "amqp", "amqps", "mongodb", "postgres", "postgresql", "pgsql", "mysql", "mysqlx", "mariadb",
		"nats", "kafka", "ldap", "ldaps", "smtp", "smtps", "imap", "imaps", "pop3", "pop3s", "ftp", "ftps", "sftp", "ssh", "git",
		"svn", "mqtt", "mqtts", "stomp", "zk", "zookeeper", "etcd", "etcds", "elasticsearch", "clickhouse", "cassandra", "consul",
		"statsd", "syslog", "dns", "dnssrv", "dnssrvnoa", "passthrough", "bolt", "neo4j", "neo4js", "hdfs", "webhdfs", "thrift",
		"rmi", "t3", "t3s", "rtsp", "rtsps", "rtmp", "rtmps", "srt", "socks", "socks4", "socks5", "socks5h", "nfs", "smb", "cifs",
		"otlp", "jaeger", "zipkin", "fluentd", "pulsar", "memcached", "memcache", "sqlserver", "mssql", "oracle", "hive2", "presto",
		"trino", "cockroachdb", "cockroach", "couchbase", "couchbases", "couchdb", "influxdb", "plaintext", "sasl_plaintext",
		"sasl_ssl", "gelf", "snmp", "ntp", "coap", "coaps", "quic", "vertica", "db2", "arangodb", "tarantool", "rabbitmq",
		"gemini", "xmpp", "sip", "sips", "stun", "turn", "turns", "opentsdb", "graphite", "riak", "tikv", "pd", "dameng",
		"firebirdsql", "avatica", "solr", "nsq", "beanstalk", "beanstalkd", "gearman", "rsync":
		return networkScheme
	case "file", "unix", "unixgram", "unixpacket", "s3", "s3a", "s3n", "gs", "gcs", "az", "azblob", "abfs", "abfss", "wasb", "wasbs",
		"adl", "oss", "cos", "obs", "data", "mailto", "urn", "arn", "classpath", "spiffe", "chrome-extension", "moz-extension",
		"about", "blob", "resource", "config", "template", "projects", "secret", "secrets", "ref", "env", "vault", "ssm",
		"awssm", "gcpsm", "awskms", "gcpkms", "azurekeyvault", "azurekms", "kms", "hashivault", "base64key", "jar", "zip", "npm",
		"inmemory", "memory", "mem", "mock", "stdout", "stderr", "fd", "dev", "pkcs11", "sqlite", "sqlite3", "h2mem", "duckdb",
		"bigquery", "dynamodb", "firestore", "kinesis", "sqs", "sns", "pubsub", "awssqs", "awssns", "gcppubsub", "android-app",
		"tel", "javascript", "tag", "did", "ipfs", "magnet", "dbfs", "vsock", "npipe", "docker-daemon", "containers-storage",
		"oci-layout", "xds", "static", "local", "null", "noop", "dir", "path", "user", "systemd", "kubernetes", "configmap":
		return opaqueScheme
	}
	return unknownScheme
}

// namesOnly tells whether a URL of this host and path is a name that nobody calls: XML namespaces, JSON schemas, and
// the licences at the head of files.
func namesOnly(host, rest string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.HasPrefix(host, "schemas.") || strings.HasPrefix(host, "xmlns.") {
		return true
	}
	switch host {
	case "www.w3.org", "w3.org", "json-schema.org", "schema.org", "www.schema.org", "purl.org", "java.sun.com", "www.jboss.org",
		"www.gnu.org", "opensource.org", "creativecommons.org":
		return true
	case "www.springframework.org", "maven.apache.org", "logging.apache.org", "www.apache.org", "activemq.apache.org",
		"hibernate.org", "www.hibernate.org", "www.ehcache.org", "www.infinispan.org", "docs.oasis-open.org":
		for _, p := range []string{"/schema", "/POM", "/xsd", "/licenses", "/dtd", "/ns", "/config"} {
			if strings.HasPrefix(rest, p) {
				return true
			}
		}
	}
	return false
}

// dsn reads the forms of data source names that are no URLs and tells whether v is one.
func (s *scanner) dsn(v string) bool {
	is := false
	// user:password@tcp(db:3306)/name, of github.com/go-sql-driver/mysql.
	for _, network := range []string{"tcp(", "udp("} {
		for off := 0; ; {
			i := strings.Index(v[off:], network)
			if i < 0 {
				break
			}
			i += off
			off = i + len(network)
			inner, rest, ok := strings.Cut(v[off:], ")")
			if !ok || i > 0 && v[i-1] != '@' {
				continue
			}
			is = true
			if host, port, ok := splitHostPort(inner); ok && isHost(host) {
				s.emit(hit{host: host, port: port, strength: Certain, user: i > 0, tail: len(rest) > 1})
			}
		}
	}
	if i := strings.Index(v, "jdbc:oracle:"); i >= 0 {
		if at := strings.IndexByte(v[i:], '@'); at >= 0 {
			is = true
			s.oracle(strings.TrimPrefix(v[i+at+1:], "//"))
		}
	}
	if strings.IndexByte(v, '=') >= 0 && s.pairs(v) {
		is = true
	}
	return is
}

// oracle reads host, host:port:sid and host:port/service behind the @ of a URL of Oracle's thin driver.
func (s *scanner) oracle(v string) {
	end := 0
	for end < len(v) && isHostByte(v[end]) {
		end++
	}
	host, rest, port := v[:end], v[end:], 0
	if rest != "" && rest[0] == ':' {
		digits := 1
		for digits < len(rest) && isDigit(rest[digits]) {
			digits++
		}
		port, rest = parsePort(rest[1:digits]), rest[digits:]
	}
	if rest != "" && rest[0] == hole || !isHost(host) {
		return
	}
	s.emit(hit{host: host, port: port, scheme: "oracle", strength: Certain, tail: rest != ""})
}

// pairs reads connection strings of key=value pairs: libpq's "host=db port=5432", ADO's "Server=db;Database=x",
// Oracle's (HOST=db)(PORT=1521). A host counts only beside another key of such strings.
func (s *scanner) pairs(v string) bool {
	separator := func(r rune) bool {
		switch r {
		case ' ', '\t', '\n', '&', '(', ')', '?', '"', '\'':
			return true
		}
		return false
	}
	if strings.Contains(v, ";") {
		separator = func(r rune) bool { return r == ';' || r == '"' || r == '\'' }
	}
	company := false
	for f := range strings.FieldsFuncSeq(v, separator) {
		k, _, ok := strings.Cut(f, "=")
		if ok && companyOfHost(k) {
			company = true
			break
		}
	}
	if !company {
		return false
	}
	is := false
	port := 0
	for f := range strings.FieldsFuncSeq(v, separator) {
		if k, p, ok := strings.Cut(f, "="); ok && strings.EqualFold(strings.TrimSpace(k), "port") {
			port = parsePort(strings.TrimSpace(p))
			break
		}
	}
	for f := range strings.FieldsFuncSeq(v, separator) {
		k, value, ok := strings.Cut(f, "=")
		if !ok || !hostOfPair(k) {
			continue
		}
		is = true
		value = strings.TrimSpace(value)
		value = strings.TrimPrefix(value, "tcp:")
		value, _, _ = strings.Cut(value, `\`) // Server=db\instance
		fallback := port
		if _, p, ok := strings.Cut(value, ","); ok && parsePort(strings.TrimSpace(p)) > 0 {
			fallback = parsePort(strings.TrimSpace(p)) // Server=db,1433
		}
		for item := range strings.SplitSeq(value, ",") {
			host, p, ok := splitHostPort(strings.TrimSpace(item))
			if !ok || !isHost(host) {
				continue
			}
			if p == 0 {
				p = fallback
			}
			s.emit(hit{host: host, port: p, strength: Certain, tail: true})
		}
	}
	return is
}

// companyOfHost tells whether a key stands beside the host in connection strings and hardly elsewhere.
func companyOfHost(key string) bool {
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "user", "user id", "uid", "username", "dbname", "database", "initial catalog", "password", "pwd", "sslmode", "port",
		"service_name", "sid", "integrated security":
		return true
	}
	return false
}

func hostOfPair(key string) bool {
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "host", "hostaddr", "hostname", "server", "data source", "datasource", "addr", "address", "network address":
		return true
	}
	return false
}

// clusterNames reads names that end in svc, in svc and a domain, or in pod and the cluster domain, anywhere in v.
func (s *scanner) clusterNames(v string) {
	for _, label := range []string{".svc", ".pod."} {
		for off := 0; !s.full(); {
			i := strings.Index(v[off:], label)
			if i < 0 {
				break
			}
			i += off
			start, end := i, i+len(label)
			for start > off && isHostByte(v[start-1]) {
				start--
			}
			for end < len(v) && isHostByte(v[end]) {
				end++
			}
			off = end
			s.clusterName(v, start, end)
		}
	}
}

func (s *scanner) clusterName(v string, start, end int) {
	if start > 0 && !opensName(v, start) || spoils(v[end:]) {
		return
	}
	name := v[start:end]
	if s.prose && strings.HasSuffix(name, ".") && (end == len(v) || v[end] <= ' ') {
		name = name[:len(name)-1]
	}
	strength, ok := s.underDomain(name)
	if !ok || !isHost(name) {
		return
	}
	if end < len(v) && strings.IndexByte("*%$+~", v[end]) >= 0 {
		return
	}
	port := 0
	if end < len(v) && v[end] == ':' {
		digits := end + 1
		for digits < len(v) && isDigit(v[digits]) {
			digits++
		}
		port = parsePort(v[end+1 : digits])
	}
	s.emit(hit{host: name, port: port, strength: strength})
}

// opensName tells whether a name may begin at v[start].
func opensName(v string, start int) bool {
	switch c := v[start-1]; c {
	case '"', '\'', '`', '=', ',', ';', '(', '[', '{', ':', '@', '|', '<', '!':
		return true
	case '/':
		return start > 1 && v[start-2] == '/'
	case '>':
		return true
	default:
		return c <= ' ' && c != hole
	}
}

// underDomain tells whether name is one of a Service or a pod, with at least two labels in front of svc or pod, and how
// sure that is.
func (s *scanner) underDomain(name string) (Strength, bool) {
	lower := strings.ToLower(strings.TrimSuffix(name, "."))
	for _, domain := range []string{s.domain, "cluster.local"} {
		if rest, ok := strings.CutSuffix(lower, "."+domain); ok {
			rest, svc := strings.CutSuffix(rest, ".svc")
			pod := false
			if !svc {
				rest, pod = strings.CutSuffix(rest, ".pod")
			}
			return Certain, (svc || pod) && strings.Contains(rest, ".")
		}
	}
	if rest, ok := strings.CutSuffix(lower, ".svc"); ok {
		return Likely + strongIf(!packageLike(rest, name)), strings.Contains(rest, ".")
	}
	before, after, ok := strings.Cut(lower, ".svc.")
	if !ok || !strings.Contains(before, ".") || packageLike(before, name) {
		return 0, false
	}
	return Likely, isHost(after) && len(after) > 1
}

func strongIf(ok bool) Strength {
	if ok {
		return 1
	}
	return 0
}

// packageLike tells whether a dotted name starts as packages of Java do, or holds capitals.
func packageLike(before, name string) bool {
	first, _, _ := strings.Cut(before, ".")
	switch first {
	case "com", "org", "net", "io", "de", "fr", "uk", "edu", "gov", "java", "javax", "jakarta":
		return true
	}
	return strings.ToLower(name) != name
}

// list reads a value that is a host, or hosts with commas, semicolons or blanks between them.
func (s *scanner) list(c class, v string) {
	blanks := false
	separator := func(r rune) bool { return r == ',' || r == ';' }
	if !strings.ContainsAny(v, ",;") {
		if strings.ContainsAny(v, " \t\n") {
			blanks = true
			separator = func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }
		}
	}
	if c == plain || blanks {
		// Without a key that speaks for hosts, or in words with blanks between them, each item must be one.
		if c == plain && blanks {
			return
		}
		for item := range strings.FieldsFuncSeq(v, separator) {
			it := parseItem(item)
			if it.address {
				continue
			}
			if !it.ok || blanks && it.port == 0 && !it.unknownPort && !strings.Contains(it.host, ".") ||
				c == plain && !it.plausible() {
				return
			}
		}
	}
	clean := true // every item is a host, an address or unknown
	for item := range strings.FieldsFuncSeq(v, separator) {
		it := parseItem(item)
		clean = clean && (it.ok || it.address)
	}
	for item := range strings.FieldsFuncSeq(v, separator) {
		if s.full() {
			return
		}
		it := parseItem(item)
		if !it.ok || it.address || !clean && it.port == 0 && !it.unknownPort {
			continue
		}
		if strength := it.judge(c); strength > 0 {
			s.emit(hit{host: it.host, port: it.port, scheme: it.scheme, strength: strength, user: it.user, tail: it.tail})
		}
	}
}

// item is one member of a list of hosts.
type item struct {
	host, scheme      string
	port              int
	unknownPort       bool
	address           bool // an IP address, or not known
	user, tail, named bool
	ok                bool
}

// parseItem reads host, host:port, host:port/path, host:port:port, each with a prefix such as "dns+", "tcp:", "name="
// or "user:password@".
func parseItem(v string) item {
	it := splitItem(v)
	if !it.ok && strings.IndexByte(v, hole) >= 0 {
		it.address = true
	}
	return it
}

func splitItem(v string) item {
	var it item
	v = strings.TrimSpace(v)
	v = strings.Trim(v, `"'`)
	if v == "" || strings.Trim(v, unknown) == "" {
		it.address = true
		return it
	}
	for _, p := range []string{"dns", "dnssrv", "dnssrvnoa", "srv", "srvr"} {
		if len(v) > len(p) && v[len(p)] == '+' && v[:len(p)] == p {
			it.scheme, v = p, v[len(p)+1:]
			break
		}
	}
	for _, p := range []string{"tcp:", "udp:", "tls:", "ssl:"} {
		if rest, ok := strings.CutPrefix(v, p); ok && rest != "" && !isDigit(rest[0]) {
			v = rest
			break
		}
	}
	if at := strings.LastIndexByte(v, '@'); at >= 0 {
		it.user, v = true, v[at+1:]
	}
	if name, rest, ok := strings.Cut(v, "="); ok {
		if strings.ContainsAny(name, "/:") {
			return it
		}
		it.named, v = true, rest
	}
	if strings.HasPrefix(v, "[") {
		it.address = true
		return it
	}
	end := 0
	for end < len(v) && isHostByte(v[end]) {
		end++
	}
	it.host = v[:end]
	rest := v[end:]
	if rest != "" && rest[0] == ':' {
		digits := 1
		for digits < len(rest) && isDigit(rest[digits]) {
			digits++
		}
		it.port = parsePort(rest[1:digits])
		if it.port == 0 {
			for digits < len(rest) && rest[digits] == hole {
				digits++
			}
			if digits == 1 || rest[1] != hole {
				return it
			}
			it.unknownPort = true
		}
		rest = rest[digits:]
		for rest != "" && rest[0] == ':' { // zk-0:2888:3888, memcached:11211:1
			n := 1
			for n < len(rest) && (isDigit(rest[n]) || isLetter(rest[n])) {
				n++
			}
			if n == 1 {
				return it
			}
			rest = rest[n:]
		}
	}
	if rest != "" && rest[0] != '/' && rest[0] != '?' {
		return it
	}
	it.tail = len(rest) > 1
	it.address = isAddress(it.host)
	it.ok = it.address || isHost(it.host)
	return it
}

// plausible tells whether the shape alone makes the item a host and a port.
func (it *item) plausible() bool {
	if it.scheme != "" && strings.Contains(it.host, ".") {
		return true
	}
	return it.port > 0 && usualPort(it.port) && len(it.host) > 1 && isLetter(it.host[0]) && !hasUpper(it.host) && !fileLike(it.host) &&
		!it.user && !it.named && !countWord(it.host)
}

// judge tells how sure it is that the item is a host under a key of class c, 0 for no.
func (it *item) judge(c class) Strength {
	if it.user && it.port == 0 && !it.unknownPort || it.named && it.port == 0 {
		return 0 // an e-mail address, name=word
	}
	dotted := strings.Contains(strings.TrimSuffix(it.host, "."), ".")
	switch {
	case it.port > 0 || it.unknownPort:
		switch {
		case c == plain && it.plausible():
			return Likely
		case c >= weak || c == peer && it.port > 0 && !countWord(it.host):
			return Certain
		}
		return 0
	case it.scheme != "" && dotted:
		return Certain
	case dotted:
		switch {
		case fileLike(it.host):
			return 0
		case c == strong && !it.tail:
			return Certain
		case c >= peer && !packageLike(it.host, it.host):
			return Likely
		}
		return 0
	case it.tail || hasUpper(it.host) || !isLetter(it.host[0]) || noHost(it.host):
		return 0
	case c == strong:
		return Certain
	case c == weak && len(it.host) > 1 && !qualityWord(it.host):
		return Likely
	}
	return 0
}

func hasUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		if isUpper(s[i]) {
			return true
		}
	}
	return false
}

// countWord knows words that stand before a colon and a number without being hosts.
func countWord(s string) bool {
	switch s {
	case "ttl", "max", "min", "size", "timeout", "limit", "uid", "gid", "user", "users", "root", "port", "ports", "count", "retries",
		"interval", "page", "width", "height", "line", "id", "pid", "level", "rate", "burst", "duration", "delay", "period",
		"age", "length", "depth", "year", "version", "build", "batch", "memory", "cpu", "cost", "weight", "priority", "sha256",
		"sha512", "md5", "total", "window", "budget", "quota", "threshold", "buffer", "cache", "pool", "step", "offset",
		"maxage", "sequence", "seq", "code", "status", "error", "tcp", "udp", "http", "https", "latest", "rsa", "dh",
		"ecdsa":
		return true
	}
	return false
}

// noHost knows words under keys of hosts that are no hosts.
func noHost(s string) bool {
	switch s {
	case "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "undefined", "default", "auto", "any", "all", "local",
		"enabled", "disabled", "stdout", "stderr", "console", "unknown", "changeme", "todo", "self", "host", "hostname",
		"address", "addr", "server", "url", "uri", "endpoint", "http", "https", "tcp", "udp", "grpc", "unix", "ipv4", "ipv6",
		"ip", "dns", "string", "empty", "optional", "required", "placeholder", "me", "localhost", "ip6-localhost",
		"ip6-loopback", "broadcasthost":
		return true
	}
	return false
}

// qualityWord knows words that name a choice where a key such as ENDPOINT or SERVER asks for one.
func qualityWord(s string) bool {
	switch s {
	case "public", "private", "internal", "external", "production", "staging", "development", "prod", "dev", "test", "testing", "latest",
		"stable", "master", "primary", "secondary", "replica", "standalone", "cluster", "embedded", "inmemory", "in-memory",
		"memory", "mock", "home", "root", "start", "run", "serve", "single", "multi", "both", "client", "static", "dynamic",
		"main", "origin", "develop": // branches and remotes of git
		return true
	}
	return false
}
