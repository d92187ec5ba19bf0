package resolve

import (
	"net/netip"
	"slices"
	"strings"
)

// Type is a type of address record that a stub resolver asks for.
type Type int

// The types.
const (
	TypeA Type = iota
	TypeAAAA
)

// String returns the mnemonic of the type.
func (t Type) String() string {
	if t == TypeAAAA {
		return "AAAA"
	}
	return "A"
}

// Query is one question that a resolver sends.
type Query struct {
	// Server is the index of the nameserver.
	Server int
	Name   string
	Type   Type
	// Stream tells that it goes over TCP.
	Stream bool
}

// Nameservers are what a walk asks.
type Nameservers struct {
	// Ask has a callback for each nameserver in the order of the file, of which the first three are used. Each gets an
	// absolute name, at most once for a candidate.
	Ask []func(name string) Answer
	// First returns the index of the nameserver that is asked first about the nth candidate, from 0, with the option
	// "rotate"; musl asks all at once, and First is the one whose reply comes first. Nil means the first of the file.
	// glibc asks about both types in the order of type A.
	First func(nth int, t Type) int
	// Sent, if not nil, gets the queries: those of glibc in order, those of Go in order for each type, those of musl
	// once each, however often they are repeated.
	Sent func(Query)
}

// exchange puts the candidates of one walk to nameservers. It holds what a resolver keeps between candidates.
type exchange struct {
	resolver Resolver
	servers  Nameservers
	attempts int
	// The options use-vc, single-request and single-request-reopen. glibc sets the last two by itself after one of
	// two queries went unanswered, and keeps them (res_send.c, send_dg).
	stream, single, reopen bool
	// heard is the code of the reply that came first for the candidate, from whichever nameserver, as it stands in glibc's
	// buffer: NoError before there is any.
	heard Rcode
	nth   int
	// host is the name as it was typed.
	host string
	// name is the candidate, answers are those to it of the nameservers that asked marks.
	name    string
	answers [maxNameservers]Answer
	asked   [maxNameservers]bool
}

func newExchange(r Resolver, cfg Config, ns Nameservers) exchange {
	ns.Ask = ns.Ask[:min(len(ns.Ask), maxNameservers)]
	if len(ns.Ask) == 0 {
		ns.Ask = []func(string) Answer{func(string) Answer { return Negative(NoReply, "no nameserver") }}
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(cfg.Options, func(o string) bool { return slices.Contains(options, o) })
	}
	e := exchange{resolver: r, servers: ns, attempts: max(cfg.Attempts, 1)}
	switch r.Library {
	case Glibc:
		e.reopen = has("single-request-reopen")
		e.single = e.reopen || has("single-request")
		e.stream = has("use-vc")
	case Go:
		e.single = has("single-request", "single-request-reopen")
		e.stream = has("use-vc", "usevc", "tcp")
	}
	return e
}

// ask returns what the nameservers answer, what the resolver does then, and with what status the look-up ends if no
// other candidate changes it.
func (e *exchange) ask(name string) (Answer, Action, Status) {
	e.name = name
	clear(e.asked[:])
	defer func() { e.nth++ }()
	switch e.resolver.Library {
	case Musl:
		return e.musl()
	case Go:
		return e.golang()
	}
	return e.glibc()
}

// sent reports a query for the candidate.
func (e *exchange) sent(server int, t Type, stream bool) {
	if e.servers.Sent != nil {
		e.servers.Sent(Query{server, e.name, t, stream})
	}
}

// turn returns the index of the nameserver that comes after i others.
func (e *exchange) turn(t Type, i int) int {
	if e.servers.First != nil {
		i += max(e.servers.First(e.nth, t), 0)
	}
	return i % len(e.servers.Ask)
}

// answer returns what the nameserver answers to the candidate, asking it at most once.
func (e *exchange) answer(server int) Answer {
	if !e.asked[server] {
		e.asked[server], e.answers[server] = true, e.servers.Ask[server](e.name)
	}
	return e.answers[server]
}

// reply returns the part of the answer for one type.
func (a Answer) reply(t Type) Reply {
	if t == TypeAAAA {
		return a.AAAA
	}
	return a.A
}

// cut tells whether the reply for the type does not fit a datagram. Only answers with addresses grow so long.
func (a Answer) cut(t Type) bool { return a.Truncated && a.reply(t) == Reply{Records: Address} }

// merge joins the reply of one answer for A with that of another for AAAA.
func merge(a, b Answer) Answer {
	m := a
	m.Known = a.Known && b.Known
	m.AAAA = b.AAAA
	m.Truncated = a.cut(TypeA) || b.cut(TypeAAAA)
	m.Addresses = nil
	for _, addr := range a.Addresses {
		if is4(addr) {
			m.Addresses = append(m.Addresses, addr)
		}
	}
	for _, addr := range b.Addresses {
		if !is4(addr) {
			m.Addresses = append(m.Addresses, addr)
		}
	}
	return m
}

func is4(addr netip.Addr) bool { return addr.Unmap().Is4() }

// rejects tells whether glibc takes the reply for that of a broken server and goes to the next one (send_dg). FORMERR
// it takes for an answer.
func rejects(r Reply) bool {
	return r.Rcode == ServFail || r.Rcode == NotImp || r.Rcode == Refused
}

// glibc follows __res_context_send, __res_context_query and the switch in __res_context_search.
func (e *exchange) glibc() (Answer, Action, Status) {
	stream := e.stream
	e.heard = NoError
	var last Answer
	for try := 0; try < e.attempts; try++ {
		for i := range e.servers.Ask {
			server := e.turn(TypeA, i)
			a := e.answer(server)
			last = a
			if !stream {
				switch first, second, heard := e.datagrams(server, a); heard {
				case heardNothing:
					continue
				case heardAnswer:
					action, status := e.judgeGlibc(first, second)
					return a, action, status
				}
				stream = true
			}
			try = e.attempts // over TCP there is one attempt
			e.sent(server, TypeA, true)
			e.sent(server, TypeAAAA, true)
			if a.A.Rcode == NoReply || a.AAAA.Rcode == NoReply {
				continue // the server closes the connection
			}
			// Over TCP any code is an answer (send_vc).
			e.heard = a.A.Rcode
			action, status := e.judgeGlibc(a.A, a.AAAA)
			return a, action, status
		}
	}
	if e.heard == ServFail {
		return last, Next, TryAgain
	}
	return last, LeaveList, TryAgain
}

// hearing is how an exchange of datagrams with one nameserver ends.
type hearing int

const (
	heardNothing   hearing = iota + 1 // nothing that counts: the next nameserver is asked
	heardAnswer                       // one or two replies that count
	heardTruncated                    // both types are asked again over TCP
)

// datagrams follows send_dg: the replies that count are returned, one of them twice if it is the only one. The reply
// for A comes first if there are two.
func (e *exchange) datagrams(server int, a Answer) (first, second Reply, how hearing) {
	for !e.single {
		e.sent(server, TypeA, false)
		e.sent(server, TypeAAAA, false)
		lost := false
		switch {
		case a.A.Rcode == NoReply && a.AAAA.Rcode == NoReply:
			return a.A, a.AAAA, heardNothing
		case a.A.Rcode == NoReply:
			first, second, lost = a.AAAA, a.AAAA, true
		case a.AAAA.Rcode == NoReply:
			first, second, lost = a.A, a.A, true
		default:
			first, second = a.A, a.AAAA
		}
		e.heard = first.Rcode
		switch {
		case a.cut(TypeA) || a.cut(TypeAAAA):
			return first, second, heardTruncated
		case rejects(first) && (lost || rejects(second)):
			return first, second, heardNothing
		case lost:
			// Some servers and firewalls lose one of two queries at a time, so from now on it sends one after the other.
			e.single = true
		case rejects(first):
			return second, second, heardAnswer
		case rejects(second):
			return first, first, heardAnswer
		default:
			return first, second, heardAnswer
		}
	}
	for {
		e.sent(server, TypeA, false)
		if a.A.Rcode == NoReply {
			return a.A, a.A, heardNothing
		}
		e.heard = a.A.Rcode
		switch {
		case rejects(a.A):
			return a.A, a.A, heardNothing
		case a.cut(TypeA):
			return a.A, a.A, heardTruncated
		}
		e.sent(server, TypeAAAA, false)
		switch {
		case a.AAAA.Rcode == NoReply && !e.reopen:
			e.reopen = true
		case a.AAAA.Rcode == NoReply, rejects(a.AAAA):
			return a.A, a.A, heardAnswer
		case a.cut(TypeAAAA):
			return a.A, a.AAAA, heardTruncated
		default:
			return a.A, a.AAAA, heardAnswer
		}
	}
}

// judgeGlibc follows __res_context_query: two replies are one result, in which one with records outweighs the other.
func (e *exchange) judgeGlibc(first, second Reply) (Action, Status) {
	address, alias := Reply{Records: Address}, Reply{Records: AliasAlone}
	switch {
	case first == address, second == address:
		return Take, Resolved
	case first == alias, second == alias:
		// The search is over, because a record came; gaih_getanswer then finds no address among the records.
		return Stop, NoAddress
	}
	code := first.Rcode
	if code == NoError {
		code = second.Rcode
	}
	switch code {
	case NoError:
		return Next, NoAddress
	case NXDomain:
		return Next, NotFound
	case ServFail:
		if e.heard == ServFail {
			return Next, TryAgain
		}
		return LeaveList, TryAgain
	}
	return LeaveList, Failed
}

// musl follows __res_msend_rc and name_from_dns: all nameservers are asked at once, and for each type the first reply
// of NOERROR or NXDOMAIN counts. Other codes are no replies at all; it waits for a better one until its time is over.
func (e *exchange) musl() (Answer, Action, Status) {
	for _, t := range []Type{TypeA, TypeAAAA} {
		for server := range e.servers.Ask {
			e.sent(server, t, false)
		}
	}
	var taken [2]Answer
	for _, t := range []Type{TypeA, TypeAAAA} {
		taken[t] = e.answer(e.turn(t, 0))
		for i := range e.servers.Ask {
			server := e.turn(t, i)
			a := e.answer(server)
			if code := a.reply(t).Rcode; code != NoError && code != NXDomain {
				continue
			}
			taken[t] = a
			if a.cut(t) && e.resolver.hasTCP() {
				e.sent(server, t, true)
			}
			break
		}
	}
	a := taken[TypeA]
	if len(e.servers.Ask) > 1 {
		a = merge(taken[TypeA], taken[TypeAAAA])
	}
	action, status := judgeMusl(a)
	return a, action, status
}

// judgeMusl follows name_from_dns: the replies are looked at in the order A, AAAA, and the first that is not NOERROR
// decides, so a bad reply for AAAA outweighs a good one for A.
func judgeMusl(a Answer) (Action, Status) {
	for _, r := range []Reply{a.A, a.AAAA} {
		switch r.Rcode {
		case NoError:
		case NXDomain:
			return Next, NotFound
		default:
			return Stop, TryAgain
		}
	}
	if a.HasAddress() {
		return Take, Resolved
	}
	return Stop, NoAddress
}

// golang follows tryOneName: for each type by itself the nameservers are asked in turn, as often as there are attempts,
// until one answers NOERROR or NXDOMAIN.
func (e *exchange) golang() (Answer, Action, Status) {
	var taken [2]Answer
	for _, t := range []Type{TypeA, TypeAAAA} {
		taken[t] = e.golangType(t)
	}
	a := taken[TypeA]
	if len(e.servers.Ask) > 1 {
		a = merge(taken[TypeA], taken[TypeAAAA])
	}
	action, status := e.judgeGo(a)
	return a, action, status
}

func (e *exchange) golangType(t Type) Answer {
	var a Answer
	for range e.attempts {
		for i := range e.servers.Ask {
			server := e.turn(t, i)
			a = e.answer(server)
			e.sent(server, t, e.stream)
			if !e.stream && a.cut(t) {
				e.sent(server, t, true)
			}
			if code := a.reply(t).Rcode; code == NoError || code == NXDomain {
				return a
			}
		}
	}
	return a
}

// judgeGo follows goLookupIPCNAMEOrder without StrictErrors: every name of the list is tried until one gave an
// address; the replies count each for itself.
func (e *exchange) judgeGo(a Answer) (Action, Status) {
	if a.HasAddress() {
		return Take, Resolved
	}
	status := [2]Status{goError(a.A), goError(a.AAAA)}
	// Go reports the error of the reply that came last, or first where the name as it was typed is not on its list as
	// such: with a final dot, or under onion.
	first := strings.HasSuffix(e.host, ".") || strings.HasSuffix(strings.ToLower(e.host), ".onion")
	switch {
	case status[TypeA] == status[TypeAAAA], e.single && first:
		return Next, status[TypeA]
	case e.single:
		return Next, status[TypeAAAA]
	}
	// Both were sent at once, so which one that is, is left to chance. Failures are named before absence.
	return Next, max(status[TypeA], status[TypeAAAA])
}

// goError is the error of a reply without address. Go reports the first two as "no such host".
func goError(r Reply) Status {
	switch r.Rcode {
	case NXDomain:
		return NotFound
	case NoError:
		return NoAddress
	case ServFail, NoReply:
		return TryAgain
	}
	return Failed
}
