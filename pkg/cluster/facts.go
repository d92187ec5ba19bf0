package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// Implementation is a kind of DNS server.
type Implementation string

// The implementations that are told apart.
const (
	CoreDNS Implementation = "coredns"
	KubeDNS Implementation = "kube-dns"
	// CloudDNS is Google's Cloud DNS for GKE: no DNS pod runs in the cluster.
	CloudDNS Implementation = "cloud-dns"
	// NodeLocalDNS is node-cache of kubernetes/dns, a CoreDNS with its own build.
	NodeLocalDNS Implementation = "node-local-dns"
	Unknown      Implementation = "unknown"
)

// Facts are what follows from a snapshot. They are derived from nodes, namespaces, services, pods, config maps, endpoint slices
// and texts: a check that reads a fact names those inputs among its needs.
type Facts struct {
	// Domain is the cluster domain, absolute and lower case: "cluster.local.". It is the one that pods search; a server
	// may serve others besides, or by mistake instead: see Zones.
	Domain string
	// DomainSource tells how Domain is known, in words for a user; empty where it is only the default.
	DomainSource string
	// Zones are the forward zones that the kubernetes plugin of DNS serves, absolute and lower case, in the order of the
	// Corefile, without those of its option multicluster. For other servers they are Domain alone; nil when the
	// Corefile is not known or has no such plugin.
	Zones []string
	// DNS is the server that pods are pointed at through the cluster's DNS Service; nil when none was found. Where no
	// object shows it, see Server.Assumed.
	DNS *Server
	// NodeLocal is the cache on each node in front of it; nil when none was found.
	NodeLocal *Server
	// NodeServer says in words which DNS server runs on each node outside of pods (EKS Auto Mode, AKS LocalDNS, Talos
	// host DNS); empty where none is known.
	NodeServer string
	// StubDomains are those of ConfigMap kube-system/kube-dns, which kube-dns and NodeLocal DNSCache send to servers of
	// their own: absolute and lower case, sorted.
	StubDomains []string
	// Nameservers are the addresses that kubelets give to pods of the policy ClusterFirst, as far as known.
	Nameservers []string
	// Servers are all DNS servers found, DNS and NodeLocal included, in a stable order.
	Servers      []*Server
	Distribution Distribution
	// CNI is the network plugin, such as "cilium", with its version where known.
	CNI        string
	CNIVersion string
	// Announcers are the layer 2 announcers found: "cilium", "kube-vip", "metallb".
	Announcers []string
}

// Distribution is a kind of Kubernetes as far as it decides where DNS is configured.
type Distribution struct {
	// Name is "kubeadm", "k3s", "rke2", "eks", "eks-auto", "aks", "gke", "openshift", "talos", "kops", "microk8s",
	// "k0s", "digitalocean", "kind", "minikube", "kubespray", or "" when unknown.
	Name string
	// Version is the version of Kubernetes as the API server or, without it, a kubelet names it; empty when unknown.
	Version string
}

// Server is one DNS server with all its replicas.
type Server struct {
	Implementation Implementation
	// Version is what the image tag or label tells; empty when unknown. That of NodeLocalDNS is the version of
	// kubernetes/dns, not of the CoreDNS inside.
	Version string
	// Assumed tells that no object shows the implementation: models take the newest CoreDNS.
	Assumed bool
	// Image is the image as the pod names it.
	Image string
	// Workload is nil where the server is known from its Corefile or its Service alone.
	Workload *Workload
	// Services select its pods, in a stable order.
	Services []*corev1.Service
	// Addresses are the addresses at which pods reach it: ClusterIPs, or those that a node cache binds, such as
	// 169.254.20.10 and often the ClusterIP of the cluster's DNS Service.
	Addresses []string
	// Corefile is nil when the server has none or it could not be found.
	Corefile *Corefile
	// Ready and Total count its replicas.
	Ready, Total int
}

// Corefile is a Corefile as a server reads it: the main text, the files that it may import, and its environment.
type Corefile struct {
	// Object holds the main text: a ConfigMap, or a file (Kind "File", Name its path as the user gave it).
	Object finding.Object
	// Key is the key of the ConfigMap.
	Key string
	// Path is where the server finds the main text, such as /etc/coredns/Corefile. Relative imports start in its
	// directory (caddyfile/parse.go).
	Path string
	// File is the parsed main text, as far as it parses.
	File *corefile.File
	// Err is the syntax error of the main text.
	Err error
	// Expanded is the text with imports, snippets and environment filled in, as far as it could be read; never nil.
	Expanded *corefile.Expanded
	// ExpandErr is what the server would refuse about it, syntax errors included.
	ExpandErr error
	// Mounts are the files that the server's container sees, by absolute path, each with the object it comes from.
	Mounts map[string]Mount
	// Opaque are files and directories whose content is not known, by absolute path, each with the reason: a clause.
	Opaque map[string]string
	// Env is the environment of the server's container as far as it is written in its template.
	Env map[string]string
	// EnvUnknown are variables that are set to values which the template does not hold, sorted.
	EnvUnknown []string
	// Dir is the working directory of the server, against which a relative -conf is read.
	Dir string

	// roots are the mount points of known volumes: a file under one that is not in Mounts does not exist.
	roots []string
	// bare tells that only the text is known and not the container around it.
	bare bool
}

// Mount is one file of a volume.
type Mount struct {
	Object finding.Object
	Key    string
	Data   string
}

// Source names the text of a file as finding.Position does: "ConfigMap namespace/name key", or the path of a file.
func (m Mount) Source() string { return sourceName(m.Object, m.Key) }

// Derive returns the facts of a snapshot. It takes any snapshot, an empty one and hostile objects included, does not
// change it, and gives the same facts for every order of its slices.
func Derive(s *Snapshot) *Facts {
	d := &deriver{s: s, maps: newConfigMaps(s), facts: &Facts{}}
	d.findServers()
	d.facts.Distribution = distribution(s, d.maps)
	d.facts.NodeServer = nodeServer(s)
	d.chooseDNS()
	d.override()
	d.findDomain()
	d.findStubDomains()
	d.facts.Nameservers = d.nameserversOfPods()
	d.facts.CNI, d.facts.CNIVersion = networkPlugin(s, d.facts.Distribution.Name, d.workloads)
	d.facts.Announcers = announcers(d.maps, d.workloads)
	return d.facts
}

// deriver holds what the steps of Derive share.
type deriver struct {
	s         *Snapshot
	maps      configMaps
	workloads []*Workload
	// dnsServices are the Services with port 53 and no external name, in a stable order.
	dnsServices    []*corev1.Service
	dnsByNamespace map[string][]*corev1.Service
	// service is the one that kubelets point pods at; nil when none was found.
	service *corev1.Service
	// behind are the DNS Services without selector, by the owner of the pods in their EndpointSlices.
	behind map[finding.Object][]*corev1.Service
	facts  *Facts
}
