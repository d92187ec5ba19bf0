package rehearse

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Lookup is what the judge answers to the queries for A and AAAA that a stub resolver sends for one name.
type Lookup struct {
	A, AAAA Answer
	// Answer is both as package resolve reads them.
	Answer resolve.Answer
	// Foreign tells that addresses of the answer belong to another name than the one asked for, and that no CNAME leads
	// to it: a rewrite rule without an answer rule leaves the rewritten name.
	Foreign bool
}

// For is the answer as a library takes it. glibc finds no address in an answer that is foreign; musl and Go do not look
// at the name.
func (l Lookup) For(library resolve.Library) resolve.Answer {
	a := l.Answer
	if !l.Foreign || library != resolve.Glibc {
		return a
	}
	for _, half := range []struct {
		reply  *resolve.Reply
		answer Answer
		qtype  uint16
	}{{&a.A, l.A, dns.TypeA}, {&a.AAAA, l.AAAA, dns.TypeAAAA}} {
		if foreign(half.answer, half.qtype) {
			half.reply.Records = resolve.NoRecords
		}
	}
	if !a.HasAddress() {
		a.Addresses = nil
	}
	return a
}

// foreign tells whether the addresses of an answer do not belong to the name that was asked for.
func foreign(a Answer, qtype uint16) bool {
	if len(a.Path) == 0 {
		return false
	}
	name := a.Path[0].Name
	found := false
	for _, rr := range a.Answer {
		switch owner := rr.Header().Name; rr.Header().Rrtype {
		case dns.TypeCNAME:
			if cname, ok := rr.(*dns.CNAME); ok && strings.EqualFold(owner, name) {
				name = cname.Target
			}
		case qtype:
			if strings.EqualFold(owner, name) {
				return false
			}
			found = true
		}
	}
	return found
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
	l.Foreign = foreign(l.A, dns.TypeA) || foreign(l.AAAA, dns.TypeAAAA)
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
