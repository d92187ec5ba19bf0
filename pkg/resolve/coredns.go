package resolve

import (
	"net/netip"
	"slices"
	"strings"
)

// PodMode is the option pods of CoreDNS's kubernetes plugin.
type PodMode string

// The modes. Corefiles that clusters ship have insecure; the plugin's default is disabled.
const (
	PodsDisabled PodMode = "disabled"
	PodsInsecure PodMode = "insecure"
	PodsVerified PodMode = "verified"
)

// CoreDNS models what the kubernetes plugin of CoreDNS answers for names under its zone to queries for A and AAAA,
// after plugin/kubernetes/{kubernetes,parse,handler}.go and plugin/backend_lookup.go of the releases 1.6.9 to 1.15.0.
// Options of 1.12.2 and later that answer under other names (multicluster, zonal) are not part of it; neither are other
// plugins of the block, such as rewrite, template or hosts, that see a query before.
type CoreDNS struct {
	// Zone is the zone of the plugin, absolute: the cluster domain.
	Zone string
	// Version decides where releases differ; unknown is the newest.
	Version Version
	Names   Names

	// Pods is the option pods; empty means disabled, the plugin's default.
	Pods PodMode
	// Namespaces is the option namespaces: if there are any, others do not exist.
	Namespaces []string
	// NamespaceSelected and ServiceSelected stand for the options namespace_labels and labels; nil selects all.
	NamespaceSelected func(namespace string) bool
	ServiceSelected   func(namespace, name string) bool
	// IgnoreEmptyService is the option "ignore empty_service".
	IgnoreEmptyService bool
	// NoEndpoints is the option noendpoints.
	NoEndpoints bool
	// EndpointPodNames is the option endpoint_pod_names.
	EndpointPodNames bool
	// Fallthrough are the zones of the option fallthrough, absolute, "." for all: a name in one of them that does not
	// exist goes to the next plugin.
	Fallthrough []string
	// Outside answers names that are not in Zone, to which an alias leads. Nil knows none of them.
	Outside func(name string) Answer
}

// Domain returns the zone.
func (c *CoreDNS) Domain() string { return c.Zone }

// Answer answers one name.
func (c *CoreDNS) Answer(name string) Answer {
	if !Under(name, c.Zone) {
		return outside(c.Zone)
	}
	a := c.lookup(name, newTrail())
	if a.A.Rcode == NXDomain && a.Known && slices.ContainsFunc(c.Fallthrough, func(z string) bool { return Under(name, z) }) {
		next := Unknown("does not exist for the kubernetes plugin, which passes it to the next one (fallthrough)")
		next.Match = a.Match
		return next
	}
	return a
}

// maxAliases is how many aliases the plugin follows from one name. The records that came before are counted against 7
// up to 1.12.0 and 10 from 1.12.1 (backend_lookup.go), and the count begins at none.
func (c *CoreDNS) maxAliases() int {
	if c.Version.Before(1, 12, 1) {
		return 8
	}
	return 11
}

// MaxAliases is how long a chain of ExternalName Services may be that the server still follows to its end.
func (c *CoreDNS) MaxAliases() int { return c.maxAliases() }

// wildcards tells whether "*" and "any" match every label: before 1.9.0 (coredns#5019).
func (c *CoreDNS) wildcards() bool { return c.Version.Before(1, 9, 0) }

func (c *CoreDNS) wild(label string) bool {
	return c.wildcards() && (label == "*" || label == "any")
}

// match compares a label of the query with a name. Wildcards counted on both sides, so that a Service called "any"
// matched every label when the query had a wildcard elsewhere.
func (c *CoreDNS) match(label, name string) bool {
	return c.wild(label) || c.wild(name) || strings.EqualFold(label, name)
}

// exposed follows namespaceExposed: the namespace exists and no option hides it.
func (c *CoreDNS) exposed(namespace string) bool {
	if len(c.Namespaces) > 0 && !slices.Contains(c.Namespaces, namespace) {
		return false
	}
	if c.NamespaceSelected != nil && !c.NamespaceSelected(namespace) {
		return false
	}
	return c.Names.HasNamespace(namespace)
}

// request is a query as parseRequest cuts it.
type request struct {
	kind                                         string // svc or pod
	namespace, service, endpoint, port, protocol string
	// ready tells that some Service has a ready endpoint: with a wildcard, "ignore empty_service" counted the
	// endpoints of all.
	ready bool
}

// parse follows parse.go. It says false for names of another shape, which do not exist. The names DOMAIN, svc.DOMAIN
// and pod.DOMAIN give an empty request.
func parse(rest []string) (r request, ok bool) {
	if len(rest) == 0 {
		return r, true
	}
	last := len(rest) - 1
	if r.kind = rest[last]; r.kind != "svc" && r.kind != "pod" {
		return r, false
	}
	take := func(s *string) {
		if last--; last >= 0 {
			*s = rest[last]
		}
	}
	take(&r.namespace)
	take(&r.service)
	switch last {
	case 1:
		r.endpoint = rest[0]
	case 2:
		r.protocol = strings.TrimPrefix(rest[1], "_")
		r.port = strings.TrimPrefix(rest[0], "_")
	}
	return r, last <= 2
}

// match says what kind of node a request is for.
func (r request) match() Match {
	m := Match{Namespace: r.namespace, Service: r.service}
	switch {
	case r.namespace == "":
		m.Node = DomainNode
	case r.service == "":
		m.Node = NamespaceNode
	case r.kind == "pod":
		m.Node, m.Service = PodNode, ""
	case r.endpoint != "":
		m.Node = EndpointNode
	case r.port != "" || r.protocol != "":
		m.Node = PortNode
	default:
		m.Node = ServiceNode
	}
	return m
}

// lookup answers a name in the zone; path is how the query came to it.
func (c *CoreDNS) lookup(name string, path trail) Answer {
	rest, _ := cut(name, c.Zone)
	if len(rest) == 2 && rest[0] == "ns" && rest[1] == "dns" {
		// ns.go: the addresses of the Services in front of CoreDNS, or its own.
		a := Found()
		a.Match.Node = ServerNode
		return a
	}
	r, ok := parse(rest)
	if !ok {
		return Negative(NXDomain, "no name of a Service or pod has this shape")
	}
	if r.namespace == "" {
		a := NoData("the node exists and has no records")
		a.Match.Node = DomainNode
		return a
	}
	if !c.wild(r.namespace) && !c.exposed(r.namespace) {
		if c.Names.HasNamespace(r.namespace) {
			return Negative(NXDomain, "an option of the kubernetes plugin hides the namespace "+r.namespace)
		}
		return Negative(NXDomain, "there is no namespace "+r.namespace)
	}
	var a Answer
	if r.kind == "pod" {
		a = c.pod(r)
	} else {
		a = c.service(r, path)
	}
	if a.A.Rcode == NoError {
		captured := a.Match.Captured
		a.Match = r.match()
		a.Match.Captured = captured
	}
	return a
}

// pod follows findPods.
func (c *CoreDNS) pod(r request) Answer {
	mode := c.Pods
	if mode == "" {
		mode = PodsDisabled
	}
	if mode == PodsDisabled {
		return Negative(NXDomain, "the kubernetes plugin serves no pods (pods disabled)")
	}
	if r.service == "" {
		return NoData("the namespace exists and the node has no records")
	}
	addr, ok := podAddress(r.service)
	if mode == PodsInsecure {
		if !ok {
			return Negative(NXDomain, "the label is no address with dashes")
		}
		return Found(addr)
	}
	if ok {
		if c.wild(r.namespace) {
			for ns := range c.Names.Namespaces() {
				if has, _ := c.Names.HasPod(ns, addr); has && c.exposed(ns) {
					return Found(addr)
				}
			}
		}
		has, known := c.Names.HasPod(r.namespace, addr)
		switch {
		case has:
			return Found(addr)
		case !known:
			return Unknown("the pods of the cluster are not known (pods verified)")
		}
	}
	if c.wild(r.service) && !c.wild(r.namespace) {
		return NoData("the namespace exists (wildcard before 1.9.0)")
	}
	return Negative(NXDomain, "no pod of the namespace has this address (pods verified)")
}

// podAddress reads the label of a pod record: dashes stand for dots where there are three and no two in a row, and for
// colons else.
func podAddress(label string) (netip.Addr, bool) {
	sep := ":"
	if strings.Count(label, "-") == 3 && !strings.Contains(label, "--") {
		sep = "."
	}
	addr, err := netip.ParseAddr(strings.ReplaceAll(label, "-", sep))
	return addr, err == nil && addr.Zone() == ""
}

// service follows findServices, and A and AAAA of backend_lookup.go.
func (c *CoreDNS) service(r request, path trail) Answer {
	if r.service == "" {
		return NoData("the namespace exists and its node has no records")
	}
	var (
		sum    union
		hidden string
	)
	if c.IgnoreEmptyService && (c.wild(r.service) || c.wild(r.namespace)) {
		r.ready = c.anyReady()
	}
	for _, s := range c.candidates(r) {
		if c.ServiceSelected != nil && !c.ServiceSelected(s.Namespace, s.Name) {
			hidden = "the option labels of the kubernetes plugin hides the Service"
			continue
		}
		a, ok, why := c.one(s, r, path)
		if !ok {
			if hidden == "" {
				hidden = why
			}
			continue
		}
		sum.add(a)
	}
	switch {
	case sum.parts > 0:
		return sum.answer
	case c.wild(r.service) && !c.wild(r.namespace):
		return NoData("the namespace exists (wildcard before 1.9.0)")
	case hidden != "":
		return Negative(NXDomain, hidden)
	}
	return Negative(NXDomain, "there is no Service "+r.service+" in namespace "+r.namespace)
}

// candidates are the Services that the labels of the request name: one, or with wildcards all that match.
func (c *CoreDNS) candidates(r request) []Service {
	if !c.wild(r.service) && !c.wild(r.namespace) {
		if s, ok := c.Names.Service(r.namespace, r.service); ok {
			return []Service{s}
		}
		return nil
	}
	var list []Service
	for ns := range c.Names.Namespaces() {
		if !c.match(r.namespace, ns) || !c.exposed(ns) {
			continue
		}
		for s := range c.Names.Services(ns) {
			if c.match(r.service, s.Name) {
				list = append(list, s)
			}
		}
	}
	return list
}

// one is the part of one Service in the answer. It says false, and why, if the Service has none.
func (c *CoreDNS) one(s Service, r request, path trail) (a Answer, ok bool, why string) {
	if s.Kind == ExternalName {
		return c.external(s, r, path)
	}
	if c.IgnoreEmptyService && s.Kind == ClusterIP && !r.ready {
		if s.EndpointsUnknown && !c.NoEndpoints {
			return Unknown("the endpoints of the Service are not known (ignore empty_service)"), true, ""
		}
		if !c.hasReady(s) {
			return a, false, "the Service has no ready endpoint (ignore empty_service)"
		}
	}
	if s.Kind == Headless || r.endpoint != "" {
		return c.endpoints(s, r)
	}
	if !c.matchPort(r, s.Ports) {
		return a, false, "the Service has no such port"
	}
	return Found(s.Addresses...), true, ""
}

func (c *CoreDNS) hasReady(s Service) bool {
	return !c.NoEndpoints && slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return e.Ready })
}

func (c *CoreDNS) anyReady() bool {
	for ns := range c.Names.Namespaces() {
		for s := range c.Names.Services(ns) {
			if c.hasReady(s) {
				return true
			}
		}
	}
	return false
}

// endpoints answers a headless Service, and the host names of endpoints of every kind of Service. A headless Service
// without a ready endpoint does not exist.
func (c *CoreDNS) endpoints(s Service, r request) (a Answer, ok bool, why string) {
	if s.EndpointsUnknown && !c.NoEndpoints {
		return Unknown("the endpoints of the Service are not known"), true, ""
	}
	var addrs []netip.Addr
	if !c.NoEndpoints {
		for _, e := range s.Endpoints {
			if e.Ready && (r.endpoint == "" || c.match(r.endpoint, c.hostname(e))) && c.matchPort(r, s.ports(e)) {
				addrs = append(addrs, e.Address)
			}
		}
	}
	switch {
	case len(addrs) > 0:
		return Found(uniqueAddrs(addrs)...), true, ""
	case r.endpoint != "":
		return a, false, "no ready endpoint of the Service has this name"
	case r.port != "" || r.protocol != "":
		return a, false, "no ready endpoint of the Service has this port"
	}
	return a, false, "the headless Service has no ready endpoint"
}

// hostname follows endpointHostname. A final dash is padded from 1.12.3.
func (c *CoreDNS) hostname(e Endpoint) string {
	switch {
	case e.Hostname != "":
		return e.Hostname
	case c.EndpointPodNames && e.Pod != "":
		return e.Pod
	}
	h := dashed(e.Address)
	if strings.HasSuffix(h, "-") && !c.Version.Before(1, 12, 3) {
		h += "0"
	}
	return h
}

// matchPort follows matchPortAndProtocol: labels that the query does not have match every port. A Service without
// ports has one without name and protocol (object/service.go).
func (c *CoreDNS) matchPort(r request, ports []Port) bool {
	if len(ports) == 0 {
		ports = []Port{{}}
	}
	return slices.ContainsFunc(ports, func(p Port) bool {
		return (r.port == "" || c.match(r.port, p.Name)) && (r.protocol == "" || c.match(r.protocol, p.Protocol))
	})
}

// external answers an ExternalName Service.
func (c *CoreDNS) external(s Service, r request, path trail) (a Answer, ok bool, why string) {
	below := r.endpoint != "" || r.port != "" || r.protocol != ""
	if r.endpoint != "" && !c.Version.Before(1, 10, 1) || below && !c.Version.Before(1, 11, 0) {
		// coredns#5733 until 1.10.1 for one label, coredns#6161 until 1.11.0 for two.
		return a, false, "the Service is an alias, which has no names below it"
	}
	if _, err := netip.ParseAddr(s.Target); err == nil {
		return a, false, "the target of the alias is an address, which CoreDNS does not serve"
	}
	a = c.follow(s, path)
	a.Match.Captured = below
	return a, true, ""
}

// follow answers with what the target of an alias answers. An alias into the zone that leads nowhere, or too far, is
// left out of the answer, so that it is empty; one out of the zone is always in it.
func (c *CoreDNS) follow(s Service, path trail) Answer {
	al, valid := s.alias(c.Zone)
	next, ok := path.through(al)
	dead := func(note string) Answer {
		a := NoData(note)
		a.Aliases = next.aliases
		return a
	}
	if !ok {
		return Unknown("the aliases branch too often to follow them all")
	}
	if !valid {
		a := Unknown("the target of the alias is no host name")
		a.Aliases = next.aliases
		return a
	}
	if Under(al.Target, c.Zone) {
		switch {
		case Under(al.Target, al.Owner):
			return dead("the alias leads to itself")
		case len(path.aliases) >= c.maxAliases():
			return dead("the chain of aliases is longer than CoreDNS follows")
		case path.leadsTo(al.Target):
			return dead("the aliases lead in a circle")
		}
		a := c.lookup(al.Target, next)
		if len(a.Aliases) == 0 {
			a.Aliases = next.aliases
		}
		return chased(a)
	}
	if len(path.aliases) >= c.maxAliases() {
		return dead("the chain of aliases is longer than CoreDNS follows")
	}
	a := Unknown("")
	if c.Outside != nil {
		a = c.Outside(al.Target)
	}
	b := beyond(a, AliasAlone)
	b.Aliases = append(next.aliases, b.Aliases...)
	if !b.Known {
		b.Note = "the alias leads out of the cluster domain"
	}
	return b
}
