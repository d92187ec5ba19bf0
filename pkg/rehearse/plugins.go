package rehearse

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// treatment is what the judge does with a directive. What has none is external.
type treatment struct {
	// run tells that the plugin of CoreDNS gets the directive, after prepare.
	run bool
	// prepare changes the words of a directive that is run, so that it touches nothing outside. It may return nil,
	// when the directive is to be left out.
	prepare func(p *plan, b *planned, l *line) (*line, error)
	// grammar is checked of a directive that is not run.
	grammar grammar
	// through tells that the plugin has a handler that hands queries on unchanged, as far as the judge is concerned.
	through bool
	// zones returns the zones of a plugin that is not run and would answer; nil if it does not answer. Without any the
	// plugin answers for the zones of its block.
	zones func(args []string) []string
	// silent leaves out the notice.
	silent bool
}

// grammar is what a stand-in knows about the arguments of a plugin: the number of them, and the properties of its
// block. It accepts whatever it is not sure of.
type grammar struct {
	min, max int // max < 0: any number
	// properties are the names of lines, with the least and the greatest number of their arguments; nil accepts all.
	properties map[string][2]int
	// check judges the arguments further.
	check func(args []string) error
}

// unlimited is a number of arguments that is not limited.
const unlimited = -1

// newProperties are lines of plugins that older releases refuse, with the first release that knows them. A line that
// is not listed is judged as 1.15.0 does.
func newProperties() map[string]map[string]resolve.Version {
	v := func(minor, patch int) resolve.Version { return resolve.Version{Major: 1, Minor: minor, Patch: patch} }
	return map[string]map[string]resolve.Version{
		"forward":    {"next": v(11, 4), "failover": v(13, 0)},
		"kubernetes": {"multicluster": v(12, 2)},
	}
}

// treatments is the list of plugins. It names every directive of every release in orders.txt; a test holds it to that.
func treatments() map[string]treatment {
	run := treatment{run: true}
	prepared := func(f func(p *plan, b *planned, l *line) (*line, error)) treatment {
		return treatment{run: true, prepare: f}
	}
	// skip is a plugin beside the answers: it listens, logs, or measures.
	skip := func(g grammar) treatment { return treatment{grammar: g} }
	through := func(g grammar) treatment { return treatment{grammar: g, through: true} }
	whole := func(args []string) []string { return args }
	none := map[string][2]int{}
	free := grammar{max: unlimited}

	return map[string]treatment{
		// These answer, or change the query or the answer, from the Corefile and the query alone.
		"acl": run, "any": run, "bufsize": run, "cancel": run, "chaos": run, "dns64": run, "errors": run, "header": run,
		"k8s_external": run, "local": run, "log": run, "metadata": run, "minimal": run, "siit": run, "whoami": run,

		// These are run too, with files, addresses and clients that are not the operator's.
		"auto":        prepared((*plan).auto),
		"autopath":    prepared((*plan).autopath),
		"bind":        prepared((*plan).bind),
		"cache":       run,
		"file":        prepared((*plan).file),
		"forward":     prepared((*plan).forward),
		"hosts":       prepared((*plan).hosts),
		"kubernetes":  prepared((*plan).kubernetes),
		"loadbalance": prepared((*plan).loadbalance),
		"nsid":        prepared((*plan).nsid),
		"rewrite":     run, // guarded as a whole, see plan.block
		"template":    prepared((*plan).template),
		"tsig":        prepared((*plan).tsig),
		"view":        prepared((*plan).view),

		// root is read by plan.block.
		"root": {grammar: grammar{min: 1, max: 1, properties: none}, silent: true},

		// These open ports, dial out, run commands, end the process, or are far too large for what they would say.
		"debug":       {grammar: free, silent: true}, // it would turn off the recovery from panics
		"dnssec":      through(free),
		"dnstap":      through(grammar{min: 1, max: unlimited}),
		"geoip":       through(grammar{min: 1, max: unlimited}),
		"grpc_server": skip(free),
		"health":      {grammar: grammar{max: 1, check: hostPort, properties: map[string][2]int{"lameduck": {1, 1}}}, silent: true},
		"https":       skip(free),
		"https3":      skip(free),
		"loop":        {grammar: grammar{properties: none}, through: true, silent: true},
		"multisocket": {grammar: free, silent: true},
		"on":          skip(free),
		"pprof":       skip(free),
		"prometheus":  {grammar: grammar{max: 1, check: hostPort}, through: true, silent: true},
		"proxyproto":  skip(free),
		"quic":        skip(free),
		"ready":       {grammar: grammar{max: 1, check: hostPort, properties: map[string][2]int{"monitor": {1, 1}}}, silent: true},
		"reload":      {grammar: grammar{max: 2, check: durations, properties: none}, silent: true},
		"shed":        through(free),
		"sign":        skip(grammar{min: 1, max: unlimited}),
		"timeouts":    {grammar: free, silent: true},
		"tls":         skip(free),
		"trace":       through(free),
		"transfer":    through(free),

		// These answer from somewhere else.
		"azure":      {grammar: free, zones: func(args []string) []string { return part(args, 1) }},
		"clouddns":   {grammar: free, zones: func(args []string) []string { return part(args, 0) }},
		"dynupdate":  {grammar: free, zones: whole},
		"erratic":    {grammar: free, zones: whole},
		"etcd":       {grammar: free, zones: whole},
		"federation": {grammar: free, zones: whole},
		"grpc":       {grammar: grammar{min: 2, max: unlimited}, zones: first},
		"nomad":      {grammar: free, zones: whole},
		"proxy":      {grammar: grammar{min: 2, max: unlimited}, zones: first},
		"route53":    {grammar: free, zones: func(args []string) []string { return part(args, 0) }},
		"secondary":  {grammar: free, zones: whole},
	}
}

func first(args []string) []string { return args[:min(1, len(args))] }

// part cuts arguments such as zone:id at the colons.
func part(args []string, i int) []string {
	var list []string
	for _, a := range args {
		if parts := strings.Split(a, ":"); i < len(parts) {
			list = append(list, parts[i])
		}
	}
	return list
}

func hostPort(args []string) error {
	for _, a := range args {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return err
		}
	}
	return nil
}

func durations(args []string) error {
	for _, a := range args {
		if _, err := time.ParseDuration(a); err != nil {
			return err
		}
	}
	return nil
}

// judge says what CoreDNS would refuse of a directive that is not run; the words are its own.
func (g grammar) judge(l *line) (at word, msg string) {
	args := l.args()
	if len(args) < g.min || g.max != unlimited && len(args) > g.max {
		last := l.words[len(l.words)-1]
		if g.max != unlimited && len(args) > g.max {
			last = args[g.max]
		}
		return last, fmt.Sprintf("Wrong argument count or unexpected line ending after '%s'", last.text)
	}
	if g.check != nil {
		if err := g.check(texts(args)); err != nil {
			return l.words[0], err.Error()
		}
	}
	if g.properties == nil {
		return word{}, ""
	}
	for _, sub := range l.body {
		counts, known := g.properties[sub.name()]
		if !known {
			return sub.words[0], fmt.Sprintf("unknown property '%s'", sub.name())
		}
		if n := len(sub.args()); n < counts[0] || n > counts[1] {
			last := sub.words[len(sub.words)-1]
			return last, fmt.Sprintf("Wrong argument count or unexpected line ending after '%s'", last.text)
		}
	}
	return word{}, ""
}

func texts(words []word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// path returns the path of the server that a plugin makes of an argument: relative to root, or else to the working
// directory.
func (p *plan) path(b *planned, name string) string {
	if !path.IsAbs(name) && b.root != "" {
		name = path.Join(b.root, name)
	}
	return p.workPath(name)
}

func (p *plan) workPath(name string) string {
	if !path.IsAbs(name) {
		name = path.Join("/", p.config.Corefile.Dir, name)
	}
	return path.Clean(name)
}

// substitute puts a file of the private directory in place of an argument. A file that is certain to be missing
// becomes a path where nothing is, so that the plugin says what it says of missing files.
func (p *plan) substitute(b *planned, w *word, check func(data string) string) (unknown string, err error) {
	name := p.path(b, w.text)
	data, found, unknown := p.files.read(name)
	if unknown != "" {
		return unknown, nil
	}
	if found && check != nil {
		if why := check(data); why != "" {
			return why, nil
		}
	}
	if !found {
		if err := p.files.open(); err != nil {
			return "", fmt.Errorf("making a directory for files: %w", err)
		}
		w.text = p.files.missing(name)
		return "", nil
	}
	full, err := p.files.write(name, data)
	if err != nil {
		return "", unsupported(w.at, "%v", err)
	}
	w.text = full
	return "", nil
}

func (p *plan) file(b *planned, l *line) (*line, error) {
	if len(l.args()) == 0 {
		return l, nil // the plugin refuses it
	}
	unknown, err := p.substitute(b, &l.words[1], checkZone)
	if err != nil {
		return nil, err
	}
	if unknown != "" {
		return p.unknown(l, texts(l.words[2:]), unknown), nil
	}
	return l, nil
}

func (p *plan) hosts(b *planned, l *line) (*line, error) {
	if len(l.args()) == 0 {
		l.words = append(l.words, word{"/etc/hosts", l.at()})
	}
	unknown, err := p.substitute(b, &l.words[1], nil)
	if err != nil {
		return nil, err
	}
	if unknown != "" {
		return p.unknown(l, texts(l.words[2:]), unknown), nil
	}
	return l, nil
}

func (p *plan) auto(b *planned, l *line) (*line, error) {
	for _, sub := range l.body {
		if sub.name() != "directory" || len(sub.args()) == 0 {
			continue
		}
		dir := p.path(b, sub.words[1].text)
		names, unknown := p.files.under(dir)
		for _, name := range names {
			data, _, _ := p.files.read(name)
			if why := checkZone(data); why != "" {
				unknown = why
				break
			}
			if _, err := p.files.write(name, data); err != nil {
				return nil, unsupported(sub.words[1].at, "%v", err)
			}
		}
		if unknown != "" {
			return p.unknown(l, texts(l.args()), unknown), nil
		}
		full, err := p.files.mkdir(dir)
		if err != nil {
			return nil, unsupported(sub.words[1].at, "%v", err)
		}
		sub.words[1].text = full
	}
	return l, nil
}

func (p *plan) autopath(b *planned, l *line) (*line, error) {
	last := len(l.words) - 1
	if last == 0 || strings.HasPrefix(l.words[last].text, "@") {
		return l, nil
	}
	name := l.words[last].text
	// Not relative to root (plugin/autopath/setup.go).
	l.words[last].text = p.workPath(name)
	unknown, err := p.substitute(b, &l.words[last], nil)
	if err != nil {
		return nil, err
	}
	if unknown != "" {
		b.doubt("the search list of autopath is not known: " + unknown)
		p.notice(Unjudged, l, unknown)
		return p.passThrough(l), nil
	}
	return l, nil
}

func (p *plan) loadbalance(b *planned, l *line) (*line, error) {
	if len(l.words) < 3 || l.words[1].text != "weighted" {
		return l, nil
	}
	unknown, err := p.substitute(b, &l.words[2], nil)
	if err != nil {
		return nil, err
	}
	if unknown != "" {
		p.notice(Skipped, l, unknown)
		return p.passThrough(l), nil
	}
	return l, nil
}

func (p *plan) tsig(b *planned, l *line) (*line, error) {
	for _, sub := range l.body {
		if sub.name() != "secrets" || len(sub.args()) != 1 {
			continue
		}
		sub.words[1].text = p.workPath(sub.words[1].text)
		unknown, err := p.substitute(b, &sub.words[1], nil)
		if err != nil {
			return nil, err
		}
		if unknown != "" {
			p.notice(Skipped, l, unknown)
			return p.passThrough(l), nil
		}
	}
	return l, nil
}

// nsid has the name of the host where nothing else is given.
func (p *plan) nsid(_ *planned, l *line) (*line, error) {
	if len(l.args()) == 0 {
		l.words = append(l.words, word{"unknown", l.at()})
	}
	return l, nil
}

func (p *plan) kubernetes(_ *planned, l *line) (*line, error) {
	if p.clusters++; p.clusters > maxKubernetes {
		return nil, unsupported(l.at(), "more than %d kubernetes plugins", maxKubernetes)
	}
	for _, sub := range l.body {
		if sub.name() == "multicluster" {
			p.notice(Unjudged, l, "ServiceImports are not in the snapshot")
		}
	}
	return l, nil
}

// bind takes addresses. Names of interfaces stand for an address that nobody has (RFC 6666).
func (p *plan) bind(_ *planned, l *line) (*line, error) {
	translate := func(words []word) {
		for i := range words {
			if _, err := netip.ParseAddr(words[i].text); err == nil {
				continue
			}
			n, known := p.interfaces[words[i].text]
			if !known {
				n = len(p.interfaces) + 1
				p.interfaces[words[i].text] = n
			}
			words[i].text = fmt.Sprintf("100::%x", n)
		}
	}
	if len(l.args()) == 0 {
		return nil, p.refuse(l.words[0], l, "at least one address or interface name is expected")
	}
	translate(l.args())
	for _, sub := range l.body {
		switch {
		case sub.name() != "except":
			return nil, p.refuse(sub.words[0], l, fmt.Sprintf("invalid option %q", sub.name()))
		case len(sub.args()) == 0:
			return nil, p.refuse(sub.words[0], l, "at least one address or interface must be given to except subdirective")
		}
		translate(sub.args())
	}
	return l, nil
}

func (p *plan) template(_ *planned, l *line) (*line, error) {
	var expressions []string
	for _, sub := range l.body {
		switch sub.name() {
		case "answer", "additional", "authority":
			for _, w := range sub.args() {
				if err := checkTemplate(w.text); err != nil {
					return nil, unsupported(w.at, "%v, so the judge does not run it", err)
				}
			}
		case "expr":
			expressions = append(expressions, strings.Join(texts(sub.args()), " "))
		case "var":
			if len(sub.args()) > 1 {
				expressions = append(expressions, strings.Join(texts(sub.words[2:]), " "))
			}
		}
	}
	if err := checkExpressions(expressions); err != nil {
		return nil, unsupported(l.at(), "%v, so the judge does not run it", err)
	}
	return l, nil
}

func (p *plan) view(_ *planned, l *line) (*line, error) {
	for _, sub := range l.body {
		if sub.name() != "expr" {
			continue
		}
		if err := checkExpressions([]string{strings.Join(texts(sub.args()), " ")}); err != nil {
			return nil, unsupported(sub.at(), "%v, so the judge does not run it", err)
		}
	}
	return l, nil
}

// forward puts a stub in place of every upstream.
func (p *plan) forward(_ *planned, l *line) (*line, error) {
	if len(l.args()) < 2 {
		return l, nil // the plugin refuses it
	}
	words := slices.Clone(l.words[:2])
	for _, w := range l.words[2:] {
		stubs, err := p.upstream(l, w)
		if err != nil {
			return nil, err
		}
		words = append(words, stubs...)
	}
	if len(words) == 2 {
		return nil, p.refuse(l.words[2], l, "no valid upstream addresses found")
	}
	l.words = words
	l.body = slices.DeleteFunc(l.body, func(sub *line) bool {
		switch sub.name() {
		case "tls":
			return len(sub.args()) <= 3 // it would read files
		case "source_address":
			return len(sub.args()) == 1 && net.ParseIP(sub.words[1].text) != nil
		}
		return false
	})
	return l, nil
}

// upstream returns the addresses of stubs for one TO of forward, as plugin/forward/resolve.go and
// plugin/pkg/parse/host.go tell addresses, files and host names apart.
func (p *plan) upstream(l *line, w word) ([]word, error) {
	trans, host := parse.Transport(w.text)
	prefix, suffix := "", ""
	switch trans {
	case transport.DNS, transport.TLS, transport.QUIC:
	case transport.HTTPS:
		if i := strings.IndexByte(host, '/'); i >= 0 {
			prefix, suffix = "https://", host[i:] // the plugin refuses it
		}
	default:
		prefix = trans + "://" // the plugin refuses it
	}
	stub := func(to, via string) (word, error) {
		addr, err := p.stubs.at(to, via)
		if err != nil {
			return word{}, unsupported(w.at, "%v", err)
		}
		return word{prefix + addr + suffix, w.at}, nil
	}
	one := func(to, via string) ([]word, error) {
		s, err := stub(to, via)
		return []word{s}, err
	}
	if isAddress(host) || prefix != "" {
		return one(w.text, "")
	}

	data, found, unknown := p.files.read(p.workPath(host))
	if found {
		var list []word
		for _, server := range nameservers(data) {
			s, err := stub(server, w.text)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
		return list, nil
	}
	if strings.Contains(host, "/") {
		if unknown != "" {
			return one(w.text, "")
		}
		return nil, p.refuse(w, l, fmt.Sprintf("not an IP address or file %q: no such file", host))
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, ok := dns.IsDomainName(name); !ok || name == "" {
		return nil, p.refuse(w, l, fmt.Sprintf("not an IP address, file, or valid domain: %q", w.text))
	}
	if p.config.Version.Before(1, 14, 4) {
		// Host names are known from 1.14.4 on.
		r := p.refusal(w, l, fmt.Sprintf("not an IP address or file %q", host))
		r.Certain = true
		return nil, r
	}
	return one(w.text, "")
}

// isAddress tells whether an upstream without transport is an address, with a port or a zone or not.
func isAddress(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if i := strings.IndexByte(host, '%'); i >= 0 {
		host = host[:i]
	}
	return net.ParseIP(host) != nil
}

// unknown replaces a directive that would answer by one that says so.
func (p *plan) unknown(l *line, zones []string, why string) *line {
	p.notice(Unjudged, l, why)
	p.unknowns = append(p.unknowns, unknownPlugin{plugin: l.name(), zones: zones, why: why})
	return &line{words: []word{
		{unknownPrefix + l.name(), l.at()},
		{fmt.Sprint(len(p.unknowns) - 1), l.at()},
	}, end: l.end}
}

// passThrough replaces a directive by one that hands queries on.
func (p *plan) passThrough(l *line) *line {
	return &line{words: []word{{throughPrefix + l.name(), l.at()}}, end: l.end}
}

func (p *plan) notice(kind NoticeKind, l *line, text string) {
	p.notices = append(p.notices, Notice{Kind: kind, Position: l.at().Position(), Plugin: l.name(), Text: text})
}

// refuse is what CoreDNS says of a directive that does not get as far as its plugin.
func (p *plan) refuse(at word, l *line, msg string) error { return p.refusal(at, l, msg) }

func (p *plan) refusal(at word, l *line, msg string) *Refusal {
	r := &Refusal{
		Position: at.at.Position(), Via: at.at.Via, Plugin: l.name(), Msg: msg,
		Certain: p.config.Version == Release(),
	}
	if i := slices.IndexFunc(l.body, func(sub *line) bool {
		return slices.ContainsFunc(sub.words, func(w word) bool { return w.at == at.at })
	}); i >= 0 {
		r.Property = l.body[i].name()
	}
	return r
}
