package rehearse

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
)

// Question is one query of one client.
type Question struct {
	// Name is the name asked for; a missing final dot is added.
	Name string
	// Type is the type of record, such as dns.TypeA; zero means A.
	Type uint16
	// Client is the address that the query comes from, for plugins that look at it (acl, view, autopath). The zero
	// value is an address that no pod has.
	Client netip.Addr
	// Server is where the query is sent. Without a port it is 53; without an address it is the listener that has no
	// bind, or the first that has one.
	Server netip.AddrPort
	// TCP tells that the query comes over TCP, where answers are not truncated to a datagram.
	TCP bool
	// UDPSize is the size that the client offers by EDNS(0) (RFC 6891 section 6.2.3); zero means a query without EDNS,
	// whose answer has at most 512 octets.
	UDPSize uint16
}

// Answer is what the server answered and how it came to that.
type Answer struct {
	// Rcode is the response code (RFC 1035 section 4.1.1).
	Rcode int
	// Answer, Authority and Additional are the sections of the message, without the OPT pseudo record.
	Answer, Authority, Additional []dns.RR
	// Authoritative and Truncated are the flags AA and TC.
	Authoritative, Truncated bool
	// Block is the server block that took the query; nil if none did, so that the server itself refused it.
	Block *Block
	// Plugin is the plugin that answered, or that failed or refused, named as in the Corefile. It is empty when no
	// plugin was reached.
	Plugin string
	// Path are the plugins that the query went through, in the order in which they were entered. A name that a plugin
	// looked up at the same server has entries of its own.
	Path []Visit
	// Upstream are the queries that left the server, in order.
	Upstream []Exchange
	// Unknown says why the answer is not certain, as a clause; empty where it is certain. Then the rest is what was
	// assumed.
	Unknown string
}

// Block is one server block of the Corefile.
type Block struct {
	// Index counts the blocks as the server reads them, from 0.
	Index int
	// Keys are the keys as written, with the environment filled in.
	Keys []string
	// Position is where the first key is written.
	Position corefile.Position
}

// Visit is one plugin that a query went through.
type Visit struct {
	Block  *Block
	Plugin string
	// Name and Type are the question as the plugin saw it, after rewrites.
	Name string
	Type uint16
	// Depth is 0 for the query of the client, and counts the look-ups inside of look-ups for others.
	Depth int
	// Rcode and Err are what the plugin returned, which includes what came back from the plugins behind it. A code
	// of SERVFAIL, REFUSED, FORMERR or NOTIMP means that nothing was written so far (plugin/plugin.go).
	Rcode int
	Err   error
}

// Exchange is one query that left the server, with the reply that it got.
type Exchange struct {
	// To is the upstream as it is written in the Corefile or, where that names a file, the address in that file.
	To string
	// Via is the file that names the upstream; empty if the Corefile does.
	Via string
	// Name and Type are what was asked, absolute and in the case in which it was asked.
	Name string
	Type uint16
	TCP  bool
	// Reply is what the upstream answered.
	Reply Reply
}

// Reply is what an upstream answers.
type Reply struct {
	// Rcode is the response code; NXDOMAIN is assumed where the reply is not known.
	Rcode int
	// Records are the answer section, Authority the authority section.
	Records, Authority []dns.RR
	// Unknown says why nobody knows what the upstream answers; empty where it is known.
	Unknown string
	// Silent tells that the upstream does not answer at all.
	Silent bool
}

// unknownReply is what upstreams answer of which nothing is known.
func unknownReply(e Exchange) Reply {
	return Reply{Rcode: dns.RcodeNameError, Unknown: "what the upstream " + e.To + " answers is not known"}
}

// Limits of one rehearsal. A real Corefile stays far below them.
const (
	// maxBlocks and maxUpstreams bound the blocks of a Corefile and the stubs, each of which has two sockets.
	maxBlocks    = 512
	maxUpstreams = 128
	// maxKubernetes bounds the kubernetes plugins, each of which has a copy of the cluster in its caches.
	maxKubernetes = 8
	// maxPrinted bounds what is handed to CoreDNS, in bytes.
	maxPrinted = 2 * corefile.MaxSize
	// maxFiles bounds what is written into the private directory, in bytes.
	maxFiles = 64 << 20
	// startTime and askTime apply where the context has no earlier deadline.
	startTime = 30 * time.Second
	askTime   = 10 * time.Second
)
