package cluster

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// defaultDomain is the cluster domain that every distribution has unless told otherwise.
const defaultDomain = "cluster.local."

// findDomain finds the cluster domain. What kubelets are told comes before what servers serve, because the domain is
// what pods search.
func (d *deriver) findDomain() {
	f := d.facts
	if f.DNS != nil && f.DNS.Corefile != nil {
		f.Zones = kubernetesZones(f.DNS.Corefile)
	}
	for _, find := range []func() (domain, source string){
		func() (string, string) { return d.s.Override.Domain, "as given" },
		d.searchedDomain,
		d.kubeletDomain,
		d.kubeDNSDomain,
		func() (string, string) {
			if len(f.Zones) == 0 {
				return "", ""
			}
			return f.Zones[0], "kubernetes plugin in " + sourceName(f.DNS.Corefile.Object, f.DNS.Corefile.Key)
		},
		d.nodeCacheDomain,
	} {
		if domain, source := find(); domain != "" {
			if name, err := resolve.Absolute(domain); err == nil && name != "." {
				f.Domain, f.DomainSource = name, source
				break
			}
		}
	}
	if f.Domain == "" {
		f.Domain = defaultDomain
	}
	if f.DNS != nil && f.DNS.Implementation == KubeDNS {
		f.Zones = []string{f.Domain}
	}
}

// searchedDomain reads the domain from the search list of a pod: NAMESPACE.svc.DOMAIN, svc.DOMAIN, DOMAIN.
func (d *deriver) searchedDomain() (string, string) {
	for _, t := range d.texts(TextPodResolvConf) {
		cfg, _ := resolve.ParseConfig(t.Name, []byte(t.Data))
		for _, s := range cfg.Search {
			domain, ok := strings.CutPrefix(s, "svc.")
			if ok && domain != "" && slices.Contains(cfg.Search, domain) {
				return domain, "search list of " + t.Name
			}
		}
	}
	return "", ""
}

// kubeletDomain reads what kubeadm keeps: clusterDomain of KubeletConfiguration, dnsDomain of ClusterConfiguration.
func (d *deriver) kubeletDomain() (string, string) {
	if cm := d.maps.get("kube-system", "kubelet-config"); cm != nil {
		if v := yamlScalar(cm.Data["kubelet"], "clusterDomain"); v != "" {
			return v, "clusterDomain in ConfigMap kube-system/kubelet-config"
		}
	}
	if cm := d.maps.get("kube-system", "kubeadm-config"); cm != nil {
		if v := yamlScalar(cm.Data["ClusterConfiguration"], "dnsDomain"); v != "" {
			return v, "dnsDomain in ConfigMap kube-system/kubeadm-config"
		}
	}
	return "", ""
}

// yamlScalar returns the value of the first line "key: value" of a document in block style, at any depth.
func yamlScalar(doc, key string) string {
	for line := range strings.Lines(doc) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), key+":")
		if !ok {
			continue
		}
		value, _, _ = strings.Cut(value, " #")
		return strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return ""
}

// yamlList returns the entries under the first line "key:" of a document in block style, one in each line.
func yamlList(doc, key string) []string {
	var list []string
	inside := false
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(line)
		switch entry, ok := strings.CutPrefix(line, "- "); {
		case line == key+":":
			inside = true
		case inside && ok:
			list = append(list, strings.Trim(strings.TrimSpace(entry), `"'`))
		case inside:
			return list
		}
	}
	return list
}

// kubeDNSDomain reads the flag -domain of kube-dns.
func (d *deriver) kubeDNSDomain() (string, string) {
	srv := d.facts.DNS
	if srv == nil || srv.Implementation != KubeDNS || srv.Workload == nil {
		return "", ""
	}
	impl, c := serverContainer(srv.Workload)
	if impl != KubeDNS {
		return "", ""
	}
	known := newContainer(d.maps, srv.Workload.Object.Namespace, srv.Workload.Spec, c)
	if v, ok := flagValue(known.words, "domain"); ok {
		return v, "argument --domain of " + srv.Workload.Object.String()
	}
	return "", ""
}

// nodeCacheDomain takes the first forward zone of the Corefile of NodeLocal DNSCache: zones of other names are stub
// domains, and every Corefile that is shipped names the cluster's first.
func (d *deriver) nodeCacheDomain() (string, string) {
	srv := d.facts.NodeLocal
	if srv == nil || srv.Corefile == nil {
		return "", ""
	}
	for _, b := range srv.Corefile.Expanded.Blocks {
		for _, z := range blockZones(b) {
			if z != "." && !isReverse(z) && !unknownZone(z) {
				return z, "first zone in " + sourceName(srv.Corefile.Object, srv.Corefile.Key)
			}
		}
	}
	return "", ""
}

// findStubDomains reads the key stubDomains of ConfigMap kube-system/kube-dns: an object of JSON from zones to lists of
// addresses (kubernetes/dns pkg/dns/config).
func (d *deriver) findStubDomains() {
	cm := d.maps.get("kube-system", "kube-dns")
	if cm == nil {
		return
	}
	var stubs map[string][]string
	if err := json.Unmarshal([]byte(cm.Data["stubDomains"]), &stubs); err != nil {
		return
	}
	for zone := range stubs {
		if name, err := resolve.Absolute(zone); err == nil {
			d.facts.StubDomains = append(d.facts.StubDomains, name)
		}
	}
	slices.Sort(d.facts.StubDomains)
}

// ServesZone tells whether a DNS server of the cluster has something to say about names in a zone, other than what it
// says about every name: a server block, a plugin with zones of its own, a stub domain, a rewrite rule that names it.
// The zone is absolute.
func (f *Facts) ServesZone(zone string) bool {
	holds := func(zones []string) bool {
		return slices.ContainsFunc(zones, func(z string) bool { return z != "." && resolve.Under(zone, z) })
	}
	if holds(f.Zones) || holds(f.StubDomains) {
		return true
	}
	for _, srv := range f.Servers {
		if srv.Corefile == nil {
			continue
		}
		for _, b := range srv.Corefile.Expanded.Blocks {
			if holds(blockZones(b)) {
				return true
			}
			for _, d := range b.Body {
				switch name := d.Name.Text; {
				case name == "rewrite" && spells(d, zone):
					return true
				case isSilent(name) || name == "hosts" && len(d.Args) == 0 || name == "rewrite":
				case holds(zonesOf(d.Values())):
					return true
				}
			}
		}
	}
	return false
}

// spells tells whether any word of a directive spells a zone, as a name or in a regular expression.
func spells(d *corefile.Directive, zone string) bool {
	text := strings.TrimSuffix(zone, ".")
	found := false
	d.Walk(func(line *corefile.Directive) {
		for _, v := range line.Values() {
			v = strings.ToLower(strings.NewReplacer(`\`, "", "[", "", "]", "").Replace(v))
			found = found || strings.Contains(v, text)
		}
	})
	return found
}

// kubernetesZones are the forward zones that the kubernetes plugin serves in a Corefile.
func kubernetesZones(cf *Corefile) []string {
	var list []string
	for _, b := range cf.Expanded.Blocks {
		for _, p := range b.Named("kubernetes") {
			multi := map[string]bool{}
			for _, line := range p.Named("multicluster") {
				for _, z := range zonesOf(line.Values()) {
					multi[z] = true
				}
			}
			for _, z := range originsOf(p.Args, b) {
				if !isReverse(z) && !unknownZone(z) && !multi[z] && !slices.Contains(list, z) {
					list = append(list, z)
				}
			}
		}
	}
	return list
}

// originsOf follows plugin.OriginsFromArgsOrServerBlock of CoreDNS: the zones of the arguments, without any those of
// the block.
func originsOf(args []corefile.Token, b *corefile.Block) []string {
	if len(args) == 0 {
		return blockZones(b)
	}
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.Text
	}
	return zonesOf(texts)
}

// blockZones are the zones of a server block, absolute and lower case.
func blockZones(b *corefile.Block) []string {
	texts := make([]string, len(b.Keys))
	for i, k := range b.Keys {
		texts[i] = k.Text
	}
	return zonesOf(texts)
}

func zonesOf(texts []string) []string {
	var list []string
	for _, t := range texts {
		if k, ok := parseKey(t); ok {
			list = append(list, k.zones...)
		}
	}
	return list
}

// key is a key of a server block, or a zone in the arguments of a plugin.
type key struct {
	// transport is "dns", "tls", "grpc", "https", "https3" or "quic".
	transport string
	// zones are absolute and lower case: one, or several for a reverse zone that is no whole octet.
	zones []string
	// written is the zone with a final dot and otherwise as it is written.
	written string
	// port is 0 where the key has none.
	port int
}

// parseKey follows plugin/normalize.go and plugin/pkg/parse/transport.go of CoreDNS.
func parseKey(text string) (key, bool) {
	k := key{transport: "dns"}
	if t, rest, ok := strings.Cut(text, "://"); ok && slices.Contains([]string{"dns", "tls", "grpc", "https", "https3", "quic"}, t) {
		k.transport, text = t, rest
	}
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		if p, err := strconv.Atoi(text[i+1:]); err == nil && p >= 0 && p < 1<<16 {
			k.port, text = p, text[:i]
		}
	}
	if text == "" {
		text = "."
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		k.zones = reverseZones(p)
		return k, true
	}
	name, err := resolve.Absolute(text)
	if err != nil {
		return k, false
	}
	k.zones = []string{name}
	k.written = strings.TrimSuffix(text, ".") + "."
	return k, true
}

// reverseZones are the zones under in-addr.arpa or ip6.arpa that cover a prefix (plugin/pkg/cidr).
func reverseZones(p netip.Prefix) []string {
	p = p.Masked()
	width, suffix := 8, "in-addr.arpa."
	if p.Addr().Is6() {
		width, suffix = 4, "ip6.arpa."
	}
	octets := p.Addr().AsSlice()
	digit := func(i int) int {
		if width == 8 {
			return int(octets[i])
		}
		return int(octets[i/2]>>(4*(1-i%2))) & 0xf
	}
	whole, rest := p.Bits()/width, p.Bits()%width
	base := suffix
	text := func(n int) string {
		if width == 8 {
			return strconv.Itoa(n)
		}
		return strconv.FormatInt(int64(n), 16)
	}
	for i := range whole {
		base = text(digit(i)) + "." + base
	}
	if rest == 0 {
		return []string{base}
	}
	var list []string
	for n := range 1 << (width - rest) {
		list = append(list, text(digit(whole)+n)+"."+base)
	}
	return list
}

func isReverse(zone string) bool {
	return resolve.Under(zone, "in-addr.arpa.") || resolve.Under(zone, "ip6.arpa.")
}

func unknownZone(zone string) bool { return resolve.Under(zone, UnknownValue+".") }
