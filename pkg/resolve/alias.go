package resolve

import (
	"net/netip"
	"slices"
)

// maxFollowed bounds how many aliases one answer may lead through, over all branches. Real servers have no such bound;
// namespaces and wildcards as targets let a few hundred aliases branch without end.
const maxFollowed = 10_000

// trail is the way from the name asked for to the one looked at.
type trail struct {
	aliases []Alias
	left    *int // how many more aliases the whole answer may follow
}

func newTrail() trail {
	left := maxFollowed
	return trail{left: &left}
}

// through returns the trail with one more alias. It says false if the answer has followed too many.
func (t trail) through(al Alias) (trail, bool) {
	if *t.left == 0 {
		return t, false
	}
	*t.left--
	// The result is clipped so that branches do not write over each other.
	return trail{aliases: slices.Clip(append(slices.Clip(t.aliases), al)), left: t.left}, true
}

// leadsTo tells whether an alias of the trail has the target, which makes another with it a circle.
func (t trail) leadsTo(target string) bool {
	return slices.ContainsFunc(t.aliases, func(al Alias) bool { return al.Target == target })
}

// chased turns the answer of a target in the zone into that of the alias: what is no address is left out.
func chased(a Answer) Answer {
	if !a.Known && a.A.Rcode == NoError {
		return a
	}
	if a.Known && !a.HasAddress() && a.A.Rcode != NoError {
		a.Note = "the alias leads to a name that does not exist: " + a.Note
	}
	for _, r := range []*Reply{&a.A, &a.AAAA} {
		if r.Rcode != NoError {
			*r = Reply{}
		}
	}
	return a
}

// beyond turns the answer of a target outside the zone into that of the alias: rest is what the reply holds if the
// target has no address.
func beyond(a Answer, rest Records) Answer {
	for _, r := range []*Reply{&a.A, &a.AAAA} {
		if r.Rcode != NoError || r.Records != Address {
			*r = Reply{Records: rest}
		}
	}
	return a
}

// union gathers the parts of one answer that several Services give.
type union struct {
	parts     int
	answer    Answer
	aliases   map[Alias]bool
	addresses map[netip.Addr]bool
}

func (u *union) add(a Answer) {
	u.parts++
	if u.parts == 1 {
		*u = union{parts: 1, aliases: make(map[Alias]bool), addresses: make(map[netip.Addr]bool)}
		u.answer = a
		u.answer.Aliases, u.answer.Addresses = nil, nil
	} else {
		b := &u.answer
		// An address that is certain makes the whole certain, whatever else comes with it.
		b.Known = b.Known && a.Known || b.Known && b.HasAddress() || a.Known && a.HasAddress()
		b.A, b.AAAA = uniteReply(b.A, a.A), uniteReply(b.AAAA, a.AAAA)
		b.Match.Captured = b.Match.Captured || a.Match.Captured
	}
	for _, al := range a.Aliases {
		if !u.aliases[al] {
			u.aliases[al] = true
			u.answer.Aliases = append(u.answer.Aliases, al)
		}
	}
	for _, addr := range a.Addresses {
		if !u.addresses[addr] {
			u.addresses[addr] = true
			u.answer.Addresses = append(u.answer.Addresses, addr)
		}
	}
}

// uniteReply is the reply that holds the records of both.
func uniteReply(a, b Reply) Reply {
	if b.Rcode == NoError {
		a.Rcode = NoError
	}
	a.Records = max(a.Records, b.Records)
	return a
}

func uniqueAddrs(list []netip.Addr) []netip.Addr {
	kept := make([]netip.Addr, 0, len(list))
	seen := make(map[netip.Addr]bool, len(list))
	for _, a := range list {
		if !seen[a] {
			seen[a] = true
			kept = append(kept, a)
		}
	}
	return kept
}
