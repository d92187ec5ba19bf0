package cluster

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Model says what the DNS server that pods ask answers. It is a resolve.ClusterServer, and not safe for use by several
// goroutines.
//
//   - CoreDNS with a Corefile: what the Corefile says, see chain. Names that leave the server through forward are
//     answered by the upstream's Corefile where the snapshot holds it (TextUpstreamCorefile), else unknown.
//   - CoreDNS without: the kubernetes plugin as kubeadm configures it, for names under the cluster domain.
//   - kube-dns: its model, for names under the cluster domain.
//   - any other server: what CoreDNS and kube-dns agree on, else unknown.
type Model struct {
	domain     string
	aliasLimit int
	answer     func(name string) resolve.Answer
	known      []KnownName
	// answers are those given before: the pods of all namespaces ask for the same names below the last search domains.
	answers map[string]resolve.Answer
}

// maxAnswers bounds how many answers a model remembers.
const maxAnswers = 1 << 11

// Domain is the cluster domain, absolute.
func (m *Model) Domain() string { return m.domain }

// Answer is what the server answers for an absolute name.
func (m *Model) Answer(name string) resolve.Answer {
	if a, ok := m.answers[name]; ok {
		return a
	}
	a := m.answer(name)
	if a.Match.Node == resolve.NoNode && !resolve.Under(name, m.domain) {
		a.Match.Node = resolve.OutsideNode
	}
	if len(m.answers) >= maxAnswers {
		clear(m.answers)
	}
	m.answers[name] = a
	return a
}

// AliasLimit is how long a chain of ExternalName Services may be that the server still follows to its end.
func (m *Model) AliasLimit() int { return m.aliasLimit }

// KnownOutsideNames are the names outside the cluster domain that the texts answer by themselves with an address, by
// hosts or template plugins of the upstream's Corefile or the server's own, sorted, each once for a text, with the first
// place.
func (m *Model) KnownOutsideNames() []KnownName { return m.known }

// NewModel returns the model of the server that pods ask. The facts and the index are those of s.
func NewModel(s *Snapshot, f *Facts, ix *Index) *Model {
	m := &Model{domain: f.Domain, answers: map[string]resolve.Answer{}}
	b := modelBuilder{facts: f, index: ix, upstream: upstreamChain(s)}
	newest := resolve.CoreDNS{Version: f.coreDNSVersion()}
	m.aliasLimit = newest.MaxAliases()
	switch {
	case f.DNS != nil && f.DNS.Implementation == KubeDNS:
		kube := b.kubeDNS()
		m.aliasLimit = kube.MaxAliases()
		m.answer = b.withOutside(kube.Answer)
	case f.DNS != nil && f.DNS.Implementation == CoreDNS:
		own := b.coreDNSChain()
		if own == nil {
			m.answer = b.withOutside(b.coreDNS().Answer)
			break
		}
		// A text without the kubernetes plugin is a part of what the cluster's server reads, or another server's.
		own.fragment = len(f.Zones) == 0
		m.answer = func(name string) resolve.Answer {
			if own.fragment && resolve.Under(name, f.Domain) {
				return resolve.Unknown("the Corefile has no kubernetes plugin")
			}
			return own.answer(name, 0)
		}
		if f.NodeLocal != nil {
			m.answer = b.behindNodeLocal(m.answer)
		}
		m.known = own.knownOutside(m)
	default:
		a, k := b.coreDNS(), b.kubeDNS()
		m.aliasLimit = min(m.aliasLimit, k.MaxAliases())
		m.answer = b.withOutside(func(name string) resolve.Answer { return agreed(a.Answer(name), k.Answer(name)) })
	}
	if b.upstream != nil {
		m.known = append(m.known, b.upstream.knownOutside(m)...)
	}
	slices.SortFunc(m.known, compareKnown)
	m.known = slices.CompactFunc(m.known, func(a, b KnownName) bool {
		return a.Name == b.Name && a.Position.Source == b.Position.Source
	})
	return m
}

func compareKnown(a, b KnownName) int {
	p, q := a.Position, b.Position
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(p.Source, q.Source), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// coreDNSVersion is the version of the cluster's CoreDNS, unknown for other servers.
func (f *Facts) coreDNSVersion() resolve.Version {
	if f.DNS == nil || f.DNS.Implementation != CoreDNS {
		return resolve.Version{}
	}
	v, _ := resolve.ParseVersion(f.DNS.Version)
	return v
}

// agreed is what two models of an unknown server have in common.
func agreed(a, b resolve.Answer) resolve.Answer {
	if a.Known && b.Known && a.A == b.A && a.AAAA == b.AAAA && len(a.Aliases) == len(b.Aliases) {
		return a
	}
	out := resolve.Unknown("servers differ in what they answer here, and which one this is is not known")
	out.Match = a.Match
	return out
}

type modelBuilder struct {
	facts *Facts
	index *Index
	// upstream is nil where the Corefile of the upstream is not known.
	upstream *chain
}

// upstreamChain reads the Corefile of the server behind the cluster's.
func upstreamChain(s *Snapshot) *chain {
	list := texts(s, TextUpstreamCorefile)
	if len(list) == 0 {
		return nil
	}
	file, err := corefile.Parse(list[0].Name, []byte(list[0].Data))
	if err != nil {
		return nil
	}
	x, err := corefile.Expand(file, corefile.Options{
		Import: func(string) ([]corefile.Source, error) { return nil, corefile.ErrNotRead },
		Env:    func(string) (string, bool) { return UnknownValue, true },
	})
	if err != nil {
		return nil
	}
	return newChain(x, chainOptions{
		port: 53,
		file: func(string) (string, bool) { return "", false },
		forward: func(*chainBlock, string, int) resolve.Answer {
			return resolve.Unknown("the upstream asks a server that is not known")
		},
	})
}

// outside answers a name that leaves the cluster.
func (b *modelBuilder) outside(name string, depth int) resolve.Answer {
	stubs := b.facts.NodeLocal != nil || b.facts.DNS != nil && b.facts.DNS.Implementation == KubeDNS
	if stubs && inZones(name, b.facts.StubDomains) {
		return resolve.Unknown("a server of a stub domain answers")
	}
	if b.upstream == nil {
		return resolve.Unknown("what the upstream answers is not known")
	}
	return b.upstream.answer(name, depth+1)
}

// withOutside completes a model of the names under the cluster domain.
func (b *modelBuilder) withOutside(inside func(string) resolve.Answer) func(string) resolve.Answer {
	return func(name string) resolve.Answer {
		if resolve.Under(name, b.facts.Domain) {
			return inside(name)
		}
		return b.outside(name, 0)
	}
}

// coreDNS is the kubernetes plugin with the options that kubeadm, and with it most distributions, gives it.
func (b *modelBuilder) coreDNS() *resolve.CoreDNS {
	return &resolve.CoreDNS{
		Zone: b.facts.Domain, Version: b.facts.coreDNSVersion(), Names: b.index.Names(), Pods: resolve.PodsInsecure,
		Outside: func(name string) resolve.Answer { return b.outside(name, 0) },
	}
}

func (b *modelBuilder) kubeDNS() *resolve.KubeDNS {
	return &resolve.KubeDNS{
		Zone: b.facts.Domain, Names: b.index.Names(),
		Outside: func(name string) resolve.Answer { return b.outside(name, 0) },
	}
}

// coreDNSChain is the server's Corefile; nil where there is none that the server would load.
func (b *modelBuilder) coreDNSChain() *chain {
	srv := b.facts.DNS
	cf := srv.Corefile
	if cf == nil || cf.ExpandErr != nil {
		return nil
	}
	targets := map[string]bool{}
	opts := chainOptions{
		version: b.facts.coreDNSVersion(), names: b.index.Names(), index: b.index, port: targetPort(srv),
		file: cf.readFile,
	}
	opts.forward = func(block *chainBlock, name string, depth int) resolve.Answer {
		// The upstream of the text is that of the root; another block may send its zone to somebody else.
		if slices.Contains(block.zones, ".") || len(targets) == 1 {
			return b.outside(name, depth)
		}
		return resolve.Unknown("what the upstream answers is not known")
	}
	c := newChain(cf.Expanded, opts)
	for _, blocks := range c.blocks {
		for _, block := range blocks {
			if len(block.targets) > 0 {
				targets[strings.Join(block.targets, " ")] = true
			}
		}
	}
	return c
}

// readFile returns a file that a plugin reads.
func (c *Corefile) readFile(name string) (string, bool) {
	if !path.IsAbs(name) {
		name = path.Join(c.Dir, name)
	}
	name = path.Clean(name)
	if m, ok := c.Mounts[name]; ok {
		return m.Data, true
	}
	// What a kubelet writes into /etc/hosts are names of the host itself.
	return "", name == "/etc/hosts"
}

// Port is the port on which the server gets what is sent to port 53 of its Service.
func (s *Server) Port() int { return targetPort(s) }

// targetPort is the port on which a server gets what is sent to port 53 of its Service.
func targetPort(srv *Server) int {
	for _, svc := range srv.Services {
		for _, p := range svc.Spec.Ports {
			if p.Port != 53 {
				continue
			}
			if p.TargetPort.StrVal == "" {
				if p.TargetPort.IntVal > 0 {
					return int(p.TargetPort.IntVal)
				}
				return 53
			}
			if port := namedPort(srv, p.TargetPort.StrVal); port > 0 {
				return port
			}
		}
	}
	return 53
}

func namedPort(srv *Server, name string) int {
	if srv.Workload == nil || srv.Workload.Spec == nil {
		return 0
	}
	for i := range srv.Workload.Spec.Containers {
		ports := srv.Workload.Spec.Containers[i].Ports
		if j := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == name }); j >= 0 {
			return int(ports[j].ContainerPort)
		}
	}
	return 0
}

// behindNodeLocal is what pods get through NodeLocal DNSCache: it sends the cluster's zones to CoreDNS and everything
// else past it, so that what CoreDNS itself says about other names does not count.
func (b *modelBuilder) behindNodeLocal(answer func(string) resolve.Answer) func(string) resolve.Answer {
	return func(name string) resolve.Answer {
		if resolve.Under(name, b.facts.Domain) || inZones(name, b.facts.Zones) {
			return answer(name)
		}
		return b.outside(name, 0)
	}
}

// knownOutside keeps those of the names in the text that are outside the cluster domain and that m answers.
func (c *chain) knownOutside(m *Model) []KnownName {
	var list []KnownName
	for _, k := range c.known {
		if resolve.Under(k.name, m.domain) {
			continue
		}
		if a := m.Answer(k.name); a.Known && a.HasAddress() {
			list = append(list, KnownName{k.name, finding.Position{Source: k.at.File, Line: k.at.Line, Col: k.at.Col}})
		}
	}
	return list
}

// OnlyBeforeDNS returns the zone and its place if NodeLocal DNSCache sends name to a server of its own, by a zone that
// CoreDNS does not have: pods can ask for such a name, and CoreDNS, which follows an alias to it, asks somebody else. The
// zone is absolute, and empty if that is not so.
func (f *Facts) OnlyBeforeDNS(name string) (zone string, at finding.Position) {
	if f.NodeLocal == nil || f.NodeLocal.Corefile == nil || f.DNS == nil || f.DNS.Corefile == nil {
		return "", at
	}
	front, token := bestBlock(f.NodeLocal.Corefile.Expanded, name)
	if front == nil {
		return "", at
	}
	zone = longest(name, zonesOf([]string{token.Text}))
	own, _ := bestBlock(f.DNS.Corefile.Expanded, name)
	switch targets := forwardTargets(front); {
	case zone == "." || resolve.Under(zone, f.Domain) || slices.Contains(f.Zones, zone):
	case len(targets) == 0 || slices.ContainsFunc(targets, f.isDNSTarget):
	case own == nil || slices.Contains(blockZones(own), ".") && !slices.Equal(forwardTargets(own), targets):
		p := token.Position()
		return zone, finding.Position{Source: p.File, Line: p.Line, Col: p.Col}
	}
	return "", at
}

// isDNSTarget tells whether an upstream of NodeLocal DNSCache is the cluster's DNS server: by address, or as the
// placeholder that node-cache fills in.
func (f *Facts) isDNSTarget(target string) bool {
	return target == "__PILLAR__CLUSTER__DNS__" || slices.ContainsFunc(f.DNS.Addresses, func(a string) bool { return a == target })
}

// bestBlock returns the block with the longest zone that holds name, and the key of that zone.
func bestBlock(x *corefile.Expanded, name string) (best *corefile.Block, key corefile.Token) {
	length := -1
	for _, b := range x.Blocks {
		for _, k := range b.Keys {
			if z := longest(name, zonesOf([]string{k.Text})); z != "" && len(z) > length {
				best, key, length = b, k, len(z)
			}
		}
	}
	return best, key
}

// forwardTargets are the upstreams of a block, sorted, each once.
func forwardTargets(b *corefile.Block) []string {
	var list []string
	for _, d := range b.Body {
		if n := d.Name.Text; n == "forward" || n == "proxy" {
			list = append(list, d.Values()[min(1, len(d.Args)):]...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
