package cluster

import (
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// nodeConfig reads the resolv.conf of a node, or what that of a pod shows of it: what its search list has behind the
// domains of the cluster comes from its node. It is nil where nothing is known; whole tells that more than the search
// list is.
func nodeConfig(s *Snapshot, domain string) (cfg *resolve.Config, whole bool) {
	for _, t := range texts(s, TextNodeResolvConf) {
		node, _ := resolve.ParseNodeConfig(t.Name, []byte(t.Data))
		return &node, true
	}
	for _, t := range texts(s, TextPodResolvConf) {
		pod, _ := resolve.ParseConfig(t.Name, []byte(t.Data))
		list := pod.Search
		if len(list) < 3 || !strings.HasSuffix(list[0], ".svc."+domain) || list[1] != "svc."+domain || list[2] != domain {
			continue // a pod of another policy
		}
		node := resolve.NewConfig()
		node.Search = slices.Clone(list[3:])
		return &node, false
	}
	return nil, false
}

// nameserversOfPods are those that kubelets give to pods of the policy ClusterFirst: as the resolv.conf of a pod shows
// them, else those of NodeLocal DNSCache where it does not bind the addresses of the cluster's DNS Service itself, else
// those of the Service.
func (d *deriver) nameserversOfPods() []string {
	if list := d.nameservers(); len(list) > 0 {
		return list
	}
	f := d.facts
	service := addresses(of(d.service))
	if len(service) == 0 && f.DNS != nil {
		service = f.DNS.Addresses
	}
	if f.NodeLocal != nil && !slices.ContainsFunc(f.NodeLocal.Addresses, func(a string) bool { return slices.Contains(service, a) }) {
		if list := f.NodeLocal.Addresses; len(list) > 0 {
			return list[:1]
		}
	}
	return service
}

// PodConfig returns the resolv.conf of the pods of a workload as far as it is known (see resolve.PodConfig), and whether
// they ask the cluster's DNS server: not so with the policy Default, in the host's network with ClusterFirst, or with None
// and other nameservers.
func PodConfig(s *Snapshot, f *Facts, w *Workload) (resolve.Config, bool) {
	pod := resolve.PodDNS{Namespace: w.Object.Namespace}
	if w.Spec != nil {
		pod.Policy, pod.HostNetwork = resolve.Policy(w.Spec.DNSPolicy), w.Spec.HostNetwork
		if c := w.Spec.DNSConfig; c != nil {
			pod.Nameservers, pod.Searches = c.Nameservers, c.Searches
			for _, o := range c.Options {
				option := resolve.PodOption{Name: o.Name}
				if o.Value != nil {
					option.Value = *o.Value
				}
				pod.Options = append(pod.Options, option)
			}
		}
		for _, a := range w.Spec.HostAliases {
			pod.Hosts = append(pod.Hosts, a.Hostnames...)
		}
	}
	node, whole := nodeConfig(s, f.Domain)
	cfg := resolve.PodConfig(pod, resolve.Cluster{Domain: f.Domain, DNSAddresses: f.Nameservers}, node)
	switch {
	case pod.Policy == resolve.PolicyNone:
		return cfg, slices.ContainsFunc(pod.Nameservers, f.isDNSAddress)
	case pod.Policy == resolve.PolicyDefault || pod.HostNetwork && pod.Policy != resolve.ClusterFirstWithHostNet:
		if !whole {
			cfg.NameserversUnknown, cfg.OptionsUnknown = true, true
		}
		return cfg, slices.ContainsFunc(pod.Nameservers, f.isDNSAddress)
	}
	return cfg, true
}

// isDNSAddress tells whether pods reach the cluster's DNS server at an address.
func (f *Facts) isDNSAddress(address string) bool {
	if slices.Contains(f.Nameservers, address) {
		return true
	}
	for _, srv := range []*Server{f.DNS, f.NodeLocal} {
		if srv != nil && slices.Contains(srv.Addresses, address) {
			return true
		}
	}
	return false
}
