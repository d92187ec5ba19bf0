package rehearse

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Names of directives that only printed Corefiles have. No directive of a user's can be called so: those are looked up
// in the list of treatments.
const (
	// markDirective stands first in every block.
	markDirective = "rehearsal"
	// throughPrefix is in front of the name of a plugin that only hands queries on, unknownPrefix of one that would
	// answer from what is not known.
	throughPrefix = "rehearsal-through-"
	unknownPrefix = "rehearsal-unknown-"
)

// plan is a Corefile made ready for CoreDNS.
type plan struct {
	config  *Config
	order   []string
	files   *files
	stubs   *stubs
	printer printer
	blocks  []*planned
	notices []Notice
	// unknowns are the plugins whose answers are not known, by the number in their directive.
	unknowns   []unknownPlugin
	clusters   int
	unreached  int
	interfaces map[string]int
}

// planned is a server block.
type planned struct {
	Block

	keys  []word
	lines []*line
	// root is the argument of the plugin root.
	root string
	// doubts say why no answer of the block is certain.
	doubts []string
}

// doubt marks every answer of the block as unknown.
func (b *planned) doubt(why string) { b.doubts = append(b.doubts, why) }

// unknownPlugin answers that it does not know.
type unknownPlugin struct {
	plugin string
	zones  []string
	why    string
}

// newPlan reads the expanded Corefile of a configuration. Stubs for upstreams are started; the caller stops them and
// removes the files also after an error.
func newPlan(config *Config, s *stubs) (*plan, error) {
	p := &plan{
		config: config, order: Order(config.Version), stubs: s,
		files:      &files{corefile: config.Corefile, node: nodeResolvConf(config.Snapshot)},
		interfaces: map[string]int{},
	}
	if err := p.expandError(); err != nil {
		return p, err
	}
	blocks := config.Corefile.Expanded.Blocks
	if len(blocks) > maxBlocks {
		return p, unsupported(blocks[maxBlocks].Keys[0], "more than %d server blocks", maxBlocks)
	}
	if len(blocks) == 0 {
		// An empty Corefile serves whoami (core/dnsserver/register.go, DefaultInput).
		at := corefile.Token{File: config.Corefile.File, Line: 1}
		b := &planned{keys: []word{{".:53", at}}, lines: []*line{{words: []word{{"whoami", at}}}, {words: []word{{"log", at}}}}}
		b.Block = Block{Keys: []string{".:53"}, Position: at.Position()}
		p.blocks = append(p.blocks, b)
	}
	for _, block := range blocks {
		if err := p.block(block); err != nil {
			return p, err
		}
	}
	for _, b := range p.blocks {
		if err := p.printer.block(b.keys, b.lines); err != nil {
			return p, err
		}
	}
	return p, nil
}

// expandError is what is wrong with the text before any plugin sees it. It is the same in every release.
func (p *plan) expandError() error {
	c := p.config.Corefile
	if c.Expanded == nil {
		return &Unsupported{Reason: "there is no Corefile"}
	}
	err := c.ExpandErr
	if err == nil {
		err = c.Err
	}
	if err != nil {
		r := &Refusal{Msg: err.Error(), Certain: true}
		if e, ok := asCorefileError(err); ok {
			r.Position, r.Via, r.Msg = e.Position, e.Via, e.Msg
			if e.Err != nil {
				r.Msg += ": " + e.Err.Error()
			}
		}
		return r
	}
	if u := c.Expanded.Unread; len(u) > 0 {
		return unsupported(u[0], "the content of an imported file is not known")
	}
	return nil
}

// key returns a key of a server block as it is printed. Up to 1.14.6 a zone with capitals is never reached, because names
// are looked up in lower case; from 1.14.7 on the zone is too. A key that nobody asks for stands for the former.
func (p *plan) key(text string) string {
	if !p.config.Version.Before(1, 14, 7) {
		return text
	}
	z, err := corefile.ParseZone(text)
	if err != nil || z.Port == "" || strings.Contains(text, "/") || !strings.ContainsFunc(strings.TrimPrefix(text, z.Transport+"://"), unicode.IsUpper) {
		return text
	}
	p.unreached++
	return fmt.Sprintf("%s://unreached-%d.invalid:%s", z.Transport, p.unreached, z.Port)
}

// block prepares the directives of a server block.
func (p *plan) block(block *corefile.Block) error {
	b := &planned{Block: Block{Index: len(p.blocks)}}
	if len(block.Keys) == 0 {
		return &Unsupported{Position: block.Position(), Reason: "the judge does not read a block without a zone"}
	}
	b.Position = block.Keys[0].Position()
	for _, k := range block.Keys {
		b.Keys = append(b.Keys, k.Text)
		b.keys = append(b.keys, word{p.key(k.Text), k})
		if _, err := corefile.ParseZone(k.Text); err != nil {
			return &Refusal{Position: k.Position(), Via: k.Via, Msg: err.Error(), Certain: true}
		}
	}
	p.blocks = append(p.blocks, b)

	var lines []*line
	for _, d := range block.Body {
		l, err := newLine(d)
		if err != nil {
			return err
		}
		lines = append(lines, l)
		if l.name() == "root" && len(l.args()) == 1 {
			b.root = p.workPath(l.words[1].text)
		}
	}
	if err := checkRewrites(named(lines, "rewrite")); err != nil {
		return unsupported(named(lines, "rewrite")[0].at(), "%v, so the judge does not run them", err)
	}
	known := treatments()
	for _, l := range lines {
		out, err := p.directive(b, l, known)
		if err != nil {
			return err
		}
		if out != nil {
			b.lines = append(b.lines, out)
		}
	}
	return nil
}

func named(lines []*line, name string) []*line {
	var list []*line
	for _, l := range lines {
		if l.name() == name {
			list = append(list, l)
		}
	}
	return list
}

// directive returns what is printed for a directive, nil for nothing.
func (p *plan) directive(b *planned, l *line, known map[string]treatment) (*line, error) {
	t, ok := known[l.name()]
	if !ok {
		p.notice(External, l, "no release of CoreDNS has the plugin "+quoted(l.name()))
		b.doubt("the plugin " + quoted(l.name()) + " is not part of CoreDNS")
		return nil, nil
	}
	if !slices.Contains(p.order, l.name()) {
		r := p.refusal(l.words[0], l, "Unknown directive '"+l.name()+"'")
		r.Certain = p.config.Version.Known()
		r.Since, r.Dropped, _ = knownIn(l.name())
		return nil, r
	}
	for _, sub := range l.body {
		if since, ok := newProperties()[l.name()][sub.name()]; ok && p.config.Version.Compare(since) < 0 {
			r := p.refusal(sub.words[0], l, "unknown property '"+sub.name()+"'")
			r.Certain, r.Since = true, since
			return nil, r
		}
	}
	if t.run {
		if t.prepare == nil {
			return l, nil
		}
		return t.prepare(p, b, l)
	}
	if at, msg := t.grammar.judge(l); msg != "" {
		return nil, p.refuse(at, l, msg)
	}
	switch {
	case t.zones != nil:
		return p.unknown(l, t.zones(texts(l.args())), fmt.Sprintf("what the plugin %s answers is not known", l.name())), nil
	case !t.silent:
		p.notice(Skipped, l, "the judge does not run the plugin "+l.name())
	}
	if t.through {
		return p.passThrough(l), nil
	}
	return nil, nil
}

// directives is the list for dnsserver.Directives: the order of the release, with the stand-ins of a plugin in front of
// it.
func (p *plan) directives() []string {
	list := make([]string, 1, 1+3*len(p.order))
	list[0] = markDirective
	for _, name := range p.order {
		list = append(list, throughPrefix+name, unknownPrefix+name, name)
	}
	return list
}

// refusalOf turns an error of CoreDNS about a directive into the user's terms.
func (p *plan) refusalOf(b *planned, plugin string, err error) error {
	printed, msg := splitError(err)
	r := &Refusal{Plugin: plugin, Msg: p.restore(msg), Certain: p.config.Version == Release()}
	at, found := p.printer.at(printed, msg)
	if !found && b != nil {
		at = b.keys[0]
		if lines := b.standFor(plugin); len(lines) > 0 {
			at = lines[0].words[0]
		}
	}
	r.Position, r.Via = at.at.Position(), at.at.Via
	if words := p.printer.words(printed); len(words) > 0 && words[0].text != plugin && words[0].text != "}" {
		r.Property = words[0].text
	}
	return r
}

func (b *planned) standFor(plugin string) []*line { return named(b.lines, plugin) }

// restore puts paths and addresses of the user into a message.
func (p *plan) restore(msg string) string { return p.stubs.restore(p.files.restore(msg)) }

// overlap is the refusal of a server block that claims the listener of another (register.go,
// validateZonesAndListeningAddresses). CoreDNS names the zone and not the block.
func (p *plan) overlap(err error) error {
	r := &Refusal{Msg: err.Error(), Certain: true}
	seen := map[string]bool{}
	for _, b := range p.blocks {
		for _, k := range b.keys {
			z, err := corefile.ParseZone(k.text)
			if err != nil {
				continue
			}
			for _, name := range z.Names {
				key := z.Transport + "://" + name + ":" + z.Port
				if strings.Contains(r.Msg, "serve "+key) {
					if r.Position == (corefile.Position{}) || seen[key] {
						r.Position, r.Via = k.at.Position(), k.at.Via
					}
					seen[key] = true
				}
			}
		}
	}
	if r.Position == (corefile.Position{}) {
		r.Position = p.blocks[0].Position
	}
	return r
}

// nodeResolvConf is the resolv.conf of the node, as far as the user gave one.
func nodeResolvConf(s *cluster.Snapshot) string {
	if s == nil {
		return ""
	}
	for _, t := range s.Texts {
		if t.Kind == cluster.TextNodeResolvConf {
			return t.Data
		}
	}
	return ""
}

// searchOf returns the search list of a resolv.conf: absolute names, lower case.
func searchOf(data string) []string {
	var search []string
	for text := range strings.Lines(data) {
		fields := strings.Fields(text)
		if len(fields) < 2 || fields[0] != "search" && fields[0] != "domain" {
			continue
		}
		search = nil
		for _, f := range fields[1:] {
			if name, err := resolve.Absolute(f); err == nil {
				search = append(search, name)
			}
		}
	}
	return search
}
