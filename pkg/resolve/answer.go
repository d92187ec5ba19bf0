package resolve

import (
	"net/netip"
	"strconv"
	"strings"
)

// Rcode is the response code of a DNS message (RFC 1035 section 4.1.1), or NoReply.
type Rcode int

// The response codes that resolvers tell apart.
const (
	NoError  Rcode = 0
	FormErr  Rcode = 1
	ServFail Rcode = 2
	NXDomain Rcode = 3
	NotImp   Rcode = 4
	Refused  Rcode = 5
	// NoReply stands for no answer at all within the time and attempts of the resolver. It lies outside the 12 bits
	// of an extended code.
	NoReply Rcode = 1 << 12
)

// String returns the name that dig prints.
func (c Rcode) String() string {
	switch c {
	case NoError:
		return "NOERROR"
	case FormErr:
		return "FORMERR"
	case ServFail:
		return "SERVFAIL"
	case NXDomain:
		return "NXDOMAIN"
	case NotImp:
		return "NOTIMP"
	case Refused:
		return "REFUSED"
	case NoReply:
		return "no reply"
	}
	return "RCODE" + strconv.Itoa(int(c))
}

// Records is what the answer section of a reply holds, as far as a stub resolver cares.
type Records int

// The kinds of answer sections.
const (
	// NoRecords: the section is empty.
	NoRecords Records = iota
	// AliasAlone: CNAME records that lead to no address of the type asked for.
	AliasAlone
	// Address: at least one address of the type asked for, behind aliases or not.
	Address
)

// Reply is the answer to one query for one type of address.
type Reply struct {
	Rcode   Rcode
	Records Records
}

// String returns the code, or for NOERROR what the answer holds: "address", "CNAME alone", "NODATA".
func (r Reply) String() string {
	if r.Rcode != NoError {
		return r.Rcode.String()
	}
	switch r.Records {
	case Address:
		return "address"
	case AliasAlone:
		return "CNAME alone"
	}
	return "NODATA"
}

// Answer is what a server answers for one name, asked for A and for AAAA.
type Answer struct {
	// Known is false where a model cannot know whether the name leads to an address. A and AAAA are then the answer
	// that is assumed if it does not.
	Known   bool
	A, AAAA Reply
	// Addresses are those of the answer, where they are known; a reply may have Records Address without any here.
	Addresses []netip.Addr
	// Truncated tells that the answer does not fit a datagram, so that a resolver without TCP takes a part of it.
	Truncated bool
	// Aliases are all aliases that this answer may lead through, in a stable order.
	Aliases []Alias
	// Varies tells that the server gives one of the aliases at a time, changing from query to query.
	Varies bool
	// Match says which node of the cluster's name space answered. The zero value is none.
	Match Match
	// Note is a clause that says why, for people. It has no final dot.
	Note string
}

// Alias is an ExternalName Service that an answer leads through.
type Alias struct {
	// Namespace and Name are those of the Service.
	Namespace, Name string
	// Owner is the absolute name of the Service in the cluster domain, Target the absolute name that it points to,
	// or what its spec holds where that is no valid name.
	Owner, Target string
}

// Node is a kind of node in the name space of a cluster.
type Node int

// The kinds of nodes. NoNode also stands for names that do not exist.
const (
	NoNode Node = iota
	// OutsideNode is a name that is not under the cluster domain.
	OutsideNode
	// DomainNode is the cluster domain itself, svc.DOMAIN or pod.DOMAIN.
	DomainNode
	// NamespaceNode is NAMESPACE.svc.DOMAIN or NAMESPACE.pod.DOMAIN.
	NamespaceNode
	// ServiceNode is SERVICE.NAMESPACE.svc.DOMAIN.
	ServiceNode
	// EndpointNode is HOSTNAME.SERVICE.NAMESPACE.svc.DOMAIN.
	EndpointNode
	// PortNode is _PORT._PROTOCOL.SERVICE.NAMESPACE.svc.DOMAIN.
	PortNode
	// PodNode is 10-0-0-1.NAMESPACE.pod.DOMAIN.
	PodNode
	// ServerNode is ns.dns.DOMAIN: the DNS server itself.
	ServerNode
)

// Match says which node of a cluster's name space answered a query.
type Match struct {
	Node Node
	// Namespace and Service are set where the node has them. With wildcards (CoreDNS before 1.9.0) they are the labels
	// of the query.
	Namespace, Service string
	// Captured tells that the name asked for lies below an ExternalName Service and that an old CoreDNS answered for
	// it nevertheless (coredns#5733, coredns#6161).
	Captured bool
}

// Found is a known answer with the addresses given. With none it is an answer with an IPv4 address that is not known.
func Found(addresses ...netip.Addr) Answer {
	a := Answer{Known: true, Addresses: addresses}
	if len(addresses) == 0 {
		a.A.Records = Address
	}
	for _, addr := range addresses {
		if addr.Unmap().Is4() {
			a.A.Records = Address
		} else {
			a.AAAA.Records = Address
		}
	}
	return a
}

// NoData is a known NOERROR answer without records.
func NoData(note string) Answer { return Answer{Known: true, Note: note} }

// CNAMEAlone is a known NOERROR answer of aliases that lead to no address.
func CNAMEAlone(note string) Answer {
	r := Reply{Records: AliasAlone}
	return Answer{Known: true, A: r, AAAA: r, Note: note}
}

// Negative is a known answer with an error code for both types.
func Negative(rcode Rcode, note string) Answer {
	r := Reply{Rcode: rcode}
	return Answer{Known: true, A: r, AAAA: r, Note: note}
}

// Unknown is an answer that a model cannot know; NXDOMAIN is assumed where it is no address.
func Unknown(note string) Answer {
	a := Negative(NXDomain, note)
	a.Known = false
	return a
}

// HasAddress tells whether either reply carries an address that a lenient resolver would take.
func (a Answer) HasAddress() bool {
	return a.A.Rcode == NoError && a.A.Records == Address || a.AAAA.Rcode == NoError && a.AAAA.Records == Address
}

// resolving is the answer in the case that an unknown answer leads to an address.
func (a Answer) resolving() Answer {
	a.A, a.AAAA = Reply{Records: Address}, Reply{Records: a.AAAA.Records}
	a.Known = true
	return a
}

// String describes the answer in one clause: "address 192.0.2.1", "NXDOMAIN", "unknown".
func (a Answer) String() string {
	switch {
	case !a.Known:
		return "unknown"
	case a.HasAddress():
		if len(a.Addresses) == 0 {
			return "address"
		}
		texts := make([]string, len(a.Addresses))
		for i, addr := range a.Addresses {
			texts[i] = addr.String()
		}
		return "address " + strings.Join(texts, " ")
	case a.A == a.AAAA:
		return a.A.String()
	}
	return "A " + a.A.String() + ", AAAA " + a.AAAA.String()
}
