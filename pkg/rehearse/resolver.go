package rehearse

import (
	"context"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Lookup is what the judge answers to the queries for A and AAAA that a stub resolver sends for one name.
type Lookup struct {
	A, AAAA Answer
	// Answer is both as package resolve reads them.
	Answer resolve.Answer
}

// Lookup asks for the addresses of an absolute name, as q says otherwise; the type of q does not count. It has the form
// that resolve.Walk wants of its callback, but for errors.
func (j *Judge) Lookup(ctx context.Context, q Question) (Lookup, error) {
	var l Lookup
	var err error
	q.Type = dns.TypeA
	if l.A, err = j.Ask(ctx, q); err != nil {
		return l, err
	}
	q.Type = dns.TypeAAAA
	if l.AAAA, err = j.Ask(ctx, q); err != nil {
		return l, err
	}
	l.Answer = resolve.Answer{
		Known: l.A.Unknown == "" && l.AAAA.Unknown == "",
		A:     replyOf(l.A, dns.TypeA), AAAA: replyOf(l.AAAA, dns.TypeAAAA),
		Truncated: l.A.Truncated || l.AAAA.Truncated,
		Note:      l.A.Unknown,
	}
	if l.Answer.Note == "" {
		l.Answer.Note = l.AAAA.Unknown
	}
	l.Answer.Addresses = append(addressesOf(l.A, dns.TypeA), addressesOf(l.AAAA, dns.TypeAAAA)...)
	return l, nil
}

// replyOf reduces an answer to what a stub resolver tells apart.
func replyOf(a Answer, qtype uint16) resolve.Reply {
	r := resolve.Reply{Rcode: resolve.Rcode(a.Rcode)}
	for _, rr := range a.Answer {
		switch rr.Header().Rrtype {
		case qtype:
			r.Records = resolve.Address
			return r
		case dns.TypeCNAME:
			r.Records = resolve.AliasAlone
		}
	}
	return r
}

// addressesOf returns the addresses of an answer, sorted, without those that stand for cluster IPs that are not known.
func addressesOf(a Answer, qtype uint16) []netip.Addr {
	var list []netip.Addr
	for _, rr := range a.Answer {
		var addr netip.Addr
		switch rr := rr.(type) {
		case *dns.A:
			addr, _ = netip.AddrFromSlice(rr.A.To4())
		case *dns.AAAA:
			addr, _ = netip.AddrFromSlice(rr.AAAA.To16())
		}
		if rr.Header().Rrtype == qtype && addr.IsValid() && addr != placeholder4 && addr != placeholder6 {
			list = append(list, addr)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}
