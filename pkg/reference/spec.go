package reference

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Finder searches the pods and texts of one cluster. It remembers what it found in a key of a ConfigMap, so that a
// ConfigMap mounted by many pods is read once; a ConfigMap must therefore not change during the life of a Finder. A
// Finder is not safe for concurrent use.
type Finder struct {
	domain string
	files  map[fileID]*fileResult
}

type fileID struct{ namespace, configMap, key, file string }

// fileResult is what one text yields.
type fileResult struct {
	found []found
	// upstreams are the names that the text defines for itself with nginx's upstream blocks.
	upstreams []string
}

// found is a reference before the names that programs define for themselves are taken out.
type found struct {
	Reference
	// pass is true where nginx looks for an upstream block of that name first.
	pass bool
}

// NewFinder returns a Finder that has seen nothing.
func NewFinder(o Options) *Finder {
	domain := strings.ToLower(strings.Trim(o.ClusterDomain, "."))
	if domain == "" {
		domain = "cluster.local"
	}
	return &Finder{domain: domain, files: make(map[fileID]*fileResult)}
}

// Text finds the host names in a text. The name is that of a file or of a key of a ConfigMap; its ending tells how the
// text is read, and where it does not, the text itself. References come in the order of their lines, the same host of
// one line once.
func (f *Finder) Text(name, text string) []Reference {
	r := f.scanText(Origin{Kind: Text}, name, text)
	return settle(r.found, r.upstreams)
}

// Spec finds the host names that the init, ordinary and ephemeral containers of a pod use. Values are taken as the
// kubelet makes them (pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables): envFrom first, later sources over
// earlier ones, env over both, $(VAR) replaced by what stands before it and $$ by a dollar sign. A variable whose value
// the spec does not tell (Secrets, most fields of the pod, variables of Services) makes the name that it is part of
// unknown, not the rest of the text.
//
// The function configMap returns a ConfigMap of the pod's namespace, or nil where it is absent or could not be read. Of
// mounted ConfigMaps only the keys that a container sees are read (items, subPath). Names of hostAliases and the pod's
// own spec.hostname never reach a DNS server and are left out.
//
// The order follows the spec; one host with one port stands once for each place. The result is for the whole pod, nil
// where there is no spec.
func (f *Finder) Spec(spec *corev1.PodSpec, namespace string, configMap func(name string) *corev1.ConfigMap) []Reference {
	if spec == nil {
		return nil
	}
	if configMap == nil {
		configMap = func(string) *corev1.ConfigMap { return nil }
	}
	var all []found
	var upstreams []string
	for _, c := range containers(spec) {
		all = append(all, f.container(c, spec, namespace, configMap)...)
	}
	for _, m := range mountedFiles(spec, configMap) {
		r := f.file(m, namespace)
		upstreams = append(upstreams, r.upstreams...)
		for _, x := range r.found {
			x.Origin.Container = m.container
			all = append(all, x)
		}
	}
	own := HostAliases(spec)
	if spec.Hostname != "" {
		own = append(own, spec.Hostname)
	}
	return Without(settle(all, upstreams), own)
}

// ConfigMaps returns the names of the ConfigMaps that Spec would ask for, sorted, each once: those that containers
// mount or take variables from.
func ConfigMaps(spec *corev1.PodSpec) []string {
	if spec == nil {
		return nil
	}
	var names []string
	ask := func(name string) *corev1.ConfigMap {
		names = append(names, name)
		return nil
	}
	for _, c := range containers(spec) {
		environment(c, spec, "", ask)
	}
	mountedFiles(spec, ask)
	slices.Sort(names)
	return slices.Compact(names)
}

// settle takes out the names that are upstream blocks of nginx and copies the rest.
func settle(all []found, upstreams []string) []Reference {
	var refs []Reference
	for _, x := range all {
		if x.pass && slices.Contains(upstreams, x.Host) {
			continue
		}
		refs = append(refs, x.Reference)
	}
	return refs
}

// containers returns every container of a pod; the fields of an ephemeral one are those of any other.
func containers(spec *corev1.PodSpec) []*corev1.Container {
	var cs []*corev1.Container
	for i := range spec.InitContainers {
		cs = append(cs, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		cs = append(cs, &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		cs = append(cs, &c)
	}
	return cs
}

func (f *Finder) container(c *corev1.Container, spec *corev1.PodSpec, namespace string, configMap func(string) *corev1.ConfigMap) []found {
	var all []found
	env := environment(c, spec, namespace, configMap)
	for _, v := range env.vars {
		s := newScanner(f.domain, Origin{Kind: Env, Container: c.Name})
		if v.configMap != "" {
			s.origin.Namespace, s.origin.ConfigMap, s.origin.DataKey = namespace, v.configMap, v.dataKey
		}
		s.variable(v.name, v.value)
		all = append(all, s.found...)
	}
	if len(c.Command) > 0 || len(c.Args) > 0 {
		s := newScanner(f.domain, Origin{Container: c.Name})
		words := make([]word, 0, len(c.Command)+len(c.Args))
		for _, w := range c.Command {
			words = append(words, word{text: env.expand(w), kind: Command})
		}
		for _, w := range c.Args {
			words = append(words, word{text: env.expand(w), kind: Arg})
		}
		s.argv(words, 0)
		all = append(all, s.found...)
	}
	return all
}

// variable is one environment variable as the container will see it; holes in the value stand for what is not known.
type variable struct {
	name, value string
	// configMap and dataKey tell where the value comes from; empty for a literal.
	configMap, dataKey string
}

type envs struct {
	vars  []variable
	index map[string]int
}

func (e *envs) set(v variable) {
	if i, ok := e.index[v.name]; ok {
		e.vars[i] = v
		return
	}
	e.index[v.name] = len(e.vars)
	e.vars = append(e.vars, v)
}

// environment computes the variables of a container. Variables of Services, which the kubelet adds behind these, hold
// addresses and are not known here: a $(VAR) that names one stays as it is, and so makes no host name.
func environment(c *corev1.Container, spec *corev1.PodSpec, namespace string, configMap func(string) *corev1.ConfigMap) *envs {
	e := &envs{index: make(map[string]int)}
	for _, from := range c.EnvFrom {
		// A Secret could set the same names over those of a ConfigMap before it. Its keys are not known; the value of
		// the ConfigMap is the best guess.
		if from.ConfigMapRef == nil {
			continue
		}
		cm := configMap(from.ConfigMapRef.Name)
		if cm == nil {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(cm.Data)) {
			e.set(variable{name: from.Prefix + k, value: cm.Data[k], configMap: from.ConfigMapRef.Name, dataKey: k})
		}
	}
	for i := range c.Env {
		v := &c.Env[i]
		switch {
		case v.Value != "":
			e.set(variable{name: v.Name, value: e.expand(v.Value)})
		case v.ValueFrom == nil:
			e.set(variable{name: v.Name})
		case v.ValueFrom.ConfigMapKeyRef != nil:
			ref := v.ValueFrom.ConfigMapKeyRef
			cm := configMap(ref.Name)
			if cm == nil {
				e.set(variable{name: v.Name, value: unknown})
				continue
			}
			value, ok := cm.Data[ref.Key]
			if !ok {
				continue // an optional key leaves the variable as it was, a required one keeps the container from starting
			}
			e.set(variable{name: v.Name, value: value, configMap: ref.Name, dataKey: ref.Key})
		case v.ValueFrom.FieldRef != nil:
			value := unknown
			switch v.ValueFrom.FieldRef.FieldPath {
			case "metadata.namespace":
				value = namespace
			case "spec.serviceAccountName":
				if spec.ServiceAccountName != "" {
					value = spec.ServiceAccountName
				}
			}
			e.set(variable{name: v.Name, value: value})
		default:
			e.set(variable{name: v.Name, value: unknown})
		}
	}
	return e
}

// expand replaces $(NAME) by the value of NAME and $$ by $, as k8s.io/kubernetes third_party/forked/golang/expansion
// does; a reference to an unknown name stays as it is. The result is cut at MaxText, for variables that double each
// other.
func (e *envs) expand(in string) string {
	if !strings.Contains(in, "$") {
		return in
	}
	var b strings.Builder
	closed := true // some reference ahead is complete
	for in != "" && b.Len() < MaxText {
		i := strings.IndexByte(in, '$')
		if i < 0 || i+1 == len(in) {
			b.WriteString(in)
			break
		}
		b.WriteString(in[:i])
		in = in[i:]
		switch in[1] {
		case '$':
			b.WriteByte('$')
			in = in[2:]
		case '(':
			end := -1
			if closed {
				end = strings.IndexByte(in, ')')
			}
			if end < 0 {
				// No later reference can be complete either, but $$ can still follow.
				closed = false
				b.WriteString("$(")
				in = in[2:]
				continue
			}
			if at, ok := e.index[in[2:end]]; ok {
				b.WriteString(e.vars[at].value)
			} else {
				b.WriteString(in[:end+1])
			}
			in = in[end+1:]
		default:
			b.WriteString(in[:2])
			in = in[2:]
		}
	}
	s := b.String()
	return s[:min(len(s), MaxText)]
}

// mounted is a key of a ConfigMap that a container sees as a file.
type mounted struct {
	configMap *corev1.ConfigMap
	name      string
	// key is that of the ConfigMap, file the path below the mount.
	key, file string
	container string
}

// mountedFiles lists the files in the order of the mounts, each key of a ConfigMap once.
func mountedFiles(spec *corev1.PodSpec, configMap func(string) *corev1.ConfigMap) []mounted {
	volumes := make(map[string]*corev1.Volume, len(spec.Volumes))
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = &spec.Volumes[i]
	}
	var files []mounted
	type dataKey struct{ configMap, key string }
	seen := make(map[dataKey]bool)
	add := func(container string, mount *corev1.VolumeMount, name string, items []corev1.KeyToPath) {
		cm := configMap(name)
		if cm == nil {
			return
		}
		take := func(key, file string) {
			if _, ok := cm.Data[key]; ok && visible(mount, file) && !seen[dataKey{name, key}] {
				seen[dataKey{name, key}] = true
				files = append(files, mounted{cm, name, key, file, container})
			}
		}
		if len(items) == 0 {
			for _, k := range slices.Sorted(maps.Keys(cm.Data)) {
				take(k, k)
			}
			return
		}
		for _, it := range items {
			take(it.Key, it.Path)
		}
	}
	for _, c := range containers(spec) {
		for i := range c.VolumeMounts {
			mount := &c.VolumeMounts[i]
			v := volumes[mount.Name]
			if v == nil {
				continue
			}
			if v.ConfigMap != nil {
				add(c.Name, mount, v.ConfigMap.Name, v.ConfigMap.Items)
			}
			if v.Projected != nil {
				for _, src := range v.Projected.Sources {
					if src.ConfigMap != nil {
						add(c.Name, mount, src.ConfigMap.Name, src.ConfigMap.Items)
					}
				}
			}
		}
	}
	return files
}

// visible tells whether a mount shows the file of its volume. A subPathExpr is taken to show everything.
func visible(mount *corev1.VolumeMount, file string) bool {
	if mount.SubPath == "" {
		return true
	}
	sub, file := path.Clean(mount.SubPath), path.Clean(file)
	return sub == "." || file == sub || strings.HasPrefix(file, sub+"/")
}

func (f *Finder) file(m mounted, namespace string) *fileResult {
	id := fileID{namespace, m.name, m.key, m.file}
	if r, ok := f.files[id]; ok {
		return r
	}
	// The file keeps the meaning of its own name: a key "config" mounted as nginx.conf is read as the latter.
	r := f.scanText(Origin{Kind: ConfigMap, Namespace: namespace, ConfigMap: m.name, DataKey: m.key}, m.file, m.configMap.Data[m.key])
	f.files[id] = r
	return r
}

func (f *Finder) scanText(o Origin, name, text string) *fileResult {
	s := newScanner(f.domain, o)
	s.document(name, text)
	return &fileResult{found: s.found, upstreams: s.upstreams}
}
