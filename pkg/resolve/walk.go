package resolve

import (
	"slices"
	"strings"
)

// Action is what a resolver does after a candidate.
type Action int

// The actions.
const (
	// Next: go on with the next candidate.
	Next Action = iota + 1
	// Take: the answer has addresses and ends the look-up.
	Take
	// Stop: the look-up ends without an address.
	Stop
	// LeaveList: skip the rest of the search list; the name as it was typed is still tried, if it was not before.
	LeaveList
)

// String returns a verb phrase for people.
func (a Action) String() string {
	switch a {
	case Next:
		return "goes on"
	case Take:
		return "takes it"
	case Stop:
		return "stops"
	case LeaveList:
		return "leaves the search list"
	}
	return "does nothing"
}

// Status is how a look-up ends.
type Status int

// The ends of a look-up.
const (
	// Resolved: there is at least one address.
	Resolved Status = iota + 1
	// Literal: the host is an address or stands in the hosts file; nobody is asked.
	Literal
	// NotFound: the name does not exist.
	NotFound
	// NoAddress: the name exists and has no address. glibc and musl from 1.2.4 say "No address associated with hostname",
	// Go and older musl what they say of a name that does not exist, and so does glibc where an alias leads nowhere.
	NoAddress
	// TryAgain: a temporary failure (EAI_AGAIN).
	TryAgain
	// Failed: a permanent failure of the servers ("server misbehaving" in Go; glibc says "Name or service not known").
	Failed
	// Invalid: the host is no name that can be asked for.
	Invalid
)

// String returns a phrase that completes "the look-up ends: …".
func (s Status) String() string {
	switch s {
	case Resolved:
		return "resolved"
	case Literal:
		return "no look-up needed"
	case NotFound:
		return "name not found"
	case NoAddress:
		return "no address"
	case TryAgain:
		return "temporary failure"
	case Failed:
		return "server failure"
	case Invalid:
		return "not a host name"
	}
	return "none"
}

// OK tells whether the program that asked gets an address.
func (s Status) OK() bool { return s == Resolved || s == Literal }

// Candidate is one name that a resolver may ask for.
type Candidate struct {
	// Name is absolute. It is empty for the domains of a search list that are not known, and for a candidate that is
	// no valid name.
	Name string
	// Domain is the search domain that was appended, absolute; empty for the host as it was typed.
	Domain string
	// Bare tells that Name is the host as it was typed, by itself or through the search domain ".".
	Bare bool
	// Unseen stands for all search domains that are not known (Config.SearchUnknown). Nobody is asked.
	Unseen bool
	// Invalid tells that host and domain make no valid name. Nobody is asked.
	Invalid bool
}

// Step is a candidate, what was answered and what the resolver does then.
type Step struct {
	Candidate
	Answer Answer
	Action Action
	// Status is how the look-up ends if nothing follows.
	Status Status
}

// Result is the course of one look-up. Its Steps are those of a run in which no unknown answer leads to an address;
// see Outcomes for the others.
type Result struct {
	Resolver Resolver
	Host     string
	// Status and By are the end of that run: By is the index of the step that gave the address, or -1.
	Status Status
	By     int
	Steps  []Step
	// Partial tells that the resolver has no TCP and takes a part of a truncated answer.
	Partial bool
}

// Candidates returns the names that r asks for one after the other while nothing ends the search, in order. A host
// that is an address, stands in the hosts file of cfg or is no valid name has none.
func Candidates(r Resolver, cfg Config, host string) []Candidate {
	if _, ends := r.withoutQuery(cfg, host); ends {
		return nil
	}
	bare := Candidate{Bare: true}
	bare.Name, _ = Absolute(host) // valid, or withoutQuery had said so
	if strings.HasSuffix(host, ".") {
		if r.Library == Go && isOnion(bare.Name) {
			return nil
		}
		return []Candidate{bare}
	}
	first := strings.Count(host, ".") >= cfg.NDots
	if r.Library == Musl && first {
		// lookup_name.c: with ndots dots or more the search list is dropped, not put behind.
		return []Candidate{bare}
	}
	var list []Candidate
	if first {
		list = append(list, bare)
	}
	rooted := false
	search, unseenAt := cfg.searchOf(r)
	for i, domain := range search {
		if i == unseenAt {
			list = append(list, Candidate{Unseen: true})
		}
		if domain == "." {
			// Go drops the root from the search list (dnsconfig_unix.go). musl makes "host.." of it, which is no
			// valid name. glibc asks for the bare name and then does not ask again at the end (root_on_list).
			switch r.Library {
			case Go:
			case Musl:
				list = append(list, Candidate{Domain: domain, Invalid: true})
			default:
				rooted = true
				list = append(list, Candidate{Name: bare.Name, Domain: domain, Bare: true})
			}
			continue
		}
		if name, ok := join(host, domain); ok {
			list = append(list, Candidate{Name: name, Domain: domain})
		} else if r.Library != Go {
			list = append(list, Candidate{Domain: domain, Invalid: true})
		}
	}
	if unseenAt >= len(search) {
		list = append(list, Candidate{Unseen: true})
	}
	if !first && !rooted {
		list = append(list, bare)
	}
	if r.Library == Go {
		list = slices.DeleteFunc(list, func(c Candidate) bool { return isOnion(c.Name) })
	}
	return list
}

// withoutQuery returns how a look-up ends that needs no query.
func (r Resolver) withoutQuery(cfg Config, host string) (Status, bool) {
	if isAddress(r, host) || inHosts(cfg, host) {
		return Literal, true
	}
	if _, err := Absolute(host); err != nil || host == "." {
		return Invalid, true
	}
	if r.Library == Go && !isGoName(host) || r.Library == Glibc && !isGlibcName(host) {
		return NotFound, true
	}
	return 0, false
}

// isOnion tells whether an absolute name is one for which Go asks no DNS server (RFC 7686; avoidDNS in
// dnsclient_unix.go).
func isOnion(name string) bool { return strings.HasSuffix(name, ".onion.") }

// isGlibcName follows res_hnok: letters, digits, hyphens and underscores, and no hyphen at the start of the name.
func isGlibcName(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case isDigit(c), 'a' <= c|0x20 && c|0x20 <= 'z', c == '_', c == '.', c == '-' && i > 0:
		default:
			return false
		}
	}
	return true
}

// inHosts tells whether host stands in the hosts file. localhost always does.
func inHosts(cfg Config, host string) bool {
	is := func(h string) bool { return strings.EqualFold(h, strings.TrimSuffix(host, ".")) }
	return is("localhost") || slices.ContainsFunc(cfg.Hosts, is)
}

// isGoName follows isDomainName of Go's package net: labels of letters, digits, hyphens inside and underscores, and
// not digits alone. The lengths are checked before.
func isGoName(host string) bool {
	nonNumeric := false
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			switch c := label[i]; {
			case isDigit(c):
			case c == '-' || c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z':
				nonNumeric = true
			default:
				return false
			}
		}
	}
	return nonNumeric
}

// Walk looks host up as r does under cfg and puts every query to ask, which gets an absolute name. Both types of
// address are one call, because resolvers ask for both before they decide.
//
// It ends after two calls more than the search list has domains. Where an answer is unknown, the walk goes on with the
// answer that is assumed if it leads to no address.
func Walk(r Resolver, cfg Config, host string, ask func(name string) Answer) Result {
	return WalkServers(r, cfg, host, Nameservers{Ask: []func(string) Answer{ask}})
}

// WalkServers is Walk with several nameservers; none stands for one that is silent. The answer of a step is that of
// the nameserver whose reply counts, which may be another one for A than for AAAA; if none counts, that of the last.
func WalkServers(r Resolver, cfg Config, host string, servers Nameservers) Result {
	res := Result{Resolver: r, Host: host, By: -1}
	if status, ends := r.withoutQuery(cfg, host); ends {
		res.Status = status
		return res
	}
	e := newExchange(r, cfg, servers)
	e.host = host
	left := false
	for _, c := range Candidates(r, cfg, host) {
		// After leaving the list, glibc asks for the name as typed once more, not for the one of the domain ".".
		if left && (!c.Bare || c.Domain != "") {
			continue
		}
		step := e.step(c)
		res.Steps = append(res.Steps, step)
		if step.Action == Take || step.Action == Stop {
			break
		}
		left = left || step.Action == LeaveList
	}
	if left && !res.triedBare() {
		// The list held ".", behind the place where the search left it, so Candidates does not end in the bare name.
		name, _ := Absolute(host)
		res.Steps = append(res.Steps, e.step(Candidate{Name: name, Bare: true}))
	}
	res.finish()
	return res
}

func (r Result) triedBare() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Bare })
}

func (e *exchange) step(c Candidate) Step {
	switch {
	case c.Unseen:
		return Step{Candidate: c, Answer: Unknown("the node's search domains are not known"), Action: Next, Status: NotFound}
	case c.Invalid:
		return e.invalidStep(c)
	}
	s := Step{Candidate: c}
	s.Answer, s.Action, s.Status = e.ask(c.Name)
	if s.Action == LeaveList && c.Bare && c.Domain == "" {
		// The name as it was typed is not on the list: whatever its error, __res_context_search goes on with the list.
		s.Action = Next
	}
	if !s.Answer.Known && s.Action == Take {
		// An unknown answer is no answer, whatever was filled in.
		a := Unknown(s.Answer.Note)
		a.Aliases, a.Match, a.Addresses = s.Answer.Aliases, s.Answer.Match, s.Answer.Addresses
		s.Answer = a
		s.Action, s.Status = e.resolver.judge(a)
	}
	return s
}

// muslName is the size of the buffer in which every musl puts host, dot and search domain together. It passes over a
// domain that does not fit (name_from_dns_search).
const muslName = 256

// invalidStep is what happens at a candidate that is no valid name.
func (e *exchange) invalidStep(c Candidate) Step {
	r := e.resolver
	s := Step{Candidate: c, Answer: Answer{Known: true, Note: "not a valid name, so nobody is asked"}}
	switch {
	case r.skipsInvalid():
		s.Action, s.Status = Next, NotFound
	case r.Library == Musl && c.Domain == ".":
		// musl before 1.2.4 sends a malformed query for "host..", which nobody answers.
		s.Answer = Negative(NoReply, `malformed query for the search domain "."`)
		s.Action, s.Status = Stop, TryAgain
	case r.Library == Musl && len(e.host)+len(c.Domain) >= muslName:
		s.Action, s.Status = Next, NotFound
	case r.Library == Musl:
		s.Action, s.Status = Stop, NotFound
	default:
		s.Action, s.Status = LeaveList, Failed
	}
	return s
}

// finish sets how the look-up ends from its steps.
func (r *Result) finish() {
	if len(r.Steps) == 0 {
		r.Status = NotFound
		return
	}
	last := len(r.Steps) - 1
	r.Status = r.Steps[last].Status
	switch {
	case r.Steps[last].Action == Take:
		r.By = last
		r.Partial = r.Steps[last].Answer.Truncated && !r.Resolver.hasTCP()
	case r.Steps[last].Action == Stop:
	case r.Resolver.Library == Glibc:
		r.Status = glibcStatus(r.Steps)
	case r.Resolver.Library == Go:
		r.Status = goStatus(r.Steps)
	}
}

// glibcStatus follows the end of __res_context_search: the error of the name as it was typed counts if that was tried
// first, else an empty answer on the way, else a SERVFAIL on the way, else the last error.
func glibcStatus(steps []Step) Status {
	if first := steps[0]; first.Bare && first.Domain == "" && len(steps) > 1 {
		return first.Status
	}
	status := steps[len(steps)-1].Status
	for _, s := range steps {
		if s.Bare && s.Domain == "" || s.Action != Next {
			continue
		}
		switch {
		case s.Status == NoAddress:
			return NoAddress
		case s.Status == TryAgain:
			status = TryAgain
		}
	}
	return status
}

// goStatus follows goLookupIPCNAMEOrder: the error of the name as it was typed, which is always on the list.
func goStatus(steps []Step) Status {
	for _, s := range steps {
		if s.Bare {
			return s.Status
		}
	}
	return steps[0].Status
}
