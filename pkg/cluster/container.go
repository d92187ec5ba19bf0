package cluster

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// maxMounts bounds the files of one container, and maxExpanded the bytes of one value of its environment: a hostile
// object could name the same large volume, or repeat a long variable, any number of times.
const (
	maxMounts   = 4096
	maxExpanded = 64 << 10
)

// container is one container as its process sees it: its words, environment and files.
type container struct {
	spec *corev1.Container
	// words are command and arguments with $(VAR) filled in; a script of a shell is cut at blanks.
	words []string
	env   map[string]string
	// envUnknown are variables that are set to what the template does not tell, sorted.
	envUnknown []string
	mounts     map[string]Mount
	// opaque are directories and files whose content is not known, by absolute path, with the reason.
	opaque map[string]string
}

// newContainer reads c of a pod in namespace.
func newContainer(maps configMaps, namespace string, pod *corev1.PodSpec, c *corev1.Container) *container {
	out := &container{spec: c, env: map[string]string{}, mounts: map[string]Mount{}, opaque: map[string]string{}}
	out.readEnv(maps, namespace)
	for _, w := range slices.Concat(c.Command, c.Args) {
		w = out.expand(w)
		if strings.ContainsAny(w, " \t\n") {
			out.words = append(out.words, strings.Fields(w)...)
			continue
		}
		out.words = append(out.words, w)
	}
	out.readMounts(maps, namespace, pod)
	return out
}

// readEnv follows the kubelet (pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables): envFrom first, then env in
// order, where a later entry wins and $(VAR) refers to what is set before.
func (c *container) readEnv(maps configMaps, namespace string) {
	unknown := map[string]bool{
		// The kubelet sets them in every container (envvars.FromServices).
		"KUBERNETES_SERVICE_HOST": true, "KUBERNETES_SERVICE_PORT": true,
	}
	set := func(name, value string, known bool) {
		if known {
			c.env[name] = value
			delete(unknown, name)
			return
		}
		delete(c.env, name)
		unknown[name] = true
	}
	for _, from := range c.spec.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		if cm := maps.get(namespace, from.ConfigMapRef.Name); cm != nil {
			for _, k := range sortedKeys(cm.Data) {
				set(from.Prefix+k, cm.Data[k], true)
			}
		}
	}
	for _, e := range c.spec.Env {
		switch {
		case e.ValueFrom == nil:
			set(e.Name, c.expand(e.Value), true)
		case e.ValueFrom.ConfigMapKeyRef != nil:
			ref := e.ValueFrom.ConfigMapKeyRef
			cm := maps.get(namespace, ref.Name)
			if cm == nil {
				set(e.Name, "", false)
				continue
			}
			value, ok := cm.Data[ref.Key]
			if ok || ref.Optional == nil || !*ref.Optional {
				set(e.Name, value, ok)
			}
		default:
			set(e.Name, "", false)
		}
	}
	c.envUnknown = sortedKeys(unknown)
}

// expand fills in $(VAR) as third_party/forked/golang/expansion of Kubernetes does: "$$" stands for "$", and a
// reference to what is not set stays as it is.
func (c *container) expand(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < maxExpanded; i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i:], ')')
			value, ok := "", false
			if end > 0 {
				value, ok = c.env[s[i+2:i+end]]
			}
			if !ok {
				b.WriteByte('$')
				continue
			}
			b.WriteString(value[:min(len(value), maxExpanded)])
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

// readMounts fills mounts from the volumes of the pod. An inner mount hides what an outer one has under its path.
func (c *container) readMounts(maps configMaps, namespace string, pod *corev1.PodSpec) {
	volumes := map[string]*corev1.Volume{}
	for i := range pod.Volumes {
		volumes[pod.Volumes[i].Name] = &pod.Volumes[i]
	}
	mounts := slices.Clone(c.spec.VolumeMounts)
	slices.SortStableFunc(mounts, func(a, b corev1.VolumeMount) int {
		return len(path.Clean(a.MountPath)) - len(path.Clean(b.MountPath))
	})
	for _, m := range mounts {
		at := path.Join("/", m.MountPath)
		c.hide(at)
		v := volumes[m.Name]
		switch {
		case v == nil:
			c.opaque[at] = "its volume is not in the pod"
			continue
		case m.SubPathExpr != "" && c.expand(m.SubPathExpr) == m.SubPathExpr && strings.Contains(m.SubPathExpr, "$("):
			c.opaque[at] = "its subPathExpr is not known"
			continue
		}
		files, why := volumeFiles(maps, namespace, v)
		if why != "" {
			c.opaque[at] = why
		}
		sub := strings.Trim(path.Clean("/"+m.SubPath+c.expand(m.SubPathExpr)), "/")
		for _, name := range sortedKeys(files) {
			target := path.Join(at, name)
			if sub != "" {
				if name == sub {
					target = at
				} else if rest, ok := strings.CutPrefix(name, sub+"/"); ok {
					target = path.Join(at, rest)
				} else {
					continue
				}
			}
			if len(c.mounts) < maxMounts {
				c.mounts[target] = files[name]
			}
		}
	}
}

func (c *container) hide(at string) {
	under := func(p string) bool { return p == at || strings.HasPrefix(p, strings.TrimSuffix(at, "/")+"/") }
	for p := range c.mounts {
		if under(p) {
			delete(c.mounts, p)
		}
	}
	for p := range c.opaque {
		if under(p) {
			delete(c.opaque, p)
		}
	}
}

// volumeFiles returns the files of a volume by path inside it, and why some of them are not known, if so.
func volumeFiles(maps configMaps, namespace string, v *corev1.Volume) (map[string]Mount, string) {
	files := map[string]Mount{}
	switch {
	case v.ConfigMap != nil:
		why := maps.files(files, namespace, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
		return files, why
	case v.Projected != nil:
		var why string
		for _, src := range v.Projected.Sources {
			switch {
			case src.ConfigMap != nil:
				if w := maps.files(files, namespace, src.ConfigMap.Name, src.ConfigMap.Items, src.ConfigMap.Optional); w != "" {
					why = w
				}
			case src.ServiceAccountToken != nil, src.DownwardAPI != nil:
			default:
				why = "a projected source of it is not read"
			}
		}
		return files, why
	case v.EmptyDir != nil:
		return files, "an emptyDir is filled while the pod runs"
	case v.Secret != nil:
		return files, "Secrets are never read"
	case v.HostPath != nil:
		return files, "it is a directory of the node"
	}
	return files, "its volume is not read"
}

// configMaps finds ConfigMaps by name.
type configMaps struct {
	byName map[finding.Object]*corev1.ConfigMap
	// known tells that a ConfigMap that is not here does not exist.
	known bool
}

func newConfigMaps(s *Snapshot) configMaps {
	maps := configMaps{byName: make(map[finding.Object]*corev1.ConfigMap, len(s.ConfigMaps)), known: s.Known(ConfigMaps) && !s.Partial}
	for _, cm := range s.ConfigMaps {
		maps.byName[configMapObject(cm.Namespace, cm.Name)] = cm
	}
	return maps
}

func configMapObject(namespace, name string) finding.Object {
	return finding.Object{Kind: "ConfigMap", Namespace: namespace, Name: name}
}

func (m configMaps) get(namespace, name string) *corev1.ConfigMap {
	return m.byName[configMapObject(namespace, name)]
}

// files adds the keys of a ConfigMap to files, renamed and chosen by items where there are any.
func (m configMaps) files(files map[string]Mount, namespace, name string, items []corev1.KeyToPath, optional *bool) string {
	cm := m.get(namespace, name)
	if cm == nil {
		if m.known && optional != nil && *optional {
			return ""
		}
		return "ConfigMap " + namespace + "/" + name + " was not found"
	}
	add := func(file, key string) {
		if data, ok := cm.Data[key]; ok && len(files) < maxMounts {
			files[strings.TrimPrefix(path.Clean("/"+file), "/")] = Mount{Object: configMapObject(namespace, name), Key: key, Data: data}
		}
	}
	if len(items) == 0 {
		for _, key := range sortedKeys(cm.Data) {
			add(key, key)
		}
		return ""
	}
	for _, item := range items {
		add(item.Path, item.Key)
	}
	return ""
}

// flagValue returns the value of a flag as Go's package flag reads it: -name value, -name=value, also with two
// hyphens.
func flagValue(words []string, name string) (string, bool) {
	for i, w := range words {
		w, ok := strings.CutPrefix(w, "-")
		if !ok {
			continue
		}
		w = strings.TrimPrefix(w, "-")
		if value, ok := strings.CutPrefix(w, name+"="); ok {
			return value, true
		}
		if w == name && i+1 < len(words) {
			return words[i+1], true
		}
	}
	return "", false
}
