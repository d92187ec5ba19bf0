package load

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/reference"
)

// keptWords are labels and words that stay as they are: they name parts that every cluster has, or that decide how DNS
// works, and nobody's own things.
const keptWords = `
svc pod cluster local localhost localdomain in-addr arpa ip6 wpad isatap
kube-system kube-public kube-node-lease default kubernetes kube-dns kube-dns-upstream coredns coredns-custom rke2-coredns
node-local-dns nodelocaldns node-cache openshift-dns dns-default openshift-dns-operator
internal intranet private corp home lan test example invalid onion
cilium cilium-agent cilium-operator cilium-config calico calico-node calico-system flannel kube-flannel kube-flannel-ds
kindnet kindnetd aws-node weave-net antrea-agent kube-router ovnkube-node canal metallb metallb-system speaker controller
kube-vip kube-vip-ds kube-proxy kube-apiserver kube-controller-manager kube-scheduler etcd istio-system istiod linkerd
None true false yes no enabled disabled auto managed k3s rke2 CoreDNS KubeDNS linux windows amd64 arm64
Deployment StatefulSet DaemonSet ReplicaSet Job CronJob Node Pod Helm
dns tls https http grpc quic tcp udp
Corefile corefile base conf config yaml yml json server override txt hosts etc run systemd resolve resolv custom zones
coredns-base kubeadm-config kubelet-config kubelet config-volume kube-dns-config
cluster-domain cluster-dns cluster-name
`

// keptAddresses are public resolvers that everybody may use.
const keptAddresses = `1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 149.112.112.112 208.67.222.222 208.67.220.220 168.63.129.16
2606:4700:4700::1111 2606:4700:4700::1001 2001:4860:4860::8888 2001:4860:4860::8844 2620:fe::fe`

// redacted stands where a text was blanked.
const redacted = "redacted"

// Redact returns a copy of s in which the names of people's own things are replaced by hashes under key, and texts are
// reduced to the names in them. The same name always gives the same hash under one key, label by label: a Service, the
// Deployment of that name and a reference to them stay together, as do the zone example.org and a name below it. Without
// the key a name cannot be guessed from its hash.
//
// What stays: the structure, names that every cluster has, public top-level domains, numbers, private and reserved
// addresses, names of environment variables and flags, versions, images of DNS servers and network plugins. Public
// addresses become addresses of the documentation ranges; so few that two may meet in IPv4.
//
// Of environment variables, arguments and ConfigMaps the references stay (package reference), at the same line with the
// same port and scheme; one whose text cannot be rebuilt so that it is found again is left out.
func Redact(s *cluster.Snapshot, key []byte) *cluster.Snapshot {
	r := newRedactor(s, key)
	out := &cluster.Snapshot{
		Name: r.name(s.Name), ServerVersion: s.ServerVersion, APIGroups: slices.Clone(s.APIGroups), Partial: s.Partial,
		Override: s.Override, Absent: map[cluster.Resource]string{},
	}
	out.Override.Domain = r.name(out.Override.Domain)
	for k, why := range s.Absent {
		// What follows the colon are the words of the server, which name a user.
		why, _, _ = strings.Cut(why, ":")
		out.Absent[k] = why
	}
	out.APIGroups = slices.DeleteFunc(out.APIGroups, func(g string) bool { return !isKnownDomain(g) })
	b := newBuilder()
	for _, n := range s.Namespaces {
		n = n.DeepCopy()
		r.meta(&n.ObjectMeta)
		out.Namespaces = append(out.Namespaces, n)
	}
	for _, v := range s.Services {
		out.Services = append(out.Services, r.service(v.DeepCopy()))
	}
	for _, e := range s.EndpointSlices {
		e = e.DeepCopy()
		r.meta(&e.ObjectMeta)
		for i := range e.Endpoints {
			p := &e.Endpoints[i]
			for k, a := range p.Addresses {
				p.Addresses[k] = r.address(a)
			}
			p.Hostname, p.NodeName = r.pointer(p.Hostname), r.pointer(p.NodeName)
			if t := p.TargetRef; t != nil {
				t.Namespace, t.Name = r.name(t.Namespace), r.name(t.Name)
			}
		}
		out.EndpointSlices = append(out.EndpointSlices, e)
	}
	for _, n := range s.Nodes {
		out.Nodes = append(out.Nodes, r.node(n.DeepCopy()))
	}
	for _, p := range s.Pods {
		q := *p
		q.Namespace, q.Name, q.Node = r.name(p.Namespace), r.name(p.Name), r.name(p.Node)
		q.Labels = b.in.labels(r.labels(p.Labels))
		q.Owner.Namespace, q.Owner.Name = r.name(p.Owner.Namespace), r.name(p.Owner.Name)
		q.IPs = nil
		for _, ip := range p.IPs {
			q.IPs = append(q.IPs, r.address(ip))
		}
		q.Spec = b.in.spec(r.spec(p.Namespace, p.Labels, p.Spec))
		out.Pods = append(out.Pods, &q)
	}
	for _, t := range s.Templates {
		w := *t
		w.Object.Namespace, w.Object.Name = r.name(t.Object.Namespace), r.name(t.Object.Name)
		w.Labels = b.in.labels(r.labels(t.Labels))
		w.Spec = b.in.spec(r.spec(t.Object.Namespace, t.Labels, t.Spec))
		out.Templates = append(out.Templates, &w)
	}
	// The pods came first: they told which keys they take variables from.
	for _, c := range s.ConfigMaps {
		out.ConfigMaps = append(out.ConfigMaps, r.configMap(c))
	}
	for _, h := range s.MeshHosts {
		out.MeshHosts = append(out.MeshHosts, r.name(h))
	}
	for _, t := range s.Texts {
		data := r.text(t.Data)
		if t.Kind == cluster.TextCorefile || t.Kind == cluster.TextUpstreamCorefile {
			data = r.corefile(t.Data)
		}
		out.Texts = append(out.Texts, &cluster.Text{Kind: t.Kind, Name: path.Base(t.Name), Data: data})
	}
	sortSnapshot(out)
	return out
}

// sortSnapshot brings the objects into the order in which files are read.
func sortSnapshot(s *cluster.Snapshot) {
	b := &builder{
		in: newInterner(), namespaces: s.Namespaces, services: s.Services, slices: s.EndpointSlices, pods: s.Pods,
		templates: s.Templates, nodes: s.Nodes, meshHosts: s.MeshHosts, configMaps: s.ConfigMaps,
	}
	b.finish(s)
}

type redactor struct {
	key       []byte
	keep      map[string]bool
	addresses map[string]bool
	hashes    map[string]string
	finder    *reference.Finder
	options   reference.Options
	maps      map[object]*corev1.ConfigMap
	// names are the names of namespaces and Services: a single word in a Corefile is hashed if it is one of them.
	names map[string]bool
	// specs are the specifications that were redacted.
	specs map[specUse]*corev1.PodSpec
	// vars are the variables that take their value from a key of a ConfigMap, with the references found in them.
	vars map[mapKey]map[string][]reference.Reference
}

type specUse struct {
	namespace string
	spec      *corev1.PodSpec
}

type mapKey struct {
	object
	key string
}

func newRedactor(s *cluster.Snapshot, key []byte) *redactor {
	r := &redactor{
		key: key, keep: map[string]bool{}, addresses: map[string]bool{}, hashes: map[string]string{}, names: map[string]bool{},
		options: reference.Options{ClusterDomain: s.Override.Domain},
		maps:    map[object]*corev1.ConfigMap{}, specs: map[specUse]*corev1.PodSpec{}, vars: map[mapKey]map[string][]reference.Reference{},
	}
	r.finder = reference.NewFinder(r.options)
	for _, w := range strings.Fields(keptWords) {
		r.keep[w] = true
	}
	for _, a := range strings.Fields(keptAddresses) {
		r.addresses[a] = true
	}
	for _, n := range s.Namespaces {
		r.names[n.Name] = true
	}
	for _, v := range s.Services {
		r.names[v.Name], r.names[v.Namespace] = true, true
	}
	for _, c := range s.ConfigMaps {
		r.maps[object{c.Namespace, c.Name}] = c
	}
	return r
}

// label replaces one label. Capitals matter to some checks, so a label with some keeps one.
func (r *redactor) label(l string) string {
	lower := strings.ToLower(l)
	if r.keep[l] || strings.Trim(l, "0123456789-") == "" || isTopLevel(lower) {
		return l
	}
	h, ok := r.hashes[lower]
	if !ok {
		mac := hmac.New(sha256.New, r.key)
		mac.Write([]byte(lower))
		h = "n" + hex.EncodeToString(mac.Sum(nil)[:5])
		r.hashes[lower] = h
	}
	if lower != l {
		return "N" + h[1:]
	}
	return h
}

func isTopLevel(l string) bool {
	_, icann := publicsuffix.PublicSuffix(l)
	return icann
}

// isKnownDomain tells whether a name belongs to Kubernetes or to a project that many clusters use, by its last labels.
func isKnownDomain(name string) bool {
	if !strings.Contains(name, ".") {
		return true
	}
	for _, d := range []string{
		"k8s.io", "kubernetes.io", "cilium.io", "metallb.io", "istio.io", "openshift.io", "amazonaws.com", "azure.com", "google.com",
		"gke.io", "k3s.io", "rke2.io", "cattle.io", "talos.dev", "digitalocean.com", "coreos.com", "kube-vip.io", "helm.sh", "argoproj.io",
		"dnsmesh.io", "projectcalico.org", "metallb.universe.tf", "eksctl.io", "k0sproject.io", "tigera.io",
	} {
		if name == d || strings.HasSuffix(name, "."+d) {
			return true
		}
	}
	return false
}

func isLabelByte(c byte) bool {
	return c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// name replaces the labels of a name and leaves everything between them: dots, underscores, a final dot, and what makes a
// name a wrong one, such as a scheme in front of it.
func (r *redactor) name(s string) string {
	if a := r.address(s); a != "" {
		return a
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := i
		for n < len(s) && isLabelByte(s[n]) {
			n++
		}
		switch {
		case n == i:
			b.WriteByte(s[i])
			n++
		case i > 0 && s[i-1] == '_' && (i == 1 || s[i-2] == '.'):
			b.WriteString(s[i:n])
		default:
			word := s[i:n]
			inner := strings.Trim(word, "-")
			at := strings.Index(word, inner)
			b.WriteString(word[:at] + r.label(inner) + word[at+len(inner):])
		}
		i = n
	}
	return b.String()
}

func (r *redactor) pointer(s *string) *string {
	if s == nil {
		return nil
	}
	v := r.name(*s)
	return &v
}

// address replaces a public address; "" tells that s is no address.
func (r *redactor) address(s string) string {
	bits := ""
	if i := strings.IndexByte(s, '/'); i > 0 {
		s, bits = s[:i], s[i:]
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return ""
	}
	a = a.Unmap().WithZone("")
	if r.addresses[a.String()] || !isPublic(a) {
		return s + bits
	}
	mac := hmac.New(sha256.New, r.key)
	mac.Write(a.AsSlice())
	sum := mac.Sum(nil)
	if a.Is4() {
		net := [][3]byte{{192, 0, 2}, {198, 51, 100}, {203, 0, 113}}[sum[1]%3]
		return netip.AddrFrom4([4]byte{net[0], net[1], net[2], 1 + sum[0]%254}).String() + bits
	}
	v6 := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	copy(v6[4:], sum)
	return netip.AddrFrom16(v6).String() + bits
}

// isPublic tells whether an address tells whose it is: not one of RFC 1918, 4193, 6598, 3927, 4291, 5737 or 3849.
func isPublic(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range []string{"100.64.0.0/10", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15", "2001:db8::/32"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return false
		}
	}
	return true
}

func (r *redactor) meta(m *metav1.ObjectMeta) {
	m.Name, m.Namespace, m.Labels = r.name(m.Name), r.name(m.Namespace), r.labels(m.Labels)
	for k, v := range m.Annotations {
		m.Annotations[k] = r.annotation(k, v)
	}
}

func (r *redactor) annotation(k, v string) string {
	switch {
	case k == IgnoreAnnotation:
		return v
	case strings.HasSuffix(k, "/node-args"):
		return r.nodeArgs(v)
	}
	return r.name(v)
}

// nodeArgs keeps the flags of a k3s or RKE2 agent, and the values of those that say something about DNS.
func (r *redactor) nodeArgs(v string) string {
	var args []string
	if json.Unmarshal([]byte(v), &args) != nil {
		return redacted
	}
	for i, a := range args {
		if flag, value, ok := strings.Cut(a, "="); ok && strings.HasPrefix(flag, "--") {
			args[i] = flag + "=" + r.nodeArg(flag, value)
		} else if !strings.HasPrefix(a, "--") && i > 0 {
			args[i] = r.nodeArg(args[i-1], a)
		}
	}
	out, err := json.Marshal(args)
	if err != nil {
		return redacted
	}
	return string(out)
}

func (r *redactor) nodeArg(flag, value string) string {
	switch strings.TrimLeft(flag, "-") {
	case "cluster-domain", "cluster-dns", "cluster-cidr", "service-cidr", "resolv-conf", "disable", "flannel-backend":
		return r.text(value)
	}
	return redacted
}

func (r *redactor) labels(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		domain, _, ok := strings.Cut(k, "/")
		if ok && !isKnownDomain(domain) {
			k = r.name(k)
		}
		if !versionValue.MatchString(v) {
			v = r.name(v)
		}
		out[k] = v
	}
	return out
}

var versionValue = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)+$`)

func (r *redactor) service(v *corev1.Service) *corev1.Service {
	r.meta(&v.ObjectMeta)
	p := &v.Spec
	p.Selector, p.ExternalName = r.labels(p.Selector), r.name(p.ExternalName)
	for _, list := range [][]string{p.ExternalIPs, p.LoadBalancerSourceRanges, p.ClusterIPs} {
		for i := range list {
			list[i] = r.name(list[i])
		}
	}
	p.ClusterIP, p.LoadBalancerIP = r.name(p.ClusterIP), r.name(p.LoadBalancerIP)
	for i := range v.Status.LoadBalancer.Ingress {
		g := &v.Status.LoadBalancer.Ingress[i]
		g.IP, g.Hostname = r.name(g.IP), r.name(g.Hostname)
	}
	return v
}

func (r *redactor) node(n *corev1.Node) *corev1.Node {
	r.meta(&n.ObjectMeta)
	if scheme, _, ok := strings.Cut(n.Spec.ProviderID, "://"); ok {
		n.Spec.ProviderID = scheme + "://" + redacted
	} else {
		n.Spec.ProviderID = ""
	}
	for i := range n.Status.Addresses {
		n.Status.Addresses[i].Address = r.name(n.Status.Addresses[i].Address)
	}
	return n
}

var (
	dottedName = regexp.MustCompile(`[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+\.?|[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*`)
	singleWord = regexp.MustCompile(`[A-Za-z0-9-]+`)
	quantity   = regexp.MustCompile(`^[0-9.]+[a-zA-Z]{0,2}$`)
)

// text replaces names of several labels, addresses, and words that are names of namespaces and Services; comments are
// dropped.
func (r *redactor) text(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if i := strings.IndexAny(line, "#;"); i >= 0 {
			line = line[:i] + "\n"
		}
		at := 0
		for _, m := range dottedName.FindAllStringIndex(line, -1) {
			b.WriteString(r.words(line[at:m[0]]))
			b.WriteString(r.dotted(line[m[0]:m[1]]))
			at = m[1]
		}
		b.WriteString(r.words(line[at:]))
	}
	return b.String()
}

func (r *redactor) dotted(s string) string {
	if quantity.MatchString(s) && strings.Count(s, ".") < 2 {
		return s
	}
	return r.name(s)
}

func (r *redactor) words(s string) string {
	return singleWord.ReplaceAllStringFunc(s, func(w string) string {
		if r.names[w] {
			return r.label(w)
		}
		return w
	})
}

// corefile replaces the names in a Corefile and keeps its structure: plugins, options, numbers. Comments are dropped.
func (r *redactor) corefile(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i] + "\n"
		}
		for len(line) > 0 {
			n := strings.IndexAny(line, " \t\r\n\"")
			if n < 0 {
				n = len(line)
			}
			b.WriteString(r.corefileWord(line[:n]))
			if n < len(line) {
				b.WriteByte(line[n])
				n++
			}
			line = line[n:]
		}
	}
	return b.String()
}

// corefileWord replaces the labels of a word that is a name or a pattern of names. In a pattern, classes of characters,
// placeholders and escapes stay.
func (r *redactor) corefileWord(w string) string {
	if host, port, ok := strings.Cut(w, ":"); ok && r.address(host) != "" {
		return r.address(host) + ":" + port
	}
	if a := r.address(w); a != "" {
		return a
	}
	if !strings.Contains(w, ".") && !r.names[w] || quantity.MatchString(w) {
		return w
	}
	var b strings.Builder
	for i := 0; i < len(w); {
		switch c := w[i]; {
		case c == '\\' && i+1 < len(w):
			b.WriteString(w[i : i+2])
			i += 2
		case c == '[' || c == '{':
			end := strings.IndexByte(w[i:], map[byte]byte{'[': ']', '{': '}'}[c])
			if end < 0 {
				end = len(w) - i - 1
			}
			b.WriteString(w[i : i+end+1])
			i += end + 1
		case isLabelByte(c) && c != '-':
			n := i
			for n < len(w) && isLabelByte(w[n]) {
				n++
			}
			b.WriteString(r.label(w[i:n]))
			i = n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// image keeps the name and version of a DNS server or a network plugin, without the registry, and hashes every other.
func (r *redactor) image(image string) string {
	last := image[strings.LastIndexByte(image, '/')+1:]
	name := imageName(image)
	first, _, _ := strings.Cut(name, "-")
	if isDNSName(name) || r.keep[name] || r.keep[first] {
		return last
	}
	return r.label(name)
}

// spec returns a redacted copy of a specification in a namespace.
func (r *redactor) spec(namespace string, labels map[string]string, spec *corev1.PodSpec) *corev1.PodSpec {
	use := specUse{namespace, spec}
	if out, ok := r.specs[use]; ok {
		return out.DeepCopy()
	}
	out := spec.DeepCopy()
	dns := servesDNS(labels, spec)
	get := func(name string) *corev1.ConfigMap { return r.maps[object{namespace, name}] }
	found := map[string]map[string][]reference.Reference{}
	for _, ref := range r.finder.Spec(spec, namespace, get) {
		if o := ref.Origin; o.Kind == reference.Env {
			if found[o.Container] == nil {
				found[o.Container] = map[string][]reference.Reference{}
			}
			found[o.Container][o.Key] = append(found[o.Container][o.Key], ref)
			if o.ConfigMap != "" {
				k := mapKey{object{namespace, o.ConfigMap}, o.DataKey}
				if r.vars[k] == nil {
					r.vars[k] = map[string][]reference.Reference{}
				}
				r.vars[k][o.Key] = append(r.vars[k][o.Key], ref)
			}
		}
	}
	each := func(c *corev1.Container) {
		original := c.DeepCopy()
		infra := dns || r.keep[imageName(c.Image)]
		for i := range c.Env {
			e := &c.Env[i]
			switch {
			case infra:
				e.Value = r.text(e.Value)
			case e.Value != "":
				e.Value = r.env(e.Name, found[c.Name][e.Name])
			case e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil:
				e.ValueFrom.ConfigMapKeyRef.Name = r.name(e.ValueFrom.ConfigMapKeyRef.Name)
			}
		}
		for i := range c.EnvFrom {
			if m := c.EnvFrom[i].ConfigMapRef; m != nil {
				m.Name = r.name(m.Name)
			}
		}
		c.Name, c.Image = r.name(c.Name), r.image(c.Image)
		for i := range c.Args {
			c.Args[i] = r.arg(original, original.Args, i, reference.Arg, infra)
		}
		for i := range c.Command {
			c.Command[i] = r.arg(original, original.Command, i, reference.Command, infra)
		}
		for i := range c.VolumeMounts {
			m := &c.VolumeMounts[i]
			m.Name = r.name(m.Name)
			if !dns {
				m.MountPath, m.SubPath, m.SubPathExpr = r.name(m.MountPath), r.name(m.SubPath), r.name(m.SubPathExpr)
			}
		}
	}
	for i := range out.InitContainers {
		each(&out.InitContainers[i])
	}
	for i := range out.Containers {
		each(&out.Containers[i])
	}
	for i := range out.EphemeralContainers {
		c := corev1.Container(out.EphemeralContainers[i].EphemeralContainerCommon)
		each(&c)
		out.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	out.Hostname, out.Subdomain = r.name(out.Hostname), r.name(out.Subdomain)
	out.ServiceAccountName, out.PriorityClassName = r.name(out.ServiceAccountName), priorityClass(out.PriorityClassName)
	for i := range out.HostAliases {
		a := &out.HostAliases[i]
		a.IP = r.name(a.IP)
		for k := range a.Hostnames {
			a.Hostnames[k] = r.name(a.Hostnames[k])
		}
	}
	if c := out.DNSConfig; c != nil {
		for i := range c.Nameservers {
			c.Nameservers[i] = r.name(c.Nameservers[i])
		}
		for i := range c.Searches {
			c.Searches[i] = r.name(c.Searches[i])
		}
	}
	for i := range out.Volumes {
		v := &out.Volumes[i]
		v.Name = r.name(v.Name)
		switch {
		case v.ConfigMap != nil:
			v.ConfigMap.Name = r.name(v.ConfigMap.Name)
		case v.Projected != nil:
			for k := range v.Projected.Sources {
				if m := v.Projected.Sources[k].ConfigMap; m != nil {
					m.Name = r.name(m.Name)
				}
			}
		}
	}
	r.specs[use] = out
	return out.DeepCopy()
}

func priorityClass(name string) string {
	if name == "" || strings.HasPrefix(name, "system-") {
		return name
	}
	return redacted
}

// rebuilt writes a reference with its name replaced.
func (r *redactor) rebuilt(ref reference.Reference) string {
	s := r.name(ref.Host)
	if ref.Port != 0 {
		s += ":" + strconv.Itoa(ref.Port)
	}
	if ref.Scheme != "" {
		s = ref.Scheme + "://" + s
	}
	return s
}

func (r *redactor) joined(refs []reference.Reference) string {
	var parts []string
	for _, ref := range refs {
		if s := r.rebuilt(ref); !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ",")
}

// trace is what makes two references the same one, whatever their names.
type trace struct {
	host   string
	port   int
	scheme string
	line   int
}

func (r *redactor) traces(refs []reference.Reference, hash bool) []trace {
	var out []trace
	for _, ref := range refs {
		host := ref.Host
		if hash {
			host = strings.ToLower(r.name(host))
		}
		out = append(out, trace{host, ref.Port, ref.Scheme, ref.Origin.Line})
	}
	return out
}

// matches counts how many of the references wanted are among those found; -1 where one is found that is not wanted.
func (r *redactor) matches(want, got []reference.Reference) int {
	wanted, n := r.traces(want, true), 0
	for _, t := range r.traces(got, false) {
		i := slices.Index(wanted, t)
		if i < 0 {
			return -1
		}
		wanted = slices.Delete(wanted, i, i+1)
		n++
	}
	return n
}

// best returns the text in which most of the references wanted are found again and no other; without one a blank.
func (r *redactor) best(want []reference.Reference, blank string, candidates []string, find func(text string) []reference.Reference) string {
	out, most := blank, 0
	for _, c := range candidates {
		if n := r.matches(want, find(c)); n > most {
			out, most = c, n
		}
		if most == len(want) {
			break
		}
	}
	return out
}

func (r *redactor) env(name string, refs []reference.Reference) string {
	if len(refs) == 0 {
		return redacted
	}
	text := r.joined(refs)
	return r.best(refs, redacted, []string{text, r.rebuilt(refs[0])}, func(text string) []reference.Reference {
		return reference.FromSpec(&corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: name, Value: text}}}}}, "", nil, r.options)
	})
}

var plainFlag = regexp.MustCompile(`^--?[A-Za-z0-9][A-Za-z0-9._-]*$`)

// arg redacts one argument. What it means may depend on the one before it.
func (r *redactor) arg(c *corev1.Container, args []string, i int, kind reference.Kind, infra bool) string {
	arg := args[i]
	if infra {
		return r.text(arg)
	}
	switch path.Base(arg) {
	case "sh", "bash", "ash", "-c", "-ec", "exec", "env":
		return arg
	}
	if plainFlag.MatchString(arg) {
		return arg
	}
	flag := ""
	if name, _, ok := strings.Cut(arg, "="); ok && plainFlag.MatchString(name) {
		flag = name + "="
	}
	before := []string{}
	if i > 0 && plainFlag.MatchString(args[i-1]) {
		before = append(before, args[i-1])
	}
	find := func(env []corev1.EnvVar) func(text string) []reference.Reference {
		return func(text string) []reference.Reference {
			m := corev1.Container{Env: env}
			list := append(slices.Clone(before), text)
			if kind == reference.Arg {
				m.Args = list
			} else {
				m.Command = append([]string{"x"}, list...)
			}
			refs := reference.FromSpec(&corev1.PodSpec{Containers: []corev1.Container{m}}, "", nil, r.options)
			return slices.DeleteFunc(refs, func(x reference.Reference) bool { return x.Origin.Kind != kind })
		}
	}
	want := find(c.Env)(arg)
	blank := flag + redacted
	if len(want) == 0 {
		return blank
	}
	text := r.joined(want)
	return r.best(want, blank, []string{flag + text, flag + r.rebuilt(want[0]), "curl " + strings.ReplaceAll(text, ",", " ")}, find(nil))
}

// keptSettings are the fields of the configuration of kubeadm, kubelets and kube-proxy that tell how DNS is set up.
var keptSettings = regexp.MustCompile(`(?m)^[ \t]*(dnsDomain|clusterDomain|clusterDNS|resolvConf|podSubnet|serviceSubnet|kubernetesVersion|mode|strictARP|networking|ipvs|kind|apiVersion|-)(:|[ \t]).*$`)

func (r *redactor) configMap(c *corev1.ConfigMap) *corev1.ConfigMap {
	out := c.DeepCopy()
	r.meta(&out.ObjectMeta)
	dns := isDNSConfigMap(c)
	for k, v := range c.Data {
		switch {
		case k == "Corefile" || strings.HasSuffix(k, ".server") || strings.HasSuffix(k, ".override"):
			out.Data[k] = r.corefile(v)
		case dns && strings.HasPrefix(c.Name, "cilium-config"):
			if out.Data[k] = r.text(v); k == "cluster-name" || strings.ContainsAny(v, "\n {") {
				out.Data[k] = redacted
			}
		case dns && strings.ContainsRune(v, '\n') && !strings.HasPrefix(strings.TrimSpace(v), "{"):
			var kept []string
			for line := range strings.Lines(v) {
				if line = strings.TrimRight(line, "\r\n"); !keptSettings.MatchString(line) {
					line = ""
				}
				kept = append(kept, line)
			}
			out.Data[k] = r.text(strings.Join(kept, "\n") + "\n")
		case dns && (k == "stubDomains" || k == "upstreamNameservers" || k == "federations"):
			out.Data[k] = r.text(v)
		default:
			out.Data[k] = r.data(object{c.Namespace, c.Name}, k, v)
		}
	}
	return out
}

// data redacts a key of a ConfigMap to the references in it, as variables or as a file.
func (r *redactor) data(o object, key, v string) string {
	if vars := r.vars[mapKey{o, key}]; len(vars) > 0 && !strings.Contains(strings.TrimSpace(v), "\n") {
		return r.joined(vars[slices.Min(slices.Collect(maps.Keys(vars)))])
	}
	refs := r.finder.Text(key, v)
	if len(refs) == 0 {
		return ""
	}
	byLine := map[int][]reference.Reference{}
	last := 0
	for _, ref := range refs {
		byLine[ref.Origin.Line] = append(byLine[ref.Origin.Line], ref)
		last = max(last, ref.Origin.Line)
	}
	var candidates []string
	for _, form := range [][2]string{{"url: ", ""}, {"url=", ""}, {`"url": "`, `",`}, {"URL=", ""}, {"<url>", "</url>"}, {"upstream ", ";"}, {"curl ", ""}} {
		var b strings.Builder
		for line := 1; line <= last; line++ {
			if refs := byLine[line]; len(refs) > 0 {
				b.WriteString(form[0] + r.joined(refs) + form[1])
			}
			b.WriteByte('\n')
		}
		candidates = append(candidates, b.String())
	}
	return r.best(refs, "", candidates, func(text string) []reference.Reference { return reference.FromText(key, text, r.options) })
}
