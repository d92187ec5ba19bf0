package cluster

import (
	"cmp"
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// metadataServer is where pods of a GKE cluster that uses Cloud DNS send their queries.
const metadataServer = "169.254.169.254"

// findServers collects the DNS servers that run in pods.
func (d *deriver) findServers() {
	d.workloads = d.s.Workloads()
	for _, svc := range d.s.Services {
		if svc.Spec.Type != corev1.ServiceTypeExternalName && hasPort(svc, 53) {
			d.dnsServices = append(d.dnsServices, svc)
		}
	}
	slices.SortFunc(d.dnsServices, compareServices)
	d.dnsByNamespace = byNamespace(d.dnsServices)
	d.behind = d.withoutSelector()

	byObject := map[finding.Object]*Server{}
	biggest := map[finding.Object]int{}
	for _, w := range d.workloads {
		if w.Spec == nil {
			continue
		}
		impl, c := serverContainer(w)
		if impl == "" {
			if !d.selectedForDNS(w) && d.behind[w.Object] == nil {
				continue
			}
			impl = Unknown
		}
		srv := byObject[w.Object]
		if srv == nil {
			srv = &Server{}
			byObject[w.Object] = srv
			d.facts.Servers = append(d.facts.Servers, srv)
		}
		srv.Ready += w.Ready
		srv.Total += w.Pods
		// In the middle of a rollout the template with the most pods speaks for the server.
		if srv.Workload == nil || w.Pods > biggest[w.Object] {
			biggest[w.Object] = w.Pods
			srv.Implementation, srv.Workload, srv.Image = impl, w, ""
			if c != nil {
				srv.Image = c.Image
			}
		}
	}
	if len(d.facts.Servers) == 0 {
		return
	}
	services := byNamespace(d.s.Services)
	for _, srv := range d.facts.Servers {
		d.describe(srv, services[srv.Workload.Object.Namespace])
	}
}

// byNamespace groups Services, each group in the order of list.
func byNamespace(list []*corev1.Service) map[string][]*corev1.Service {
	groups := map[string][]*corev1.Service{}
	for _, svc := range list {
		groups[svc.Namespace] = append(groups[svc.Namespace], svc)
	}
	return groups
}

// describe fills in what follows from the workload of a server; beside are the Services of its namespace.
func (d *deriver) describe(srv *Server, beside []*corev1.Service) {
	w := srv.Workload
	srv.Version = serverVersion(srv.Implementation, srv.Image, w.Labels)
	srv.Services = slices.Clone(d.behind[w.Object])
	for _, svc := range beside {
		if selects(svc, w) {
			srv.Services = append(srv.Services, svc)
		}
	}
	slices.SortFunc(srv.Services, compareServices)
	srv.Addresses = addresses(srv.Services)
	_, c := serverContainer(w)
	if c == nil {
		return
	}
	known := newContainer(d.maps, w.Object.Namespace, w.Spec, c)
	if srv.Implementation == CoreDNS || srv.Implementation == NodeLocalDNS {
		srv.Corefile = corefileOf(srv.Implementation, known)
	}
	if srv.Implementation == NodeLocalDNS {
		// kubernetes/dns cmd/node-cache/main.go: -localip is a list with commas.
		list, _ := flagValue(known.words, "localip")
		srv.Addresses = nil
		for a := range strings.SplitSeq(list, ",") {
			if addr, err := netip.ParseAddr(strings.TrimSpace(a)); err == nil {
				srv.Addresses = append(srv.Addresses, addr.String())
			}
		}
	}
}

// serverContainer returns the container of a workload that is a DNS server, and which; "" and nil if none shows that.
func serverContainer(w *Workload) (Implementation, *corev1.Container) {
	for i := range w.Spec.Containers {
		c := &w.Spec.Containers[i]
		if impl := containerServer(c); impl != "" {
			return impl, c
		}
	}
	if !dnsLabels(w.Labels) {
		return "", nil
	}
	// An image by digest, or of a mirror that renames: the name of the container is as distributions give it.
	for i := range w.Spec.Containers {
		c := &w.Spec.Containers[i]
		switch c.Name {
		case "coredns":
			return CoreDNS, c
		case "kubedns", "kube-dns":
			return KubeDNS, c
		case "node-cache":
			return NodeLocalDNS, c
		}
	}
	return "", nil
}

func containerServer(c *corev1.Container) Implementation {
	if strings.Contains(strings.ToLower(c.Image), "dns") {
		if impl := parseImage(c.Image).implementation(); impl != "" {
			return impl
		}
	}
	if len(c.Command) > 0 {
		switch path.Base(c.Command[0]) {
		case "coredns":
			return CoreDNS
		case "node-cache":
			return NodeLocalDNS
		case "kube-dns":
			return KubeDNS
		}
	}
	for _, list := range [][]string{c.Command, c.Args} {
		for i, w := range list {
			if !strings.Contains(w, "-conf") {
				continue
			}
			value := w
			if i+1 < len(list) && (w == "-conf" || w == "--conf") {
				value = list[i+1]
			}
			if strings.Contains(value, "Corefile") {
				return CoreDNS
			}
		}
	}
	return ""
}

// dnsLabels tells whether the labels are those that distributions give to the pods of their DNS server.
func dnsLabels(labels map[string]string) bool {
	switch labels["k8s-app"] {
	case "kube-dns", "coredns", "node-local-dns", "nodelocaldns":
		return true
	}
	return labels["app.kubernetes.io/name"] == "coredns" || labels["eks.amazonaws.com/component"] == "coredns" ||
		labels["dns.operator.openshift.io/daemonset-dns"] != ""
}

// selectedForDNS tells whether a Service with port 53 selects the workload.
func (d *deriver) selectedForDNS(w *Workload) bool {
	return slices.ContainsFunc(d.dnsByNamespace[w.Object.Namespace], func(svc *corev1.Service) bool { return selects(svc, w) })
}

// selects tells whether a Service selects the pods of a workload.
func selects(svc *corev1.Service, w *Workload) bool {
	if svc.Namespace != w.Object.Namespace || len(svc.Spec.Selector) == 0 || svc.Spec.Type == corev1.ServiceTypeExternalName {
		return false
	}
	for k, v := range svc.Spec.Selector {
		if got, ok := w.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// objectName is a name in a namespace.
type objectName struct{ namespace, name string }

// withoutSelector returns, by owner, the DNS Services without selector whose EndpointSlices hold a pod of the owner, by
// reference or by address.
func (d *deriver) withoutSelector() map[finding.Object][]*corev1.Service {
	services := map[objectName]*corev1.Service{}
	for _, svc := range d.dnsServices {
		if len(svc.Spec.Selector) == 0 {
			services[objectName{svc.Namespace, svc.Name}] = svc
		}
	}
	if len(services) == 0 {
		return nil
	}
	byPod, byAddress := map[objectName][]*corev1.Service{}, map[string][]*corev1.Service{}
	for _, slice := range d.s.EndpointSlices {
		svc := services[objectName{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]}]
		if svc == nil {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				pod := objectName{slice.Namespace, e.TargetRef.Name}
				byPod[pod] = append(byPod[pod], svc)
				continue
			}
			for _, a := range e.Addresses {
				byAddress[a] = append(byAddress[a], svc)
			}
		}
	}
	owners := map[finding.Object][]*corev1.Service{}
	for _, p := range d.s.Pods {
		found := byPod[objectName{p.Namespace, p.Name}]
		for _, ip := range p.IPs {
			found = append(slices.Clip(found), byAddress[ip]...)
		}
		for _, svc := range found {
			if !slices.Contains(owners[p.Owner], svc) {
				owners[p.Owner] = append(owners[p.Owner], svc)
			}
		}
	}
	return owners
}

func hasPort(svc *corev1.Service, port int32) bool {
	return slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
}

// addresses are the cluster IPs of those of the Services that have port 53, in order, each once.
func addresses(services []*corev1.Service) []string {
	var list []string
	for _, svc := range services {
		if !hasPort(svc, 53) {
			continue
		}
		for _, a := range clusterIPs(svc) {
			if !slices.Contains(list, a.String()) {
				list = append(list, a.String())
			}
		}
	}
	return list
}

// clusterIPs returns the addresses of a Service; none for a headless one and where a manifest leaves them open.
func clusterIPs(svc *corev1.Service) []netip.Addr {
	texts := svc.Spec.ClusterIPs
	if len(texts) == 0 {
		texts = []string{svc.Spec.ClusterIP}
	}
	var list []netip.Addr
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// chooseDNS finds out which server pods ask.
func (d *deriver) chooseDNS() {
	f := d.facts
	for _, srv := range f.Servers {
		if srv.Implementation == NodeLocalDNS {
			f.NodeLocal = best(f.NodeLocal, srv)
		}
	}
	svc := d.clusterService()
	d.service = svc
	switch {
	case f.Distribution.Name == "gke" && slices.Contains(d.nameservers(), metadataServer):
		d.add(&Server{Implementation: CloudDNS, Services: of(svc), Addresses: []string{metadataServer}})
		return
	case svc != nil:
		for _, srv := range f.Servers {
			if srv.Implementation != NodeLocalDNS && slices.Contains(srv.Services, svc) {
				f.DNS = best(f.DNS, srv)
			}
		}
	default:
		for _, srv := range f.Servers {
			if servesCluster(srv) {
				f.DNS = best(f.DNS, srv)
			}
		}
	}
	d.fromText(svc)
	if f.DNS != nil {
		return
	}
	switch {
	case f.Distribution.Name == "gke" && d.s.Known(Pods) && !d.s.Partial:
		// GKE runs kube-dns in pods, unless Cloud DNS is its DNS provider.
		d.add(&Server{Implementation: CloudDNS, Services: of(svc), Addresses: addresses(of(svc))})
	case f.Distribution.Name == "gke" && (svc != nil || d.s.Partial):
		// It may be either.
		d.add(&Server{Implementation: Unknown, Services: of(svc), Addresses: addresses(of(svc))})
	case f.Distribution.Name == "eks-auto" && d.s.Known(Pods) && !d.s.Partial:
		// Without CoreDNS pods, the CoreDNS of the nodes answers.
		d.add(&Server{Implementation: CoreDNS, Services: of(svc), Addresses: addresses(of(svc))})
	case d.s.Partial:
		d.add(&Server{Implementation: CoreDNS, Assumed: true, Services: of(svc), Addresses: addresses(of(svc))})
	case svc != nil:
		d.add(&Server{Implementation: Unknown, Services: of(svc), Addresses: addresses(of(svc))})
	}
}

// add makes srv the cluster's DNS server.
func (d *deriver) add(srv *Server) {
	d.facts.DNS = srv
	d.facts.Servers = append(d.facts.Servers, srv)
}

func of(svc *corev1.Service) []*corev1.Service {
	if svc == nil {
		return nil
	}
	return []*corev1.Service{svc}
}

// best returns the server that more likely answers: the one with more ready replicas, then more replicas, then one in
// the namespace of a distribution, then the first.
func best(a, b *Server) *Server {
	if a == nil {
		return b
	}
	rank := func(s *Server) int {
		if n := s.Workload.Object.Namespace; n == "kube-system" || n == "openshift-dns" {
			return 1
		}
		return 0
	}
	if cmp.Or(cmp.Compare(b.Ready, a.Ready), cmp.Compare(b.Total, a.Total), cmp.Compare(rank(b), rank(a))) > 0 {
		return b
	}
	return a
}

// servesCluster tells whether a server that no known Service stands in front of looks like the cluster's.
func servesCluster(srv *Server) bool {
	switch srv.Implementation {
	case KubeDNS:
		return true
	case CoreDNS:
		return srv.Corefile != nil && len(kubernetesZones(srv.Corefile)) > 0 ||
			srv.Corefile == nil && dnsLabels(srv.Workload.Labels)
	}
	return false
}

// clusterService finds the Service that kubelets point pods at: the one whose address pods are known to use, else one
// of the names and labels that distributions give it.
func (d *deriver) clusterService() *corev1.Service {
	used := d.nameservers()
	for _, svc := range d.dnsServices {
		for _, a := range clusterIPs(svc) {
			if slices.Contains(used, a.String()) {
				return svc
			}
		}
	}
	var found *corev1.Service
	top := 0
	for _, svc := range d.dnsServices {
		if r := serviceRank(svc); r > top {
			found, top = svc, r
		}
	}
	return found
}

// serviceRank is how likely a Service with port 53 is the cluster's; 0 if nothing speaks for it.
func serviceRank(svc *corev1.Service) int {
	switch svc.Namespace + "/" + svc.Name {
	case "kube-system/kube-dns": // kubeadm, EKS, AKS, GKE, k3s, Talos, k0s, kops, microk8s, DigitalOcean
		return 6
	case "openshift-dns/dns-default":
		return 5
	case "kube-system/rke2-coredns-rke2-coredns", "kube-system/coredns": // RKE2; kubespray and charts
		return 4
	}
	switch svc.Labels["kubernetes.io/name"] {
	case "CoreDNS", "KubeDNS":
		return 3
	}
	switch {
	case svc.Namespace == "kube-system" && dnsLabels(svc.Labels) && svc.Labels["kubernetes.io/cluster-service"] == "true":
		return 2
	case svc.Namespace == "kube-system" && dnsLabels(svc.Labels):
		return 1
	}
	return 0
}

// nameservers are those of the resolv.conf of a pod, and what kubeadm keeps of the configuration of kubelets.
func (d *deriver) nameservers() []string {
	var list []string
	for _, t := range d.texts(TextPodResolvConf) {
		cfg, _ := resolve.ParseConfig(t.Name, []byte(t.Data))
		list = append(list, cfg.Nameservers...)
	}
	if cm := d.maps.get("kube-system", "kubelet-config"); cm != nil {
		list = append(list, yamlList(cm.Data["kubelet"], "clusterDNS")...)
	}
	return list
}

// texts returns the texts of a kind in a stable order.
func (d *deriver) texts(kind TextKind) []*Text { return texts(d.s, kind) }

func texts(s *Snapshot, kind TextKind) []*Text {
	var list []*Text
	for _, t := range s.Texts {
		if t.Kind == kind {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *Text) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Data, b.Data)) })
	return list
}

// corefileMaps are the ConfigMaps in which distributions keep the Corefile of the cluster's DNS server.
func corefileMaps() []finding.Object {
	return []finding.Object{
		configMapObject("kube-system", "coredns"),
		configMapObject("openshift-dns", "dns-default"),
		configMapObject("kube-system", "rke2-coredns-rke2-coredns"),
	}
}

// fromText takes the Corefile from a text, because the user gave it as that of the cluster's DNS server, or from a
// ConfigMap where no container leads to one.
func (d *deriver) fromText(svc *corev1.Service) {
	var cf *Corefile
	if list := d.texts(TextCorefile); len(list) > 0 {
		cf = textCorefile(d.maps, finding.Object{Kind: "File", Name: list[0].Name}, "", list[0].Data)
	}
	for _, o := range corefileMaps() {
		if d.facts.DNS != nil && d.facts.DNS.Corefile != nil {
			break
		}
		if cm := d.maps.byName[o]; cf == nil && cm != nil {
			if data, ok := cm.Data["Corefile"]; ok {
				cf = textCorefile(d.maps, o, "Corefile", data)
			}
		}
	}
	srv := d.facts.DNS
	switch {
	case cf == nil:
	case srv == nil:
		d.add(&Server{Implementation: CoreDNS, Corefile: cf, Services: of(svc), Addresses: addresses(of(svc))})
	case srv.Implementation == Unknown && cf.Object.Kind == "File":
		// The user says what it is.
		srv.Implementation, srv.Corefile = CoreDNS, cf
	case srv.Implementation == CoreDNS:
		srv.Corefile = cf
	}
}

// override applies what the user states about the DNS server.
func (d *deriver) override() {
	o := d.s.Override
	if o.Implementation == "" && o.Version == "" {
		return
	}
	srv := d.facts.DNS
	if srv == nil {
		srv = &Server{Implementation: CoreDNS}
		d.add(srv)
	}
	if o.Implementation != "" && o.Implementation != srv.Implementation {
		srv.Implementation, srv.Version = o.Implementation, ""
		if o.Implementation != CoreDNS {
			srv.Corefile = nil
		}
	}
	srv.Assumed = srv.Assumed && o.Implementation == ""
	if o.Version != "" {
		srv.Version = o.Version
		if v, ok := resolve.ParseVersion(o.Version); ok {
			srv.Version = v.String()
		}
	}
}
