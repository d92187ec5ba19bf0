package resolve

// Library is a stub resolver.
type Library int

// The libraries that containers come with.
const (
	Glibc Library = iota + 1
	Musl
	Go
)

// String returns the name people know the library by.
func (l Library) String() string {
	switch l {
	case Glibc:
		return "glibc"
	case Musl:
		return "musl"
	case Go:
		return "Go"
	}
	return "unknown resolver"
}

// Resolver is a stub resolver of one version. The models follow glibc 2.36 (resolv/res_query.c,
// resolv/res_init.c), musl 1.2.3 and later (src/network/lookup_name.c, resolvconf.c, res_msend.c) and Go 1.26
// (net/dnsclient_unix.go, net/dnsconfig_unix.go) for a look-up of both A and AAAA, which is what getaddrinfo with
// AF_UNSPEC and net.Resolver.LookupHost do. An unknown version is the newest.
type Resolver struct {
	Library Library
	Version Version
}

// Measured returns the three resolvers in the versions whose behaviour was measured, in the order in which reports
// name them.
func Measured() []Resolver {
	return []Resolver{
		{Library: Glibc, Version: Version{2, 36, 0}},
		{Library: Musl, Version: Version{1, 2, 3}},
		{Library: Go, Version: Version{1, 26, 0}},
	}
}

// String returns the library and, where it is known, its version.
func (r Resolver) String() string {
	if !r.Version.Known() {
		return r.Library.String()
	}
	return r.Library.String() + " " + r.Version.String()
}

// hasTCP tells whether the resolver asks again over TCP when an answer was truncated. musl does from 1.2.4.
func (r Resolver) hasTCP() bool { return r.Library != Musl || !r.Version.Before(1, 2, 4) }

// skipsInvalid tells whether a candidate that is no valid name is passed over. Go never forms it (nameList); musl does
// pass over it from 1.2.4 and ends the search before. glibc leaves the list (res_query.c: NO_RECOVERY).
func (r Resolver) skipsInvalid() bool {
	return r.Library == Go || r.Library == Musl && !r.Version.Before(1, 2, 4)
}

// judge says what the resolver does after an answer to a candidate of the search, and with what status the look-up
// ends if no other candidate changes it.
func (r Resolver) judge(a Answer) (Action, Status) {
	switch r.Library {
	case Musl:
		return judgeMusl(a)
	case Go:
		return judgeGo(a)
	}
	return judgeGlibc(a)
}

// judgeGlibc follows __res_context_query and the switch in __res_context_search: two replies are one result, in which
// a good reply outweighs a bad one.
func judgeGlibc(a Answer) (Action, Status) {
	switch {
	case a.HasAddress():
		return Take, Resolved
	case a.A == Reply{Records: AliasAlone}, a.AAAA == Reply{Records: AliasAlone}:
		// The search is over, because a record came; gaih_getanswer then finds no address among the records.
		return Stop, NoAddress
	}
	code := a.A.Rcode
	if code == NoError {
		code = a.AAAA.Rcode
	}
	switch code {
	case NoError:
		return Next, NoAddress
	case NXDomain:
		return Next, NotFound
	case ServFail:
		// The search looks at the code of the first reply (A) alone: a SERVFAIL for AAAA beside NODATA for A leaves
		// the list.
		if a.A.Rcode == ServFail {
			return Next, TryAgain
		}
		return LeaveList, TryAgain
	case NoReply:
		return LeaveList, TryAgain
	}
	return LeaveList, Failed
}

// judgeMusl follows name_from_dns: the replies are looked at in the order A, AAAA, and the first that is not NOERROR
// decides, so a bad reply for AAAA outweighs a good one for A. Codes other than NOERROR and NXDOMAIN are no replies at
// all to __res_msend_rc, which waits for a better one until its time is over.
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

// judgeGo follows goLookupIPCNAMEOrder without StrictErrors: every name of the list is tried until one gave an
// address; the replies count each for itself.
func judgeGo(a Answer) (Action, Status) {
	if a.HasAddress() {
		return Take, Resolved
	}
	worst := NotFound
	for _, r := range []Reply{a.A, a.AAAA} {
		switch r.Rcode {
		case NoError, NXDomain:
		case ServFail, NoReply:
			worst = TryAgain
		default:
			if worst == NotFound {
				worst = Failed
			}
		}
	}
	if worst == NotFound && a.A.Rcode != NXDomain {
		// Go reports both as "no such host".
		return Next, NoAddress
	}
	return Next, worst
}
