package resolve

import (
	"iter"
	"net/netip"
	"strings"
)

// ClusterServer is a model of the DNS server of a cluster.
type ClusterServer interface {
	// Domain is the cluster domain that the model answers for, absolute.
	Domain() string
	// Answer is what the server answers for an absolute name. The answer is unknown outside the cluster domain.
	Answer(name string) Answer
}

// Names is the index of a cluster's objects that the models read. Names of namespaces and Services are as in their
// metadata: lower case, without dots. Every sequence has a stable order.
type Names interface {
	// HasNamespace tells whether the namespace exists.
	HasNamespace(namespace string) bool
	// Namespaces yields the names of all namespaces. Only wildcards of old servers need it.
	Namespaces() iter.Seq[string]
	// Service returns a Service by name.
	Service(namespace, name string) (Service, bool)
	// Services yields all Services of a namespace, or nothing if it does not exist. Only wildcards need it.
	Services(namespace string) iter.Seq[Service]
	// ExternalNames yields the Services of a namespace that are of type ExternalName.
	ExternalNames(namespace string) iter.Seq[Service]
	// HasPod tells whether a pod of the namespace has the address, and whether pods are known at all.
	HasPod(namespace string, address netip.Addr) (has, known bool)
}

// ServiceKind is what a Service is to a DNS server.
type ServiceKind int

// The kinds of Services. NodePort and LoadBalancer Services are ClusterIP Services here.
const (
	ClusterIP ServiceKind = iota
	Headless
	ExternalName
)

// Service is what DNS servers read of a Service and its EndpointSlices.
type Service struct {
	Namespace, Name string
	Kind            ServiceKind
	// Target is spec.externalName as it is written, for ExternalName.
	Target string
	// Addresses are the cluster IPs, for ClusterIP. None means that they are not known: the Service still answers.
	Addresses []netip.Addr
	Ports     []Port
	// Endpoints are all addresses of the Service's EndpointSlices.
	Endpoints []Endpoint
	// EndpointsUnknown tells that the EndpointSlices were not read.
	EndpointsUnknown bool
}

// Port is a named port of a Service or of its endpoints. Name may be empty.
type Port struct {
	Name string
	// Protocol is TCP, UDP or SCTP; letter case does not matter.
	Protocol string
}

// Endpoint is one address behind a Service.
type Endpoint struct {
	Address netip.Addr
	// Hostname is the hostname of the endpoint, empty if it has none.
	Hostname string
	// Pod is the name of the pod behind the endpoint, for CoreDNS's option endpoint_pod_names.
	Pod string
	// Ready is conditions.ready of the endpoint, where absent means ready. Servers leave out what is not ready;
	// publishNotReadyAddresses makes the endpoint controller set it.
	Ready bool
	// Ports are those of the EndpointSlice. Nil means those of the Service.
	Ports []Port
}

func (s Service) ports(e Endpoint) []Port {
	ports := e.Ports
	if ports == nil {
		ports = s.Ports
	}
	return ports
}

// cut returns the labels of name in front of domain, or false if name is outside it.
func cut(name, domain string) ([]string, bool) {
	if !Under(name, domain) {
		return nil, false
	}
	return labels(strings.TrimSuffix(name, domain)), true
}

// Shape says what kind of node a name would be, by its form alone, whether there is one or not: the namespace and the
// Service that it names, as CoreDNS cuts names. It says false for names of another form. Both names are absolute.
func Shape(name, domain string) (Match, bool) {
	rest, ok := cut(name, domain)
	if !ok {
		return Match{Node: OutsideNode}, false
	}
	if len(rest) == 2 && rest[0] == "ns" && rest[1] == "dns" {
		return Match{Node: ServerNode}, true
	}
	r, ok := parse(rest)
	if !ok {
		return Match{}, false
	}
	return r.match(), true
}

// outside is the answer of a model for names that are not under its domain.
func outside(domain string) Answer {
	a := Unknown("outside the cluster domain " + strings.TrimSuffix(domain, "."))
	a.Match.Node = OutsideNode
	return a
}

// ServiceName returns the absolute name of a Service under an absolute domain.
func ServiceName(namespace, service, domain string) string {
	return strings.ToLower(service + "." + namespace + ".svc." + strings.TrimPrefix(domain, "."))
}

// alias describes an ExternalName Service; the second value says whether its target is a valid name.
func (s Service) alias(domain string) (Alias, bool) {
	al := Alias{Namespace: s.Namespace, Name: s.Name, Owner: ServiceName(s.Namespace, s.Name, domain)}
	target, err := Absolute(s.Target)
	if err != nil {
		al.Target = s.Target
		return al, false
	}
	al.Target = target
	return al, true
}

// dashed returns the label of an address with dashes for dots and colons.
func dashed(addr netip.Addr) string {
	return strings.NewReplacer(".", "-", ":", "-").Replace(addr.String())
}
