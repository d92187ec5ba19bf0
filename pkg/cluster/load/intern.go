package load

import (
	"crypto/sha256"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// interner makes equal strings, maps and pod specifications one value in memory. What it returns is shared and must not
// be changed. One goroutine uses it.
type interner struct {
	strings map[string]string
	maps    map[string]map[string]string
	specs   map[[sha256.Size]byte]*corev1.PodSpec
	yes, no *bool
	names   map[string]*string
	// single are lists of one address, by the address.
	single map[string][]string
	refs   map[corev1.ObjectReference]*corev1.ObjectReference
	buf    []byte
	keys   []string
}

func newInterner() *interner {
	yes, no := true, false
	return &interner{
		strings: map[string]string{},
		maps:    map[string]map[string]string{},
		specs:   map[[sha256.Size]byte]*corev1.PodSpec{},
		names:   map[string]*string{},
		single:  map[string][]string{},
		refs:    map[corev1.ObjectReference]*corev1.ObjectReference{},
		yes:     &yes,
		no:      &no,
	}
}

func (in *interner) string(s string) string {
	if s == "" {
		return ""
	}
	if t, ok := in.strings[s]; ok {
		return t
	}
	in.strings[s] = s
	return s
}

func (in *interner) bool(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return in.yes
	}
	return in.no
}

func (in *interner) pointer(s *string) *string {
	if s == nil {
		return nil
	}
	if p, ok := in.names[*s]; ok {
		return p
	}
	v := in.string(*s)
	in.names[v] = &v
	return &v
}

// addresses returns the one list that equals a, if it holds a single address: a pod stands in the slices of every Service
// that selects it.
func (in *interner) addresses(a []string) []string {
	if len(a) != 1 {
		return a
	}
	if shared, ok := in.single[a[0]]; ok {
		return shared
	}
	a = slices.Clip(a)
	in.single[a[0]] = a
	return a
}

// target returns the one reference that equals r.
func (in *interner) target(r *corev1.ObjectReference) *corev1.ObjectReference {
	if r == nil {
		return nil
	}
	if shared, ok := in.refs[*r]; ok {
		return shared
	}
	r.Kind, r.Namespace = in.string(r.Kind), in.string(r.Namespace)
	in.refs[*r] = r
	return r
}

// labels returns the one map that equals m; nil for an empty one.
func (in *interner) labels(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	in.keys = slices.Sorted(maps.Keys(m))
	b := in.buf[:0]
	for _, k := range in.keys {
		// Lengths come first, so that no two maps have one key.
		b = appendText(appendText(b, k), m[k])
	}
	in.buf = b
	if shared, ok := in.maps[string(b)]; ok {
		return shared
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[in.string(k)] = in.string(v)
	}
	in.maps[string(b)] = out
	return out
}

func appendText(b []byte, s string) []byte {
	n := len(s)
	return append(append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), s...)
}

// spec returns the one specification that equals s. Specifications are told apart by a hash of their protobuf form,
// which sorts maps; a cryptographic one, because a hostile cluster could choose specifications that collide otherwise.
func (in *interner) spec(s *corev1.PodSpec) *corev1.PodSpec {
	n := s.Size()
	in.buf = slices.Grow(in.buf[:0], n)[:n]
	if _, err := s.MarshalToSizedBuffer(in.buf); err != nil {
		// The generated code has no way to fail into a buffer of the right size. Without a hash s is merely not shared.
		return s
	}
	key := sha256.Sum256(in.buf)
	if shared, ok := in.specs[key]; ok {
		return shared
	}
	// Reading the protobuf form makes what came from JSON equal to what came from a server. The copy after it has slices
	// without spare room.
	read := &corev1.PodSpec{}
	if err := read.Unmarshal(in.buf); err != nil {
		return s
	}
	out := read.DeepCopy()
	in.containers(out.InitContainers)
	in.containers(out.Containers)
	in.specs[key] = out
	return out
}

func (in *interner) containers(cs []corev1.Container) {
	for i := range cs {
		c := &cs[i]
		c.Name, c.Image = in.string(c.Name), in.string(c.Image)
		for j := range c.Env {
			c.Env[j].Name, c.Env[j].Value = in.string(c.Env[j].Name), in.string(c.Env[j].Value)
		}
	}
}
