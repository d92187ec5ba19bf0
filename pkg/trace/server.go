package trace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/rehearse"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// server answers in the place of the DNS server that the client asks.
type server struct {
	snapshot *cluster.Snapshot
	facts    *cluster.Facts
	model    *cluster.Model
	// judge is nil where only the model speaks.
	judge  *rehearse.Judge
	client client
	notes  []string
}

// answer is what is known of the answer to one query, besides what resolvers look at.
type answer struct {
	resolve.Answer
	block, plugin string
	upstream      []string
	replies       []Reply
	chain         []string
}

// newServer returns the server of a snapshot, with a judge where one can be had. It has to be stopped.
func newServer(ctx context.Context, snapshot *cluster.Snapshot, facts *cluster.Facts, index *cluster.Index, c client) *server {
	s := &server{snapshot: snapshot, facts: facts, model: cluster.NewModel(snapshot, facts, index), client: c}
	if facts.NodeLocal != nil {
		s.notes = append(s.notes, "NodeLocal DNSCache stands in front: what it sends elsewhere is not known here")
	}
	dnsServer := facts.DNS
	if dnsServer.Implementation != cluster.CoreDNS || !c.AsksCluster {
		return s
	}
	if dnsServer.Corefile == nil {
		s.notes = append(s.notes, "the Corefile was not found, so CoreDNS is taken to run that of kubeadm")
		return s
	}
	seen := snapshot
	if snapshot.Partial && !snapshot.Known(cluster.Namespaces) {
		s.notes = append(s.notes, "no namespaces were given: those that hold a given object are taken for all")
		seen = withNamespaces(snapshot, index)
		index = cluster.NewIndex(seen)
	}
	version, _ := resolve.ParseVersion(dnsServer.Version)
	judge, err := rehearse.Start(ctx, rehearse.Config{
		Corefile: dnsServer.Corefile, Snapshot: seen, Index: index, Version: version,
		Upstream: upstream(snapshot, dnsServer.Corefile),
	})
	if err != nil {
		s.useModel(ctx, err)
		return s
	}
	s.judge = judge
	for _, n := range judge.Notices() {
		if n.Kind != rehearse.Skipped {
			s.notes = append(s.notes, fmt.Sprintf("%s: %s: %s", n.Position, n.Plugin, n.Text))
		}
	}
	return s
}

// withNamespaces returns a snapshot with the namespaces that objects of it are in.
func withNamespaces(s *cluster.Snapshot, index *cluster.Index) *cluster.Snapshot {
	out := *s
	out.Absent = maps.Clone(s.Absent)
	delete(out.Absent, cluster.Namespaces)
	for _, name := range index.NamespaceNames() {
		out.Namespaces = append(out.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return &out
}

// useModel lets the model speak from here on, because of err.
func (s *server) useModel(ctx context.Context, err error) {
	s.stop(ctx)
	s.judge = nil
	why := "CoreDNS cannot judge here"
	var refusal *rehearse.Refusal
	if errors.As(err, &refusal) {
		why = "CoreDNS " + rehearse.Release().String() + " does not load the Corefile"
	}
	s.notes = append(s.notes, why+", so a model answers: "+err.Error())
}

// stop ends the judge, also where ctx has ended.
func (s *server) stop(ctx context.Context) {
	if s.judge != nil {
		_ = s.judge.Stop(context.WithoutCancel(ctx)) // what it leaves behind changes no answer
	}
}

// description says who speaks.
func (s *server) description() Server {
	d := s.facts.DNS
	out := Server{Implementation: string(d.Implementation), Version: d.Version, Judge: ByModel}
	if s.judge != nil {
		out.Judge, out.Text = ByCoreDNS, "judged by CoreDNS "+rehearse.Release().String()
		v, known := resolve.ParseVersion(d.Version)
		switch {
		case !known:
			out.Text += "; the version of the cluster's is not known"
		case v != rehearse.Release():
			out.Text += " in the plugin order of " + v.String()
		}
		return out
	}
	switch d.Implementation {
	case cluster.CoreDNS, cluster.KubeDNS:
		name := map[cluster.Implementation]string{cluster.CoreDNS: "CoreDNS", cluster.KubeDNS: "kube-dns"}[d.Implementation]
		out.Text = strings.TrimSpace("from the model of " + name + " " + d.Version)
	default:
		out.Text = "from what the models of CoreDNS and kube-dns agree on"
	}
	return out
}

// judged tells whether the judge answers for a name.
func (s *server) judged(name string) bool {
	f := s.facts
	inside := resolve.Under(name, f.Domain)
	switch {
	case s.judge == nil, inside && len(f.Zones) == 0:
		// A Corefile without the kubernetes plugin is a part of what the server reads.
		return false
	case f.NodeLocal != nil:
		// It sends other names past CoreDNS.
		return inside || slices.ContainsFunc(f.Zones, func(z string) bool { return resolve.Under(name, z) })
	}
	return true
}

// ask answers for an absolute name; dns.TypeNone stands for both types of address.
func (s *server) ask(ctx context.Context, name string, qtype uint16) (answer, error) {
	switch {
	case !s.client.AsksCluster:
		return answer{Answer: resolve.Unknown("the client asks another server than the cluster's")}, nil
	case resolve.Under(name, s.facts.Domain) && !s.snapshot.Known(cluster.Services):
		return answer{Answer: resolve.Unknown("Services were not read")}, nil
	case s.judged(name):
		return s.askJudge(ctx, name, qtype)
	}
	a := answer{Answer: s.model.Answer(name)}
	for _, alias := range a.Aliases {
		if alias.Target != "" {
			a.chain = append(a.chain, alias.Target)
		}
	}
	only := func(reply resolve.Reply, is4 bool) {
		a.A, a.AAAA = reply, reply
		a.Addresses = slices.DeleteFunc(slices.Clone(a.Addresses), func(ip netip.Addr) bool { return ip.Unmap().Is4() != is4 })
	}
	switch qtype {
	case dns.TypeNone:
		a.replies = []Reply{modelReply(dns.TypeA, a.A), modelReply(dns.TypeAAAA, a.AAAA)}
	case dns.TypeA:
		only(a.A, true)
		a.replies = []Reply{modelReply(qtype, a.A)}
	case dns.TypeAAAA:
		only(a.AAAA, false)
		a.replies = []Reply{modelReply(qtype, a.AAAA)}
	default:
		return answer{Answer: resolve.Unknown("models know addresses alone")}, nil
	}
	return a, nil
}

func modelReply(qtype uint16, r resolve.Reply) Reply {
	return Reply{Type: dns.TypeToString[qtype], Rcode: r.Rcode.String(), Records: []string{}}
}

// askJudge puts a query to the judge: over UDP, and again over TCP where the answer does not fit, as resolvers do.
func (s *server) askJudge(ctx context.Context, name string, qtype uint16) (answer, error) {
	q := rehearse.Question{Name: name, Client: s.client.address, Server: s.listener(), Type: qtype}
	var a answer
	if qtype == dns.TypeNone {
		l, err := s.judge.Lookup(ctx, q)
		if err != nil {
			return a, err
		}
		if l.Answer.Truncated {
			q.TCP = true
			if l, err = s.judge.Lookup(ctx, q); err != nil {
				return a, err
			}
			l.Answer.Truncated = true
		}
		a.Answer = l.Answer
		a.take(dns.TypeA, l.A)
		a.take(dns.TypeAAAA, l.AAAA)
		return a, nil
	}
	m, err := s.judge.Ask(ctx, q)
	if err != nil {
		return a, err
	}
	if m.Truncated {
		q.TCP = true
		if m, err = s.judge.Ask(ctx, q); err != nil {
			return a, err
		}
		a.Truncated = true
	}
	a.Known, a.Note = m.Unknown == "", m.Unknown
	r := resolve.Reply{Rcode: resolve.Rcode(m.Rcode)}
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			if ip, ok := netip.AddrFromSlice(rr.A.To4()); ok && qtype == dns.TypeA {
				a.Addresses = append(a.Addresses, ip)
			}
		case *dns.AAAA:
			if ip, ok := netip.AddrFromSlice(rr.AAAA.To16()); ok && qtype == dns.TypeAAAA {
				a.Addresses = append(a.Addresses, ip)
			}
		}
		switch {
		case rr.Header().Rrtype == qtype:
			r.Records = resolve.Address // what was asked for
		case rr.Header().Rrtype == dns.TypeCNAME && r.Records == resolve.NoRecords:
			r.Records = resolve.AliasAlone
		}
	}
	slices.SortFunc(a.Addresses, netip.Addr.Compare)
	a.A, a.AAAA = r, r
	a.take(qtype, m)
	return a, nil
}

// listener is where the queries of pods reach the server.
func (s *server) listener() netip.AddrPort {
	return netip.AddrPortFrom(netip.Addr{}, uint16(s.facts.DNS.Port())) //nolint:gosec // a port of the API has 16 bits, and a wrong one has no listener
}

// take adds what is only for people.
func (a *answer) take(qtype uint16, m rehearse.Answer) {
	r := Reply{Type: dns.TypeToString[qtype], Rcode: resolve.Rcode(m.Rcode).String(), Records: []string{}}
	for _, rr := range m.Answer {
		r.Records = append(r.Records, rr.String())
		if alias, ok := rr.(*dns.CNAME); ok && !slices.Contains(a.chain, alias.Target) {
			a.chain = append(a.chain, alias.Target)
		}
	}
	a.replies = append(a.replies, r)
	if a.plugin == "" {
		a.plugin = m.Plugin
		if m.Block != nil && len(m.Block.Keys) > 0 {
			a.block = m.Block.Keys[0]
		}
	}
	for _, e := range m.Upstream {
		if !slices.Contains(a.upstream, e.To) {
			a.upstream = append(a.upstream, e.To)
		}
	}
}

// upstream returns what is known of the servers to which a Corefile sends names outside the cluster: those of the root
// zone answer as the Corefile of the upstream says, if the snapshot holds it. Of others nothing is known.
func upstream(s *cluster.Snapshot, c *cluster.Corefile) func(rehearse.Exchange) rehearse.Reply {
	unknown := func(e rehearse.Exchange) rehearse.Reply {
		return rehearse.Reply{Rcode: dns.RcodeNameError, Unknown: "sent upstream to " + e.To}
	}
	i := slices.IndexFunc(s.Texts, func(t *cluster.Text) bool { return t.Kind == cluster.TextUpstreamCorefile })
	if i < 0 {
		return unknown
	}
	// The upstream knows nothing of the cluster. No server has names under "invalid" (RFC 6761 section 6.4).
	behind := &cluster.Snapshot{Texts: []*cluster.Text{s.Texts[i]}}
	model := cluster.NewModel(behind, &cluster.Facts{Domain: "invalid."}, cluster.NewIndex(behind))
	targets := rootTargets(c)
	return func(e rehearse.Exchange) rehearse.Reply {
		if !slices.Contains(targets, e.To) && !slices.Contains(targets, e.Via) {
			return unknown(e)
		}
		name, err := resolve.Absolute(e.Name)
		if err != nil {
			return rehearse.Reply{Rcode: dns.RcodeNameError}
		}
		a := model.Answer(name)
		if !a.Known {
			r := unknown(e)
			if a.Note != "" {
				r.Unknown += ": " + a.Note
			}
			return r
		}
		return reply(e, a)
	}
}

// rootTargets are the upstreams of the root zone as written, or all if there is but one set of them.
func rootTargets(c *cluster.Corefile) []string {
	if c.Expanded == nil {
		return nil
	}
	var root []string
	sets := map[string][]string{}
	for _, b := range c.Expanded.Blocks {
		isRoot := slices.ContainsFunc(b.Keys, func(k corefile.Token) bool {
			zone := k.Text
			if _, rest, ok := strings.Cut(zone, "://"); ok {
				zone = rest
			}
			return zone == "." || strings.HasPrefix(zone, ".:")
		})
		for _, d := range b.Body {
			if d.Name.Text != "forward" || len(d.Args) < 2 {
				continue
			}
			list := d.Values()[1:]
			sets[strings.Join(list, " ")] = list
			if isRoot {
				root = append(root, list...)
			}
		}
	}
	if len(sets) == 1 {
		for _, list := range sets {
			return list
		}
	}
	return root
}

// reply turns the answer of a model into a message of an upstream.
func reply(e rehearse.Exchange, a resolve.Answer) rehearse.Reply {
	const ttl = 30
	header := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: e.Name, Rrtype: t, Class: dns.ClassINET, Ttl: ttl}
	}
	var of resolve.Reply
	switch e.Type {
	case dns.TypeA:
		of = a.A
	case dns.TypeAAAA:
		of = a.AAAA
	default:
		// The model knows addresses alone, and that a name does not exist.
		if a.A == a.AAAA && a.A.Rcode != resolve.NoError {
			of = a.A
			break
		}
		return rehearse.Reply{Rcode: dns.RcodeNameError, Unknown: "sent upstream to " + e.To}
	}
	if of.Rcode == resolve.NoReply {
		return rehearse.Reply{Silent: true}
	}
	r := rehearse.Reply{Rcode: int(of.Rcode)}
	for _, ip := range a.Addresses {
		switch ip = ip.Unmap(); {
		case e.Type == dns.TypeA && ip.Is4():
			r.Records = append(r.Records, &dns.A{Hdr: header(dns.TypeA), A: ip.AsSlice()})
		case e.Type == dns.TypeAAAA && ip.Is6():
			r.Records = append(r.Records, &dns.AAAA{Hdr: header(dns.TypeAAAA), AAAA: ip.AsSlice()})
		}
	}
	if of.Records != resolve.NoRecords && len(r.Records) == 0 {
		r.Unknown = "sent upstream to " + e.To
	}
	return r
}
