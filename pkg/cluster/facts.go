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
	// Domain is the cluster domain, absolute and lower case: "cluster.local.".
	Domain string
	// DomainSource tells how Domain is known, in words for a user; empty where it is only the default.
	DomainSource string
	// DNS is the server that pods are pointed at through the cluster's DNS Service; nil when none was found.
	DNS *Server
	// NodeLocal is the cache on each node in front of it; nil when none was found.
	NodeLocal *Server
	// NodeServer says in words which DNS server runs on each node outside of pods (EKS Auto Mode, AKS LocalDNS, Talos
	// host DNS); empty where none is known.
	NodeServer string
	// Servers are all DNS servers found, DNS and NodeLocal included, in a stable order.
	Servers      []*Server
	Distribution Distribution
	// CNI is the network plugin, such as "cilium", with its version where known.
	CNI        string
	CNIVersion string
	// Announcers are the layer 2 announcers found: "cilium", "metallb", "kube-vip".
	Announcers []string
}

// Distribution is a kind of Kubernetes as far as it decides where DNS is configured.
type Distribution struct {
	// Name is "kubeadm", "k3s", "rke2", "eks", "eks-auto", "aks", "gke", "openshift", "talos", "kops", "microk8s",
	// "k0s", "digitalocean", "kind", "minikube", or "" when unknown.
	Name    string
	Version string
}

// Server is one DNS server with all its replicas.
type Server struct {
	Implementation Implementation
	// Version is what the image tag or label tells; empty when unknown.
	Version string
	// Image is the image as the pod names it.
	Image    string
	Workload *Workload
	// Services select its pods, in a stable order.
	Services []*corev1.Service
	// Addresses are the addresses at which pods reach it: ClusterIPs, or the link-local address of a node cache.
	Addresses []string
	// Corefile is nil when the server has none or it could not be found.
	Corefile *Corefile
	// Ready and Total count its replicas.
	Ready, Total int
}

// Corefile is a Corefile as a server reads it: the main text, the files that it may import, and its environment.
type Corefile struct {
	// Object holds the main text: a ConfigMap, or a file.
	Object finding.Object
	// Key is the key of the ConfigMap.
	Key string
	// File is the parsed main text, as far as it parses.
	File *corefile.File
	// Err is the syntax error of the main text.
	Err error
	// Mounts are the files that the server's container sees, by absolute path, each with the object it comes from.
	Mounts map[string]Mount
	// Env is the environment of the server's container as far as it is written in its template.
	Env map[string]string
	// Dir is the working directory of the server, against which relative imports are read.
	Dir string
}

// Mount is one file of a volume.
type Mount struct {
	Object finding.Object
	Key    string
	Data   string
}
