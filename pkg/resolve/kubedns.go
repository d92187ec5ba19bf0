package resolve

import (
	"net/netip"
	"slices"
	"strings"
)

// kubeDNSAliases is how many aliases kube-dns follows from one name (skydns server.go, AddressRecords: "CNAME lookup
// limit of 8").
const kubeDNSAliases = 8

// KubeDNS models what kube-dns answers for names under the cluster domain to queries for A and AAAA, after
// pkg/dns/dns.go, pkg/dns/treecache and third_party/forked/skydns/server of kubernetes/dns. Its data is a tree: an
// ExternalName Service is an entry of its namespace's node, other Services are nodes with entries for their addresses.
// A query is answered with the entry of its name, else with all entries of the node of its name, else with NXDOMAIN.
// Federations and wildcards are not part of the model.
type KubeDNS struct {
	// Zone is the cluster domain, absolute.
	Zone  string
	Names Names
	// Outside answers names that are not in Zone, to which an alias leads. Nil knows none of them.
	Outside func(name string) Answer
}

// Domain returns the cluster domain.
func (k *KubeDNS) Domain() string { return k.Zone }

// MaxAliases is how long a chain of ExternalName Services may be that the server still follows to its end.
func (k *KubeDNS) MaxAliases() int { return kubeDNSAliases }

// Answer answers one name.
func (k *KubeDNS) Answer(name string) Answer {
	if !Under(name, k.Zone) {
		return outside(k.Zone)
	}
	return k.lookup(name, newTrail())
}

func (k *KubeDNS) lookup(name string, path trail) Answer {
	rest, _ := cut(name, k.Zone)
	if slices.Contains(rest, "*") {
		return Unknown("wildcards of kube-dns are not modelled")
	}
	if len(rest) == 3 && rest[2] == "pod" {
		return k.pod(rest[0], rest[1])
	}
	if len(rest) < 2 || rest[len(rest)-1] != "svc" {
		return Negative(NXDomain, "kube-dns has no records at this name")
	}
	namespace := rest[len(rest)-2]
	if len(rest) == 2 {
		return k.namespace(namespace, path)
	}
	s, ok := k.Names.Service(namespace, rest[len(rest)-3])
	if !ok {
		return Negative(NXDomain, "there is no Service "+rest[len(rest)-3]+" in namespace "+namespace)
	}
	a := k.service(s, rest[:len(rest)-3], path)
	if a.A.Rcode == NoError {
		a.Match = Match{Node: ServiceNode, Namespace: namespace, Service: s.Name}
		switch len(rest) {
		case 4:
			a.Match.Node = EndpointNode
		case 5:
			a.Match.Node = PortNode
		}
	}
	return a
}

// pod answers from the label alone (isPodRecord, getPodIP): any namespace will do, and a label that is no IPv4 address
// gives an empty answer.
func (k *KubeDNS) pod(label, namespace string) Answer {
	addr, err := netip.ParseAddr(strings.ReplaceAll(label, "-", "."))
	a := NoData("the label is no IPv4 address with dashes")
	if err == nil {
		a = Found(addr)
	}
	a.Match = Match{Node: PodNode, Namespace: namespace}
	return a
}

// namespace answers the node of a namespace: one CNAME of all its ExternalName Services, changing from query to query
// (dedup in server.go keeps one), and the addresses of all their targets. Other Services are no entries of the node.
func (k *KubeDNS) namespace(namespace string, path trail) Answer {
	var sum union
	for s := range k.Names.ExternalNames(namespace) {
		sum.add(k.follow(s, path))
	}
	if sum.parts == 0 {
		if !k.Names.HasNamespace(namespace) {
			return Negative(NXDomain, "there is no namespace "+namespace)
		}
		return Negative(NXDomain, "the namespace has no ExternalName Service, so kube-dns has no records at its node")
	}
	sum.answer.Varies = sum.parts > 1
	sum.answer.Match = Match{Node: NamespaceNode, Namespace: namespace}
	sum.answer.Note = "kube-dns answers the node of a namespace with its ExternalName Services, one of them at a time"
	return sum.answer
}

// service answers a Service, or with labels in front names below it.
func (k *KubeDNS) service(s Service, below []string, path trail) Answer {
	if s.Kind == ExternalName {
		if len(below) > 0 {
			return Negative(NXDomain, "the Service is an alias, which has no names below it")
		}
		return k.follow(s, path)
	}
	if s.Kind == Headless && s.EndpointsUnknown {
		return Unknown("the endpoints of the Service are not known")
	}
	switch len(below) {
	case 0:
		if s.Kind == ClusterIP {
			return Found(s.Addresses...)
		}
		return addressesOr(s.ready(func(Endpoint) bool { return true }), "the headless Service has no ready endpoint")
	case 1:
		if s.Kind == Headless {
			// Endpoints without a host name have a hash for a label, which nobody types.
			return addressesOr(s.ready(func(e Endpoint) bool { return strings.EqualFold(e.Hostname, below[0]) }),
				"no ready endpoint of the Service has this host name")
		}
	case 2:
		// _port._protocol: entries for SRV, whose target the server follows for A and AAAA.
		if s.Kind == ClusterIP && hasPort(s.Ports, below[0], below[1]) {
			return Found(s.Addresses...)
		}
		if s.Kind == Headless {
			return addressesOr(s.ready(func(e Endpoint) bool { return hasPort(s.ports(e), below[0], below[1]) }),
				"no ready endpoint of the Service has this port")
		}
	}
	return Negative(NXDomain, "kube-dns has no records at this name below the Service")
}

func addressesOr(addrs []netip.Addr, note string) Answer {
	if len(addrs) == 0 {
		return Negative(NXDomain, note)
	}
	return Found(addrs...)
}

// ready returns the addresses of the ready endpoints that keep accepts, each once.
func (s Service) ready(keep func(Endpoint) bool) []netip.Addr {
	var addrs []netip.Addr
	for _, e := range s.Endpoints {
		if e.Ready && keep(e) {
			addrs = append(addrs, e.Address)
		}
	}
	return uniqueAddrs(addrs)
}

// hasPort tells whether a port has the labels _name and _protocol; kube-dns wants the underscores and a name.
func hasPort(ports []Port, name, protocol string) bool {
	return slices.ContainsFunc(ports, func(p Port) bool {
		return p.Name != "" && p.Protocol != "" && name == "_"+strings.ToLower(p.Name) && protocol == "_"+strings.ToLower(p.Protocol)
	})
}

// follow answers with what the target of an alias answers. An alias that leads nowhere, in the zone or out of it, is left
// out of the answer, so that it is empty.
func (k *KubeDNS) follow(s Service, path trail) Answer {
	al, valid := s.alias(k.Zone)
	next, ok := path.through(al)
	if !ok {
		return Unknown("the aliases branch too often to follow them all")
	}
	var a Answer
	switch addr, err := netip.ParseAddr(s.Target); {
	case err == nil:
		// The entry of the Service is its target, and an entry with an address is an address record.
		a = Found(addr)
	case !valid:
		a = Unknown("the target of the alias is no host name")
	case al.Target == al.Owner:
		a = NoData("the alias leads to itself")
	case len(path.aliases) >= kubeDNSAliases:
		a = NoData("the chain of aliases is longer than kube-dns follows")
	case path.leadsTo(al.Target):
		a = NoData("the aliases lead in a circle")
	case Under(al.Target, k.Zone):
		if a = chased(k.lookup(al.Target, next)); len(a.Aliases) > 0 {
			return a
		}
	default:
		a = k.outsideTarget(al.Target)
	}
	a.Aliases = append(next.aliases, a.Aliases...)
	return a
}

// outsideTarget follows Lookup of skydns, which takes every code but NOERROR for a failure: the alias is then left out.
func (k *KubeDNS) outsideTarget(target string) Answer {
	if k.Outside == nil {
		a := Unknown("the alias leads out of the cluster domain")
		a.A, a.AAAA = Reply{}, Reply{}
		return a
	}
	a := k.Outside(target)
	for _, r := range []*Reply{&a.A, &a.AAAA} {
		switch {
		case r.Rcode != NoError:
			*r = Reply{}
		case r.Records == NoRecords:
			r.Records = AliasAlone
		}
	}
	if !a.Known {
		a.Note = "the alias leads out of the cluster domain"
	}
	return a
}
