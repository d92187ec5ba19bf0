package diagnose

import (
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// View is a snapshot with what is derived from it, each part made when it is first asked for. It is not safe for use by
// several goroutines.
type View struct {
	Snapshot *cluster.Snapshot

	facts     *cluster.Facts
	index     *cluster.Index
	workloads []*cluster.Workload
	memo      map[any]any
}

// NewView returns a view of s.
func NewView(s *cluster.Snapshot) *View { return &View{Snapshot: s, memo: map[any]any{}} }

// Facts are those of cluster.Derive.
func (v *View) Facts() *cluster.Facts {
	if v.facts == nil {
		v.facts = cluster.Derive(v.Snapshot)
	}
	return v.facts
}

// Index finds objects by name.
func (v *View) Index() *cluster.Index {
	if v.index == nil {
		v.index = cluster.NewIndex(v.Snapshot)
	}
	return v.index
}

// Workloads are those of the snapshot, in a stable order.
func (v *View) Workloads() []*cluster.Workload {
	if v.workloads == nil {
		v.workloads = v.Snapshot.Workloads()
	}
	return v.workloads
}

// Memo returns what derive returned for key the first time, so that analyzers which read the same inputs share work. Key
// is a value of a type that only its user has, as with context.WithValue.
func Memo[T any](v *View, key any, derive func(*View) T) T {
	if got, ok := v.memo[key]; ok {
		return got.(T)
	}
	t := derive(v)
	v.memo[key] = t
	return t
}

// views holds one View for each set of inputs.
type views struct {
	of    *cluster.Snapshot
	byKey map[string]*View
	// ignore are the values of IgnoreAnnotation by object; pods of one workload may differ.
	ignore map[finding.Object][]string
}

func newViews(s *cluster.Snapshot) *views { return &views{of: s, byKey: map[string]*View{}} }

func (vs *views) get(inputs []cluster.Resource) *View {
	words := make([]string, len(inputs))
	for i, r := range inputs {
		words[i] = string(r)
	}
	slices.Sort(words)
	key := strings.Join(slices.Compact(words), " ")
	v := vs.byKey[key]
	if v == nil {
		v = NewView(vs.of.Only(inputs...))
		vs.byKey[key] = v
	}
	return v
}

// IgnoreAnnotation suppresses findings about the object that carries it: codes or prefixes of codes, separated by
// commas, or "*". On a Namespace it holds for every object in it.
const IgnoreAnnotation = "dnsmesh.io/ignore"

// ignored tells whether an annotation of the object, or of its namespace, names the code.
func (vs *views) ignored(f finding.Finding) bool {
	if vs.ignore == nil {
		vs.ignore = map[finding.Object][]string{}
		add := func(o finding.Object, value string) {
			if value != "" && !slices.Contains(vs.ignore[o], value) {
				vs.ignore[o] = append(vs.ignore[o], value)
			}
		}
		for _, n := range vs.of.Namespaces {
			add(finding.Object{Kind: "Namespace", Name: n.Name}, n.Annotations[IgnoreAnnotation])
		}
		for _, s := range vs.of.Services {
			add(finding.Object{Kind: "Service", Namespace: s.Namespace, Name: s.Name}, s.Annotations[IgnoreAnnotation])
		}
		for _, c := range vs.of.ConfigMaps {
			add(finding.Object{Kind: "ConfigMap", Namespace: c.Namespace, Name: c.Name}, c.Annotations[IgnoreAnnotation])
		}
		for _, n := range vs.of.Nodes {
			add(finding.Object{Kind: "Node", Name: n.Name}, n.Annotations[IgnoreAnnotation])
		}
		for _, p := range vs.of.Pods {
			add(p.Owner, p.Ignore)
		}
		for _, w := range vs.of.Templates {
			add(w.Object, w.Ignore)
		}
	}
	match := func(values []string) bool {
		for _, list := range values {
			for word := range strings.SplitSeq(list, ",") {
				word = strings.ToUpper(strings.TrimSpace(word))
				if word == "*" || word != "" && strings.HasPrefix(f.Code, word) {
					return true
				}
			}
		}
		return false
	}
	if match(vs.ignore[f.Object]) {
		return true
	}
	return f.Object.Namespace != "" && match(vs.ignore[finding.Object{Kind: "Namespace", Name: f.Object.Namespace}])
}

// ClusterSummary says what was judged.
type ClusterSummary struct {
	Name          string `json:"name,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// Domain is the cluster domain without final dot.
	Domain string `json:"domain"`
	// DNS describes the server that pods ask; nil where none was found.
	DNS *DNSSummary `json:"dns,omitempty"`
	// NodeLocal tells that a cache on each node stands in front of it.
	NodeLocal    bool           `json:"nodeLocalDNS,omitempty"`
	NodeServer   string         `json:"nodeServer,omitempty"`
	Distribution string         `json:"distribution,omitempty"`
	CNI          string         `json:"cni,omitempty"`
	Objects      map[string]int `json:"objects"`
}

// DNSSummary describes a DNS server.
type DNSSummary struct {
	Implementation string `json:"implementation"`
	Version        string `json:"version,omitempty"`
	// Assumed tells that no object shows the implementation.
	Assumed bool `json:"assumed,omitempty"`
	// Object is the workload of the server, or what holds its Corefile.
	Object *finding.Object `json:"object,omitempty"`
	Ready  int             `json:"ready"`
	Total  int             `json:"total"`
}

func summarise(v *View) ClusterSummary {
	f, s := v.Facts(), v.Snapshot
	c := ClusterSummary{
		Name: s.Name, ServerVersion: s.ServerVersion,
		Domain:     strings.TrimSuffix(f.Domain, "."),
		NodeLocal:  f.NodeLocal != nil,
		NodeServer: f.NodeServer,
		CNI:        joinVersion(f.CNI, f.CNIVersion),
		Objects:    map[string]int{},
	}
	c.Distribution = joinVersion(f.Distribution.Name, f.Distribution.Version)
	if d := f.DNS; d != nil {
		c.DNS = &DNSSummary{
			Implementation: string(d.Implementation), Version: d.Version, Assumed: d.Assumed,
			Ready: d.Ready, Total: d.Total,
		}
		switch {
		case d.Workload != nil:
			o := d.Workload.Object
			c.DNS.Object = &o
		case d.Corefile != nil:
			o := d.Corefile.Object
			c.DNS.Object = &o
		}
	}
	for r, n := range map[cluster.Resource]int{
		cluster.Namespaces: len(s.Namespaces), cluster.Services: len(s.Services),
		cluster.EndpointSlices: len(s.EndpointSlices), cluster.Pods: len(s.Pods),
		cluster.ConfigMaps: len(s.ConfigMaps), cluster.Nodes: len(s.Nodes),
	} {
		if _, absent := s.Absent[r]; !absent {
			c.Objects[string(r)] = n
		}
	}
	if n := len(s.Templates); n > 0 {
		c.Objects["templates"] = n
	}
	return c
}

func joinVersion(name, version string) string {
	if name == "" || version == "" {
		return name
	}
	return name + " " + version
}
