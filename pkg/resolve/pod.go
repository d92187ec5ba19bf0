package resolve

import (
	"slices"
)

// Policy is spec.dnsPolicy of a pod, in the words of the API.
type Policy string

// The policies. The API server fills in ClusterFirst where a manifest has none.
const (
	ClusterFirst            Policy = "ClusterFirst"
	ClusterFirstWithHostNet Policy = "ClusterFirstWithHostNet"
	PolicyDefault           Policy = "Default"
	PolicyNone              Policy = "None"
)

// Limits of kubelets since Kubernetes 1.26, from pkg/apis/core/validation and pkg/kubelet/network/dns of Kubernetes.
const (
	// PodSearchDomains is how many search domains a kubelet writes.
	PodSearchDomains = 32
	// PodSearchChars is how long the search list may be, with blanks between the domains.
	PodSearchChars = 2048
	// PodNameservers is how many nameservers a kubelet writes.
	PodNameservers = 3
)

// PodDNS is what decides the resolv.conf of a pod, from its spec.
type PodDNS struct {
	Namespace string
	// Policy is spec.dnsPolicy; empty and unknown words count as ClusterFirst, as for a kubelet.
	Policy      Policy
	HostNetwork bool
	// Nameservers, Searches and Options are those of spec.dnsConfig.
	Nameservers []string
	Searches    []string
	Options     []PodOption
	// Hosts are the names in spec.hostAliases.
	Hosts []string
}

// PodOption is an entry of spec.dnsConfig.options. Value is empty where there is none.
type PodOption struct{ Name, Value string }

// Cluster is what kubelets know of the DNS of their cluster.
type Cluster struct {
	// Domain is the cluster domain, absolute. Empty means that kubelets have none; pods then get the node's search
	// list alone.
	Domain string
	// DNSAddresses are those of the cluster's DNS Service that kubelets give to pods (clusterDNS of their
	// configuration).
	DNSAddresses []string
}

// PodConfig returns the resolv.conf that a kubelet gives a pod, after GetPodDNS in pkg/kubelet/network/dns/dns.go of
// Kubernetes 1.34. A nil node is one whose resolv.conf is not known: what the pod inherits of it is then marked as
// unknown in the result.
//
// With the policy ClusterFirst the pod gets the addresses of the cluster, the search list NAMESPACE.svc.DOMAIN,
// svc.DOMAIN, DOMAIN and the node's domains, and ndots:5; options of the node are left out. A pod in the host's network
// is treated as Default instead, unless its policy is ClusterFirstWithHostNet. Default is the node's file, None is empty.
// To each, spec.dnsConfig is added: nameservers and search domains behind the others, duplicates left out, options in
// place of those of the same name.
func PodConfig(pod PodDNS, cluster Cluster, node *Config) Config {
	known := NewConfig()
	if node != nil {
		known = *node
	}
	cfg := NewConfig()
	cfg.Hosts = slices.Clone(pod.Hosts)
	switch pod.kind() {
	case PolicyNone:
	case PolicyDefault:
		cfg.Nameservers = slices.Clone(known.Nameservers)
		cfg.Search = slices.Clone(known.Search)
		for _, o := range known.Options {
			cfg.setOption(o)
		}
		cfg.NameserversUnknown, cfg.OptionsUnknown = node == nil, node == nil
	default:
		cfg.Nameservers = slices.Clone(cluster.DNSAddresses)
		if cluster.Domain != "" {
			// A namespace is a valid label wherever an API server accepted it.
			if name, err := Absolute(pod.Namespace + ".svc." + cluster.Domain); err == nil {
				cfg.Search = append(cfg.Search, name)
			}
			cfg.Search = append(cfg.Search, "svc."+cluster.Domain, cluster.Domain)
		}
		cfg.Search = append(cfg.Search, known.Search...)
		cfg.setOption("ndots:5")
	}
	cfg.Search = unique(cfg.Search)
	if node == nil && pod.kind() != PolicyNone {
		cfg.SearchUnknown, cfg.SearchUnknownAt = true, len(cfg.Search)
	}
	for _, s := range pod.Searches {
		if name, err := Absolute(s); err == nil {
			cfg.Search = append(cfg.Search, name)
		}
	}
	for _, o := range pod.Options {
		if o.Value == "" {
			cfg.setOption(o.Name)
		} else {
			cfg.setOption(o.Name + ":" + o.Value)
		}
	}
	cfg.Nameservers = unique(append(cfg.Nameservers, pod.Nameservers...))
	cfg.Nameservers = cfg.Nameservers[:min(len(cfg.Nameservers), PodNameservers)]
	cfg.Search = fitSearch(unique(cfg.Search))
	cfg.SearchUnknownAt = min(cfg.SearchUnknownAt, len(cfg.Search))
	return cfg
}

// kind follows getPodDNSType of the kubelet.
func (p PodDNS) kind() Policy {
	switch p.Policy {
	case PolicyNone, PolicyDefault, ClusterFirstWithHostNet:
		return p.Policy
	}
	if p.HostNetwork && (p.Policy == ClusterFirst || p.Policy == "") {
		return PolicyDefault
	}
	return ClusterFirst
}

// unique drops all but the first of equal entries.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	kept := make([]string, 0, len(list))
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// fitSearch cuts the list as formDNSSearchFitsLimits does. Lengths are those of names without their final dot.
func fitSearch(list []string) []string {
	list = list[:min(len(list), PodSearchDomains)]
	length := func() int { return max(lineLength(list)-len("search "), 0) }
	for len(list) > 0 && length() > PodSearchChars {
		list = list[:len(list)-1]
	}
	return list
}
