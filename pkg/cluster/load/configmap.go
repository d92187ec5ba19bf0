package load

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// dnsConfigMaps are prefixes of the names of ConfigMaps, in any namespace, that tell how DNS is served, whichever pod
// mounts them: Corefiles with their additions, the cluster domain, the network plugin's settings.
var dnsConfigMaps = []string{
	"coredns", "rke2-coredns", "kube-dns", "node-local-dns", "nodelocaldns", "dns-default", "cilium-config", "kubeadm-config",
	"kubelet-config", "kube-proxy",
}

// isDNSConfigMap tells whether a ConfigMap is read although no pod is known to use it.
func isDNSConfigMap(c *corev1.ConfigMap) bool {
	if slices.ContainsFunc(dnsConfigMaps, func(p string) bool { return strings.HasPrefix(c.Name, p) }) {
		return true
	}
	for k := range c.Data {
		if k == "Corefile" || strings.HasSuffix(k, ".server") || strings.HasSuffix(k, ".override") {
			return true
		}
	}
	return false
}

// object is a namespaced name.
type object struct{ namespace, name string }

// needs are the ConfigMaps that pods use, with the keys that they use; nil keys stand for all of them.
type needs map[object]map[string]bool

// needsOf collects what the pods and templates use.
func needsOf(pods []*cluster.Pod, templates []*cluster.Workload) needs {
	n := needs{}
	type use struct {
		namespace string
		spec      *corev1.PodSpec
	}
	seen := map[use]bool{}
	add := func(namespace string, spec *corev1.PodSpec) {
		if u := (use{namespace, spec}); !seen[u] {
			seen[u] = true
			n.add(namespace, spec)
		}
	}
	for _, p := range pods {
		add(p.Namespace, p.Spec)
	}
	for _, t := range templates {
		add(t.Object.Namespace, t.Spec)
	}
	return n
}

func (n needs) add(namespace string, s *corev1.PodSpec) {
	container := func(env []corev1.EnvVar, from []corev1.EnvFromSource) {
		for i := range env {
			if f := env[i].ValueFrom; f != nil && f.ConfigMapKeyRef != nil {
				n.keys(object{namespace, f.ConfigMapKeyRef.Name}, f.ConfigMapKeyRef.Key)
			}
		}
		for i := range from {
			if r := from[i].ConfigMapRef; r != nil {
				n[object{namespace, r.Name}] = nil
			}
		}
	}
	for i := range s.InitContainers {
		container(s.InitContainers[i].Env, s.InitContainers[i].EnvFrom)
	}
	for i := range s.Containers {
		container(s.Containers[i].Env, s.Containers[i].EnvFrom)
	}
	for i := range s.EphemeralContainers {
		container(s.EphemeralContainers[i].Env, s.EphemeralContainers[i].EnvFrom)
	}
	volume := func(name string, items []corev1.KeyToPath) {
		if len(items) == 0 {
			n[object{namespace, name}] = nil
			return
		}
		for _, k := range items {
			n.keys(object{namespace, name}, k.Key)
		}
	}
	for _, v := range s.Volumes {
		if v.ConfigMap != nil {
			volume(v.ConfigMap.Name, v.ConfigMap.Items)
		}
		if v.Projected != nil {
			for _, p := range v.Projected.Sources {
				if p.ConfigMap != nil {
					volume(p.ConfigMap.Name, p.ConfigMap.Items)
				}
			}
		}
	}
}

func (n needs) keys(o object, key string) {
	keys, ok := n[o]
	switch {
	case !ok:
		n[o] = map[string]bool{key: true}
	case keys != nil:
		keys[key] = true
	}
}

// keep reports whether c is read by a pod or tells how DNS is served, and cuts it down to the keys that are used.
func (n needs) keep(c *corev1.ConfigMap) bool {
	if isDNSConfigMap(c) {
		return true
	}
	keys, ok := n[object{c.Namespace, c.Name}]
	if !ok {
		return false
	}
	if keys != nil {
		for k := range c.Data {
			if !keys[k] {
				delete(c.Data, k)
			}
		}
		c.Data = nilIfEmpty(c.Data)
	}
	return true
}

func (n needs) filter(cs []*corev1.ConfigMap) []*corev1.ConfigMap {
	cs = slices.DeleteFunc(cs, func(c *corev1.ConfigMap) bool { return !n.keep(c) })
	if len(cs) == 0 {
		return nil
	}
	return cs
}

// dataSize returns how many bytes of text c holds.
func dataSize(c *corev1.ConfigMap) int64 {
	var n int64
	for k, v := range c.Data {
		n += int64(len(k) + len(v))
	}
	return n
}
