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

// Resolver is a stub resolver of one version. The models follow glibc 2.36 (resolv/res_query.c, res_send.c,
// res_init.c), musl 1.2.3 to 1.2.5 (src/network/lookup_name.c, resolvconf.c, res_msend.c) and Go 1.26
// (net/dnsclient_unix.go, net/dnsconfig_unix.go) for a look-up of both A and AAAA, which is what getaddrinfo with
// AF_UNSPEC and net.Resolver.LookupHost do. An unknown version is the newest. TestE2EStubResolvers holds them against
// these programs.
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

// judge says what the resolver does after an answer of its only nameserver, and with what status the look-up ends if no
// other candidate changes it.
func (r Resolver) judge(a Answer) (Action, Status) {
	e := newExchange(r, NewConfig(), Nameservers{Ask: []func(string) Answer{func(string) Answer { return a }}})
	_, action, status := e.ask("")
	return action, status
}
