package cluster

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// distribution recognises the kind of Kubernetes. Where several fit, the one that decides more about DNS is first:
// EKS Auto Mode before EKS, kind before the kubeadm inside it.
func distribution(s *Snapshot, maps configMaps) Distribution {
	d := Distribution{Version: s.ServerVersion}
	if d.Version == "" {
		for _, n := range s.Nodes {
			// The oldest is no worse than another, and the same for every order.
			if v := n.Status.NodeInfo.KubeletVersion; d.Version == "" || v != "" && v < d.Version {
				d.Version = v
			}
		}
	}
	has := func(test func(n *corev1.Node) bool) bool { return slices.ContainsFunc(s.Nodes, test) }
	label := func(key string) bool {
		return has(func(n *corev1.Node) bool { _, ok := n.Labels[key]; return ok })
	}
	prefix := func(p string) bool {
		return has(func(n *corev1.Node) bool {
			for k := range n.Labels {
				if strings.HasPrefix(k, p) {
					return true
				}
			}
			return false
		})
	}
	instance := func(name string) bool {
		return has(func(n *corev1.Node) bool { return n.Labels["node.kubernetes.io/instance-type"] == name })
	}
	version := func(part string) bool { return strings.Contains(d.Version, part) }
	group := func(suffix string) bool {
		return slices.ContainsFunc(s.APIGroups, func(g string) bool { return strings.HasSuffix(g, suffix) })
	}
	configMap := func(namespace, name string) bool { return maps.get(namespace, name) != nil }

	for _, c := range []struct {
		name string
		is   bool
	}{
		{"openshift", group("config.openshift.io") || group("route.openshift.io") || label("node.openshift.io/os_id") || configMap("openshift-dns", "dns-default")},
		{"eks-auto", has(isAutoMode)},
		{"eks", version("-eks-") || prefix("eks.amazonaws.com/")},
		{"aks", prefix("kubernetes.azure.com/")},
		{"gke", version("-gke.") || prefix("cloud.google.com/gke-")},
		{"digitalocean", prefix("doks.digitalocean.com/")},
		{"rke2", version("+rke2") || instance("rke2")},
		{"k3s", version("+k3s") || instance("k3s")},
		{"k0s", version("+k0s")},
		{"talos", has(func(n *corev1.Node) bool { _, ok := talosVersion(n); return ok })},
		{"microk8s", label("microk8s.io/cluster")},
		{"kops", label("kops.k8s.io/instancegroup")},
		{"kind", has(func(n *corev1.Node) bool { return strings.HasPrefix(n.Spec.ProviderID, "kind://") })},
		{"minikube", prefix("minikube.k8s.io/")},
		// kubespray stands on kubeadm and names the ConfigMap of NodeLocal DNSCache in its own way.
		{"kubespray", configMap("kube-system", "nodelocaldns")},
		{"kubeadm", configMap("kube-system", "kubeadm-config") || has(func(n *corev1.Node) bool {
			_, ok := n.Annotations["kubeadm.alpha.kubernetes.io/cri-socket"]
			return ok
		})},
	} {
		if c.is {
			d.Name = c.name
			break
		}
	}
	return d
}

func isAutoMode(n *corev1.Node) bool { return n.Labels["eks.amazonaws.com/compute-type"] == "auto" }

// talosVersion reads the OS image of Talos, "Talos (v1.7.0)".
func talosVersion(n *corev1.Node) (resolve.Version, bool) {
	rest, ok := strings.CutPrefix(n.Status.NodeInfo.OSImage, "Talos")
	if !ok {
		return resolve.Version{}, false
	}
	v, _ := resolve.ParseVersion(rest)
	return v, true
}

// nodeServer tells which DNS server runs on nodes outside of pods.
func nodeServer(s *Snapshot) string {
	has := func(test func(n *corev1.Node) bool) bool { return slices.ContainsFunc(s.Nodes, test) }
	switch {
	case has(isAutoMode):
		// EKS user guide, "Auto Mode": CoreDNS runs as a system service of the node.
		return "the CoreDNS that EKS Auto Mode runs on each of its nodes"
	case has(func(n *corev1.Node) bool { return n.Labels["kubernetes.azure.com/localdns-state"] == "enabled" }):
		return "AKS LocalDNS"
	case has(func(n *corev1.Node) bool {
		v, ok := talosVersion(n)
		return ok && v.Known() && !v.Before(1, 7, 0)
	}):
		// Talos 1.7 release notes: new machine configurations enable hostDNS, upgrades keep what they have.
		return "Talos host DNS, where the machine configuration enables it"
	}
	return ""
}

// networkPlugin finds the CNI plugin from the images of its agents, else from its API groups. Where one is chained
// behind another, the one that routes packets is first.
func networkPlugin(s *Snapshot, distribution string, workloads []*Workload) (name, version string) {
	order := []string{
		"cilium", "ovn-kubernetes", "openshift-sdn", "aws-vpc-cni", "azure-cni", "antrea", "canal", "calico", "weave",
		"kube-router", "kindnet", "flannel",
	}
	versions := map[string]string{}
	for _, w := range workloads {
		if w.Spec == nil {
			continue
		}
		found := map[string]string{}
		for i := range w.Spec.Containers {
			image := w.Spec.Containers[i].Image
			if n := networkImage(image); n != "" {
				found[n] = imageVersion(image)
			}
		}
		switch w.Object.Namespace + "/" + w.Object.Name {
		case "openshift-ovn-kubernetes/ovnkube-node":
			found["ovn-kubernetes"] = ""
		case "openshift-sdn/sdn":
			found["openshift-sdn"] = ""
		}
		if v, ok := found["calico"]; ok {
			if _, both := found["flannel"]; both || strings.Contains(w.Object.Name, "canal") {
				found["canal"] = v
			}
		}
		for n, v := range found {
			if had, ok := versions[n]; !ok || had == "" || v != "" && v < had {
				versions[n] = v
			}
		}
	}
	for _, n := range order {
		if v, ok := versions[n]; ok {
			return n, v
		}
	}
	// k3s runs flannel in its own process, unless told to leave the network to somebody else, who then has pods.
	if distribution == "k3s" && s.Known(Pods) && !s.Partial {
		return "flannel", ""
	}
	for _, g := range []struct{ group, name string }{
		{"cilium.io", "cilium"}, {"k8s.ovn.org", "ovn-kubernetes"}, {"crd.antrea.io", "antrea"}, {"crd.projectcalico.org", "calico"},
	} {
		if slices.Contains(s.APIGroups, g.group) {
			return g.name, ""
		}
	}
	return "", ""
}

// networkImage is the CNI plugin whose agent an image holds, or "".
func networkImage(image string) string {
	ref := parseImage(image)
	base := strings.ToLower(path.Base(ref.Repository))
	repo := strings.ToLower(ref.Repository)
	has := func(part string) bool { return strings.Contains(base, part) }
	switch {
	case base == "cilium" || base == "mirrored-cilium-cilium" || base == "cilium-ubi" || base == "cilium-dev":
		return "cilium"
	case has("ovn-kube"):
		return "ovn-kubernetes"
	case has("amazon-k8s-cni") && !has("init"):
		return "aws-vpc-cni"
	case has("azure-cns") || has("azure-cni"):
		return "azure-cni"
	case has("antrea-agent") || has("antrea-ubuntu") || has("antrea-ubi"):
		return "antrea"
	case base == "node" && strings.Contains(repo, "calico") || has("calico-node") || base == "hardened-calico":
		return "calico"
	case has("weave-kube"):
		return "weave"
	case base == "kube-router" || has("-kube-router"):
		return "kube-router"
	case base == "kindnetd":
		return "kindnet"
	case has("flannel") && !has("plugin"):
		return "flannel"
	}
	return ""
}

func imageVersion(image string) string {
	if v, ok := resolve.ParseVersion(parseImage(image).Tag); ok {
		return v.String()
	}
	return ""
}

// announcers finds what announces addresses of Services on layer 2.
func announcers(maps configMaps, workloads []*Workload) []string {
	var list []string
	for o, cm := range maps.byName {
		if o.Name == "cilium-config" && cm.Data["enable-l2-announcements"] == "true" {
			list = append(list, "cilium")
		}
	}
	for _, w := range workloads {
		if w.Spec == nil {
			continue
		}
		for i := range w.Spec.Containers {
			repo := strings.ToLower(parseImage(w.Spec.Containers[i].Image).Repository)
			switch base := path.Base(repo); {
			case strings.Contains(base, "speaker") && strings.Contains(repo, "metallb"):
				list = append(list, "metallb")
			case base == "kube-vip" || strings.HasSuffix(base, "-kube-vip"):
				list = append(list, "kube-vip")
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
