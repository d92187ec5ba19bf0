package cluster

import (
	"cmp"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Bounds of the interpreter, so that a hostile Corefile costs little: how long a regular expression may be that is
// tried, and how often one answer may lead to another question.
const (
	maxPattern = 4096
	maxChase   = 12
)

// chain answers names as a Corefile says, where it can tell: server blocks by longest zone, and in a block the plugins
// in the order that plugin.cfg of CoreDNS gives them in every release: rewrite, template, hosts, kubernetes, and behind
// it what forwards. Of rewrite it only knows whether a rule may touch a name; plugins that answer from data which is
// not here give an unknown answer for the names in their zones. Who asks is not considered (acl, view).
type chain struct {
	version resolve.Version
	// blocks are those that listen on the port in question, by zone.
	blocks map[string][]*chainBlock
	// forward answers names that leave the server through a forward plugin.
	forward func(b *chainBlock, name string, depth int) resolve.Answer
	// fragment tells that the text is hardly all that the server reads.
	fragment bool
	// known are names that the text answers by itself.
	known []knownCandidate
}

type chainBlock struct {
	zones  []string
	stages []stage
	// conditional tells that not every query gets here: view and bind.
	conditional bool
	// targets are the upstreams of its forward plugins, sorted.
	targets []string
}

// stage is one plugin of a block. It answers a query or passes it on.
type stage func(q *query) (verdict, bool)

// query is one name on its way through a block, asked for one type.
type query struct {
	name  string
	ipv6  bool
	depth int
	block *chainBlock
	// whole are answers for both types; few plugins of a block give one.
	whole []wholeAnswer
}

// wholeAnswer is an answer for both types, and the plugin that gave it.
type wholeAnswer struct {
	plugin any
	answer *resolve.Answer
}

// verdict is what a plugin answers.
type verdict struct {
	reply     resolve.Reply
	addresses []netip.Addr
	known     bool
	note      string
	// whole is the answer for both types where the plugin gives one.
	whole *resolve.Answer
}

func rcode(code resolve.Rcode, note string) verdict {
	return verdict{reply: resolve.Reply{Rcode: code}, known: true, note: note}
}

func unknown(note string) verdict {
	return verdict{reply: resolve.Reply{Rcode: resolve.NXDomain}, note: note}
}

// answerOnce keeps an answer for both types between the two queries for a name.
func (q *query) answerOnce(plugin any, ask func() resolve.Answer) verdict {
	var a *resolve.Answer
	for _, w := range q.whole {
		if w.plugin == plugin {
			a = w.answer
		}
	}
	if a == nil {
		got := ask()
		a = &got
		q.whole = append(q.whole, wholeAnswer{plugin, a})
	}
	v := verdict{reply: a.A, known: a.Known, note: a.Note, whole: a}
	if q.ipv6 {
		v.reply = a.AAAA
	}
	return v
}

// chainOptions are what a chain needs besides the text.
type chainOptions struct {
	version resolve.Version
	names   resolve.Names
	// port is the one that queries come to; where no block has it, the lowest that any has.
	port int
	// index gives the labels that options of the kubernetes plugin select by; nil where there is no cluster.
	index *Index
	// file returns the content of a file of the server, and whether it is known.
	file    func(path string) (string, bool)
	forward func(b *chainBlock, name string, depth int) resolve.Answer
}

// newChain compiles an expanded Corefile.
func newChain(x *corefile.Expanded, opts chainOptions) *chain {
	c := &chain{version: opts.version, blocks: map[string][]*chainBlock{}, forward: opts.forward}
	type listener struct {
		key   key
		block *corefile.Block
	}
	var listeners []listener
	ports := map[int]bool{}
	for _, b := range x.Blocks {
		for _, token := range b.Keys {
			k, ok := parseKey(token.Text)
			if !ok || k.transport != "dns" {
				continue
			}
			if k.port == 0 {
				k.port = 53
			}
			ports[k.port] = true
			listeners = append(listeners, listener{k, b})
		}
	}
	port := opts.port
	if !ports[port] {
		port = 0
		for p := range ports {
			if port == 0 || p < port {
				port = p
			}
		}
	}
	compiled := map[*corefile.Block]*chainBlock{}
	for _, l := range listeners {
		if l.key.port != port {
			continue
		}
		b := compiled[l.block]
		if b == nil {
			b = c.compile(l.block, opts)
			compiled[l.block] = b
		}
		for _, z := range l.key.zones {
			// Queries are lower-cased and keys are not, up to 1.14.6: such a zone is never reached.
			if l.key.written != "" && l.key.written != "." && l.key.written != z && c.version.Before(1, 14, 7) {
				continue
			}
			c.blocks[z] = append(c.blocks[z], b)
		}
	}
	return c
}

// answer answers one absolute name. Depth counts the questions that led to it.
func (c *chain) answer(name string, depth int) resolve.Answer {
	if depth > maxChase {
		return resolve.Unknown("the aliases lead on and on")
	}
	blocks := c.route(name)
	switch {
	case len(blocks) == 0 && c.fragment:
		return resolve.Unknown("the Corefile has no block for the name, and is not the whole of it")
	case len(blocks) == 0:
		return resolve.Negative(resolve.Refused, "no server block serves the name")
	case len(blocks) > 1 || blocks[0].conditional:
		return resolve.Unknown("which server block answers depends on who asks")
	case len(blocks[0].stages) == 0:
		return resolve.Negative(resolve.Refused, "the server block has no plugin")
	}
	q := query{name: name, depth: depth, block: blocks[0]}
	a := q.serve()
	q.ipv6 = true
	aaaa := q.serve()
	if a.whole != nil && a.whole == aaaa.whole {
		return *a.whole
	}
	out := resolve.Answer{
		Known: a.known && aaaa.known, A: a.reply, AAAA: aaaa.reply, Note: cmp.Or(a.note, aaaa.note),
		Addresses: slices.Concat(a.addresses, aaaa.addresses),
	}
	for _, v := range []verdict{a, aaaa} {
		if v.whole != nil && out.Match.Node == resolve.NoNode {
			out.Match, out.Aliases = v.whole.Match, v.whole.Aliases
		}
	}
	return out
}

// route returns the blocks of the longest zone that holds the name (core/dnsserver/server.go).
func (c *chain) route(name string) []*chainBlock {
	for rest := name; ; {
		if b, ok := c.blocks[rest]; ok {
			return b
		}
		_, after, _ := strings.Cut(rest, ".")
		if after == "" {
			return c.blocks["."]
		}
		rest = after
	}
}

func (q *query) serve() verdict {
	for _, s := range q.block.stages {
		if v, ok := s(q); ok {
			return v
		}
	}
	return rcode(resolve.ServFail, "no plugin of the server block answers the name")
}

// isSilent tells of a plugin that neither answers a question for an address nor changes it, for a client that acl and
// view let through.
func isSilent(plugin string) bool {
	switch plugin {
	case "acl", "any", "bind", "bufsize", "cache", "cancel", "chaos", "debug", "dns64", "dnssec", "dnstap", "errors", "geoip",
		"grpc_server", "header", "health", "https", "https3", "loadbalance", "log", "loop", "metadata", "minimal",
		"multisocket", "nsid", "on", "pprof", "prometheus", "proxyproto", "quic", "ready", "reload", "root", "shed", "sign",
		"siit", "timeouts", "tls", "trace", "transfer", "tsig", "view":
		return true
	case "import": // one whose files are not known
		return true
	case "ocp_dnsnameresolver": // OpenShift's own, which watches what is answered
		return true
	}
	return false
}

// place orders the plugins of a block as plugin.cfg does; between these places it kept its order from 1.6 to 1.15.
type place int

const (
	atRewrite place = iota // with local before and autopath behind it
	atForeign              // plugins of other builds that have zones
	atTemplate
	atHosts
	atProviders // route53, azure, clouddns, k8s_external …
	atKubernetes
	atStrangers // plugins of other builds without zones
	atStores    // file, auto, secondary, etcd
	atForward
	atEnd // grpc, erratic, whoami
	places
)

// dataPlugin tells of a plugin that answers for its zones from data that is not here: from which argument on they are,
// and where it stands.
func dataPlugin(plugin string) (from int, at place, ok bool) {
	switch plugin {
	case "file":
		return 1, atStores, true
	case "auto", "etcd", "secondary":
		return 0, atStores, true
	case "azure", "clouddns", "dynupdate", "federation", "k8s_external", "route53":
		return 0, atProviders, true
	case "nomad":
		return 0, atEnd, true
	}
	return 0, 0, false
}

// compile makes the stages of a block.
func (c *chain) compile(b *corefile.Block, opts chainOptions) *chainBlock {
	var stages [places][]stage
	var templates []*templateRule
	add := func(at place, s stage) { stages[at] = append(stages[at], s) }
	for _, d := range b.Body {
		switch name := d.Name.Text; name {
		case "rewrite":
			add(atRewrite, rewriteStage(d))
		case "autopath":
			// It walks the search list of the client itself: what it gives for a name of the first search domain is what
			// another domain has.
			add(atRewrite, func(q *query) (verdict, bool) {
				return unknown("plugin autopath walks the search list of the pod"), strings.Contains(q.name, ".svc.")
			})
		case "local":
			add(atRewrite, func(q *query) (verdict, bool) {
				return unknown("plugin local answers names of the host itself"), strings.HasPrefix(q.name, "localhost.")
			})
		case "template":
			t := newTemplateRule(d, b)
			templates = append(templates, t)
			c.known = append(c.known, t.candidates()...)
		case "hosts":
			s, known := hostsStage(d, b, opts.file)
			add(atHosts, s)
			c.known = append(c.known, known...)
		case "kubernetes":
			add(atKubernetes, c.kubernetesStage(d, b, opts))
		case "forward", "proxy":
			add(atForward, c.forwardStage(d))
		case "grpc":
			add(atEnd, zoneStage(zonesOf(d.Values()[:min(1, len(d.Args))]), "plugin grpc asks a server that is not known"))
		case "whoami", "erratic":
			add(atEnd, always("plugin "+name+" answers"))
		default:
			if from, at, ok := dataPlugin(name); ok {
				zones := originsOf(d.Args[min(from, len(d.Args)):], b)
				add(at, zoneStage(zones, "plugin "+name+" answers from data that is not known here"))
				continue
			}
			if isSilent(name) {
				continue
			}
			// A plugin of somebody else. With zones it answers for them, wherever it stands. Without, or with the root, it
			// stands behind kubernetes, or the cluster would have no names.
			note := "plugin " + name + " is not known"
			if zones := zonesOf(d.Values()); len(zones) == 0 || slices.Contains(zones, ".") {
				add(atStrangers, always(note))
			} else {
				add(atForeign, zoneStage(zones, note))
			}
		}
	}
	if len(templates) > 0 {
		add(atTemplate, c.templateStage(templates))
	}
	out := &chainBlock{
		zones: blockZones(b), conditional: len(b.Named("view")) > 0, targets: forwardTargets(b), stages: slices.Concat(stages[:]...),
	}
	if len(out.stages) == 0 && len(b.Body) > 0 {
		// Plugins that only pass a query on still make a chain, which ends in SERVFAIL.
		out.stages = []stage{func(*query) (verdict, bool) { return verdict{}, false }}
	}
	return out
}

func always(note string) stage {
	return func(*query) (verdict, bool) { return unknown(note), true }
}

// zoneStage cannot know what names in zones are answered.
func zoneStage(zones []string, note string) stage {
	return func(q *query) (verdict, bool) { return unknown(note), inZones(q.name, zones) }
}

func inZones(name string, zones []string) bool {
	return slices.ContainsFunc(zones, func(z string) bool { return resolve.Under(name, z) })
}

// fallZones are the zones of the property fallthrough, nil without it (plugin/pkg/fall).
func fallZones(d *corefile.Directive) []string {
	var zones []string
	for _, line := range d.Named("fallthrough") {
		if len(line.Args) == 0 {
			zones = []string{"."}
		} else {
			zones = zonesOf(line.Values())
		}
	}
	return zones
}

// rewriteStage passes on the names that no rule may touch.
func rewriteStage(d *corefile.Directive) stage {
	words := d.Values()
	if len(words) > 0 && (words[0] == "continue" || words[0] == "stop") {
		words = words[1:]
	}
	if len(words) == 0 && len(d.Body) > 0 {
		words = append([]string{d.Body[0].Name.Text}, d.Body[0].Values()...)
	}
	touches := rewriteTouches(words)
	return func(q *query) (verdict, bool) {
		return unknown("a rewrite rule may change the name"), touches(q.name)
	}
}

// rewriteTouches follows plugin/rewrite: which names a rule may change, the query or its answer.
func rewriteTouches(words []string) func(name string) bool {
	none := func(string) bool { return false }
	all := func(string) bool { return true }
	if len(words) == 0 {
		return none
	}
	field, args := strings.ToLower(words[0]), words[1:]
	switch field {
	case "ttl", "edns0", "cname":
		return none
	case "type":
		if len(args) > 0 && !strings.EqualFold(args[0], "A") && !strings.EqualFold(args[0], "AAAA") {
			return none
		}
		return all
	case "class":
		if len(args) > 0 && !strings.EqualFold(args[0], "IN") {
			return none
		}
		return all
	case "name", "rcode":
	default:
		return all
	}
	if len(args) == 0 {
		return none
	}
	kind := "exact"
	if slices.Contains([]string{"exact", "prefix", "suffix", "substring", "regex"}, strings.ToLower(args[0])) && len(args) > 1 {
		kind, args = strings.ToLower(args[0]), args[1:]
	}
	from := strings.ToLower(args[0])
	absolute := strings.TrimSuffix(from, ".") + "."
	switch kind {
	case "prefix":
		return func(name string) bool { return strings.HasPrefix(name, from) }
	case "suffix":
		return func(name string) bool { return strings.HasSuffix(name, absolute) }
	case "substring":
		return func(name string) bool { return strings.Contains(name, from) }
	case "regex":
		re := compile(args[0])
		if re == nil {
			return all
		}
		return re.MatchString
	}
	return func(name string) bool { return name == absolute }
}

// compile returns nil for what is no regular expression, or a longer one than is tried.
func compile(pattern string) *regexp.Regexp {
	if len(pattern) > maxPattern {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	return re
}

// forwardStage sends names under the first argument, without those of the property except, to the upstreams.
func (c *chain) forwardStage(d *corefile.Directive) stage {
	var from, except []string
	if len(d.Args) > 0 {
		from = zonesOf(d.Values()[:1])
	}
	for _, line := range d.Named("except") {
		except = append(except, zonesOf(line.Values())...)
	}
	return func(q *query) (verdict, bool) {
		if !inZones(q.name, from) || inZones(q.name, except) {
			return verdict{}, false
		}
		return q.answerOnce(d, func() resolve.Answer { return c.forward(q.block, q.name, q.depth) }), true
	}
}

// kubernetesStage answers for the zones of the plugin; the longest that holds the name counts.
func (c *chain) kubernetesStage(d *corefile.Directive, b *corefile.Block, opts chainOptions) stage {
	zones := originsOf(d.Args, b)
	if opts.names == nil {
		return zoneStage(zones, "the plugin kubernetes answers for a cluster that is not known")
	}
	model := kubernetesModel(d, opts)
	model.Version = c.version
	fall := fallZones(d)
	var multi []string
	for _, line := range d.Named("multicluster") {
		multi = append(multi, zonesOf(line.Values())...)
	}
	return func(q *query) (verdict, bool) {
		zone := longest(q.name, zones)
		switch {
		case zone == "":
			return verdict{}, false
		case isReverse(zone) || slices.Contains(multi, zone):
			return unknown("records of other kinds than Services"), true
		}
		v := q.answerOnce(d, func() resolve.Answer {
			m := model
			m.Zone = zone
			// A target outside the zone goes through the whole server again (plugin/pkg/upstream).
			m.Outside = func(name string) resolve.Answer { return c.answer(name, q.depth+1) }
			return m.Answer(q.name)
		})
		if v.known && v.reply.Rcode == resolve.NXDomain && inZones(q.name, fall) {
			return verdict{}, false
		}
		return v, true
	}
}

// kubernetesModel reads the options of the plugin (plugin/kubernetes/setup.go). Fallthrough is left to the chain.
func kubernetesModel(d *corefile.Directive, opts chainOptions) resolve.CoreDNS {
	m := resolve.CoreDNS{Names: opts.names}
	for _, line := range d.Body {
		args := line.Values()
		switch line.Name.Text {
		case "pods":
			if len(args) == 1 {
				m.Pods = resolve.PodMode(args[0])
			}
		case "namespaces":
			m.Namespaces = append(m.Namespaces, args...)
		case "ignore":
			m.IgnoreEmptyService = slices.Contains(args, "empty_service")
		case "noendpoints":
			m.NoEndpoints = true
		case "endpoint_pod_names":
			m.EndpointPodNames = true
		case "labels":
			if sel := selector(args); sel != nil && opts.index != nil {
				m.ServiceSelected = func(namespace, name string) bool {
					svc := opts.index.Service(namespace, name)
					return svc != nil && sel.Matches(labels.Set(svc.Labels))
				}
			}
		case "namespace_labels":
			if sel := selector(args); sel != nil && opts.index != nil {
				m.NamespaceSelected = func(name string) bool {
					// The labels of a namespace that is known from its objects alone are not known.
					n := opts.index.Namespace(name)
					return n == nil || sel.Matches(labels.Set(n.Labels))
				}
			}
		}
	}
	return m
}

// selector reads a label selector; nil if it is none.
func selector(args []string) labels.Selector {
	parsed, err := metav1.ParseToLabelSelector(strings.Join(args, " "))
	if err != nil {
		return nil
	}
	sel, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return nil
	}
	return sel
}

// hostsStage follows plugin/hosts: the file, by default /etc/hosts, and the entries in the Corefile.
func hostsStage(d *corefile.Directive, b *corefile.Block, file func(string) (string, bool)) (stage, []knownCandidate) {
	entries := map[string][]netip.Addr{}
	add := func(address, host string) (string, bool) {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			return "", false
		}
		name, err := resolve.Absolute(host)
		if err != nil {
			return "", false
		}
		entries[name] = append(entries[name], addr)
		return name, true
	}
	args := d.Values()
	complete, nodes := true, false
	if len(args) > 0 {
		var data string
		data, complete = file(args[0])
		// k3s keeps the names of nodes in a file of this name, and nothing else.
		nodes = path.Base(args[0]) == "NodeHosts"
		for line := range strings.Lines(data) {
			line, _, _ = strings.Cut(line, "#")
			if words := strings.Fields(line); len(words) > 1 {
				for _, host := range words[1:] {
					add(words[0], host)
				}
			}
		}
		args = args[1:]
	}
	zones := zonesOf(args)
	if len(args) == 0 {
		zones = blockZones(b)
	}
	var known []knownCandidate
	for _, line := range d.Body {
		for _, arg := range line.Args {
			if name, ok := add(line.Name.Text, arg.Text); ok {
				known = append(known, knownCandidate{name, arg.Position()})
			}
		}
	}
	fall := fallZones(d)
	return func(q *query) (verdict, bool) {
		if !inZones(q.name, zones) {
			return verdict{}, false
		}
		all, ok := entries[q.name]
		if !ok {
			switch {
			case !complete && !(nodes && strings.Contains(q.name, ".svc.")):
				return unknown("plugin hosts reads a file that is not known here"), true
			case inZones(q.name, fall):
				return verdict{}, false
			}
			return rcode(resolve.ServFail, "plugin hosts has no such name and does not pass it on (no fallthrough)"), true
		}
		v := verdict{known: true, note: "plugin hosts has the name"}
		for _, a := range all {
			if a.Unmap().Is6() == q.ipv6 {
				v.addresses = append(v.addresses, a)
				v.reply.Records = resolve.Address
			}
		}
		return v, true
	}, known
}

// knownCandidate is a name that a text seems to answer, and where it says so.
type knownCandidate struct {
	name string
	at   corefile.Position
}

// KnownName is a name outside the cluster domain that a Corefile answers by itself.
type KnownName struct {
	// Name is absolute and lower case.
	Name     string
	Position finding.Position
}
