package cluster

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// Places of a Corefile in a container.
const (
	// defaultDir is where every distribution mounts the Corefile.
	defaultDir = "/etc/coredns"
	// customDir is where AKS, k3s and DigitalOcean mount ConfigMap coredns-custom.
	customDir = "/etc/coredns/custom"
	// nodeCacheBase is the default of -basecorefile of node-cache (kubernetes/dns cmd/node-cache/main.go). node-cache
	// writes the file that -conf names from it.
	nodeCacheBase = "/etc/coredns/Corefile.base"
)

// UnknownValue stands in Expanded for the value of an environment variable that is set and not known, so that a zone or
// an address made of it is nobody's (RFC 2606: "invalid" is no domain).
const UnknownValue = "unknown.invalid"

// corefileOf finds the Corefile of a container; nil if it has none that is known.
func corefileOf(impl Implementation, c *container) *Corefile {
	cf := &Corefile{Mounts: c.mounts, Opaque: c.opaque, Env: c.env, EnvUnknown: c.envUnknown, Dir: "/"}
	if c.spec.WorkingDir != "" {
		cf.Dir = path.Join("/", c.spec.WorkingDir)
	}
	for _, m := range c.spec.VolumeMounts {
		cf.roots = append(cf.roots, path.Join("/", m.MountPath))
	}
	slices.Sort(cf.roots)
	for _, p := range c.corefilePaths(impl, cf.Dir) {
		m, ok := c.mounts[p]
		if !ok {
			continue
		}
		cf.Object, cf.Key, cf.Path = m.Object, m.Key, p
		cf.read(m.Data)
		return cf
	}
	return nil
}

// corefilePaths are the paths at which a container may have its Corefile, the most likely first.
func (c *container) corefilePaths(impl Implementation, dir string) []string {
	var list []string
	add := func(p string) {
		if !path.IsAbs(p) {
			p = path.Join(dir, p)
		}
		list = append(list, path.Clean(p))
	}
	if impl == NodeLocalDNS {
		if p, ok := flagValue(c.words, "basecorefile"); ok {
			add(p)
		}
		add(nodeCacheBase)
	}
	if p, ok := flagValue(c.words, "conf"); ok {
		add(p)
	} else {
		// caddy reads Corefile in the working directory (coremain/run.go, defaultLoader).
		add("Corefile")
	}
	if impl == NodeLocalDNS {
		// Without -conf's target in a volume, what is mounted is what the file is made from.
		add(path.Join(defaultDir, "Corefile"))
	}
	return list
}

// textCorefile is a Corefile of which only the text is known, and ConfigMap coredns-custom if there is one.
func textCorefile(maps configMaps, object finding.Object, key, data string) *Corefile {
	cf := &Corefile{
		Object: object, Key: key, Path: path.Join(defaultDir, "Corefile"), Dir: "/",
		Mounts: map[string]Mount{}, Opaque: map[string]string{}, Env: map[string]string{}, bare: true,
	}
	addDir := func(dir string, o finding.Object) {
		cm := maps.byName[o]
		if cm == nil {
			return
		}
		cf.roots = append(cf.roots, dir)
		for _, k := range sortedKeys(cm.Data) {
			if len(cf.Mounts) < maxMounts {
				cf.Mounts[path.Join(dir, k)] = Mount{Object: o, Key: k, Data: cm.Data[k]}
			}
		}
	}
	if object.Kind == "ConfigMap" {
		addDir(defaultDir, object)
	}
	custom := configMapObject("kube-system", "coredns-custom")
	if object.Kind == "ConfigMap" {
		custom.Namespace = object.Namespace
	}
	addDir(customDir, custom)
	cf.Mounts[cf.Path] = Mount{Object: object, Key: key, Data: data}
	slices.Sort(cf.roots)
	cf.read(data)
	return cf
}

// read parses and expands the main text.
func (c *Corefile) read(data string) {
	c.File, c.Err = corefile.Parse(sourceName(c.Object, c.Key), []byte(data))
	c.Expanded, c.ExpandErr = corefile.Expand(c.File, corefile.Options{Path: c.Path, Import: c.Import, Env: c.Getenv})
}

// sourceName names a text as finding.Position does: a path, or "ConfigMap namespace/name key".
func sourceName(o finding.Object, key string) string {
	if o.Kind == "File" {
		return o.Name
	}
	return o.String() + " " + key
}

// Import returns the mounted files that match the pattern of an import, in the order of their paths, as
// corefile.Options wants them. Pattern is an absolute path with at most one * and one ? (caddyfile/parse.go). Where
// nothing matches and the place is not known, the error is corefile.ErrNotRead.
func (c *Corefile) Import(pattern string) ([]corefile.Source, error) {
	var list []corefile.Source
	for _, p := range sortedKeys(c.Mounts) {
		ok, err := path.Match(pattern, p)
		if errors.Is(err, path.ErrBadPattern) {
			return nil, nil // filepath.Glob finds nothing
		}
		if ok {
			m := c.Mounts[p]
			list = append(list, corefile.Source{Name: sourceName(m.Object, m.Key), Path: p, Data: []byte(m.Data)})
		}
	}
	if len(list) == 0 {
		if why := c.unseen(pattern); why != "" {
			return nil, fmt.Errorf("%s: %s: %w", pattern, why, corefile.ErrNotRead)
		}
	}
	return list, nil
}

// unseen says why files that match a pattern may exist although none is mounted; "" if none can.
func (c *Corefile) unseen(pattern string) string {
	for _, p := range sortedKeys(c.Opaque) {
		// The pattern reaches into the opaque directory, or the opaque file matches it.
		if under(pattern, p) {
			return c.Opaque[p]
		}
		if ok, _ := path.Match(pattern, p); ok {
			return c.Opaque[p]
		}
	}
	rooted := slices.ContainsFunc(c.roots, func(r string) bool { return under(pattern, r) })
	switch {
	case rooted:
		return ""
	case c.bare:
		return "only the Corefile is known, not the files beside it"
	case !strings.ContainsAny(pattern, "*?["):
		// Images of CoreDNS hold no configuration, but one of somebody's own may.
		return "it may be in the image"
	}
	return ""
}

func under(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// Getenv returns the value of an environment variable of the server and whether it is set. A value that is not known is
// UnknownValue.
func (c *Corefile) Getenv(name string) (string, bool) {
	if v, ok := c.Env[name]; ok {
		return v, true
	}
	if c.bare || slices.Contains(c.EnvUnknown, name) {
		return UnknownValue, true
	}
	return "", false
}
