// Package trace follows one host name from a pod to its end: the resolv.conf that the pod has, every query that the stub
// resolvers send because of it, what the cluster's DNS server answers and which part of it did, what each resolver makes
// of that, and the same once more after a fix.
//
// Answers come from the judge of package rehearse where the cluster runs CoreDNS and its Corefile is known, and else from
// the models of package cluster. A Trace says which.
package trace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// The version and kind of the document that a Trace is written as.
const (
	APIVersion = "dnsmesh.io/v1alpha1"
	Kind       = "Trace"
)

// Trace is the course of one look-up with each resolver. docs/trace.schema.json is its contract in JSON.
type Trace struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Cluster is the kubeconfig context, or the path of the files.
	Cluster string `json:"cluster,omitempty"`
	// Type is the type of record that was asked for; empty for addresses, A and AAAA.
	Type       string     `json:"type,omitempty"`
	Client     Client     `json:"client"`
	ResolvConf ResolvConf `json:"resolvConf"`
	Server     Server     `json:"server"`
	// Notes say what the answers do not take into account, as clauses.
	Notes []string `json:"notes"`
	Walk  Walk     `json:"walk"`
	// Fix is nil where the name needs none, or none is known.
	Fix *Fix `json:"fix,omitempty"`
}

// Client is who asks.
type Client struct {
	Namespace string `json:"namespace"`
	// Object is the workload whose specification was taken, or the file with its resolv.conf; nil for a pod of the
	// namespace without settings of its own.
	Object *finding.Object `json:"object,omitempty"`
	Policy string          `json:"dnsPolicy,omitempty"`
	// AsksCluster tells that its queries go to the cluster's DNS server.
	AsksCluster bool `json:"asksClusterServer"`
}

// ResolvConf is the configuration of the stub resolvers.
type ResolvConf struct {
	Nameservers []string `json:"nameservers"`
	// Search holds absolute names; Unknown stands in it for the domains that a pod inherits from a node whose
	// resolv.conf is not known.
	Search  []string `json:"search"`
	NDots   int      `json:"ndots"`
	Options []string `json:"options"`
	// Unknown are the parts that come from such a node: "nameservers", "search", "options".
	Unknown []string `json:"unknown"`
}

// NotKnown stands for what is not known of a query.
const NotKnown = "not known"

// UnknownSearch stands for search domains that are not known.
const UnknownSearch = "(search domains of the node)"

// Server is the DNS server, and who speaks for it.
type Server struct {
	Implementation string `json:"implementation"`
	Version        string `json:"version,omitempty"`
	// Judge is "coredns" for answers of CoreDNS itself and "model" for those of a model.
	Judge string `json:"judge"`
	// Text says the same for people: "judged by CoreDNS 1.15.0 in the plugin order of 1.11.3".
	Text string `json:"text"`
}

// The values of Server.Judge.
const (
	ByCoreDNS = "coredns"
	ByModel   = "model"
)

// Walk is one name, looked up with each resolver.
type Walk struct {
	Name string `json:"name"`
	// Queries are those that at least one resolver sends, each once, in the order in which every one of them sends its
	// own. Both types of address are one query here.
	Queries   []Query  `json:"queries"`
	Resolvers []Result `json:"resolvers"`
}

// Query is one name that is asked for, with the answer.
type Query struct {
	// Number counts from 1.
	Number int `json:"number"`
	// Name is absolute; empty where the search domain is not known or gives no valid name: then nobody was asked.
	Name string `json:"name"`
	// Domain is the search domain that was appended; empty for the name as it was typed.
	Domain string `json:"searchDomain,omitempty"`
	// Known is false where it is not known whether the name leads to an address. Replies are then what is assumed.
	Known bool `json:"known"`
	// Block is the key of the server block that took the query, Plugin the plugin that answered. Both are empty where a
	// model spoke.
	Block  string `json:"block,omitempty"`
	Plugin string `json:"plugin,omitempty"`
	// Upstream are the servers to which the query, or what became of it, was sent on.
	Upstream []string `json:"upstream"`
	Replies  []Reply  `json:"replies"`
	// Aliases are the names that the answer leads through, from the one behind the name itself to the last.
	Aliases   []string `json:"aliases"`
	Addresses []string `json:"addresses"`
	// Object is what the name stands for in the cluster: a Service or a namespace that exists.
	Object *finding.Object `json:"object,omitempty"`
	// Text is the answer in short: "NXDOMAIN", "NODATA", addresses.
	Text string `json:"text"`
	// Note says why, as a clause.
	Note string `json:"note,omitempty"`
	// Actions are what each resolver that sends the query does with the answer, by its name: "next", "take", "stop" or
	// "leave" (it leaves the search list).
	Actions map[string]string `json:"actions"`

	varies bool
}

// Reply is the answer to a query of one type.
type Reply struct {
	Type  string `json:"type"`
	Rcode string `json:"rcode"`
	// Records are those of the answer section as in a zone file. A model has none.
	Records []string `json:"records"`
}

// Result is how the look-up ends with one resolver.
type Result struct {
	// Resolver is "glibc", "musl" or "go".
	Resolver string `json:"resolver"`
	// Verdict is "resolves", "fails" or "depends": on answers that are not known.
	Verdict string `json:"verdict"`
	// Query is the number of the query whose answer is taken, or that ends the look-up; 0 if there is none.
	Query     int      `json:"query,omitempty"`
	Addresses []string `json:"addresses"`
	// Text says it for people.
	Text string `json:"text"`
	// Assumed is what the verdict "fails" takes for granted, as a clause; empty where it is certain.
	Assumed string `json:"assumed,omitempty"`
	// Code is that of the check which describes the fault, if there is one.
	Code string `json:"code,omitempty"`
}

// The values of Result.Verdict.
const (
	Resolves = "resolves"
	Fails    = "fails"
	Depends  = "depends"
)

// Fix is a change that mends the look-up, with the walk after it.
type Fix struct {
	// Summary is a verb phrase.
	Summary string `json:"summary"`
	// Manifest is YAML ready for kubectl apply -f -, or empty where the name is to be changed.
	Manifest string `json:"manifest,omitempty"`
	Walk     Walk   `json:"walk"`
}

// Failed tells whether the name does not resolve for at least one resolver.
func (t *Trace) Failed() bool {
	return slices.ContainsFunc(t.Walk.Resolvers, func(r Result) bool { return r.Verdict == Fails })
}

// Options say what is traced.
type Options struct {
	Snapshot *cluster.Snapshot
	// Name is the host as a program would use it.
	Name string
	// Namespace is that of the client. Where it is empty, it is that of the resolv.conf in the snapshot, if it holds the
	// one of a pod, and else DefaultNamespace.
	Namespace, DefaultNamespace string
	// From is the workload that asks, without its namespace; the zero value is a pod without settings of its own.
	From finding.Object
	// Policy replaces the dnsPolicy of the client, if it is not empty.
	Policy resolve.Policy
	// Type is the type of record; dns.TypeNone stands for addresses, as getaddrinfo asks with AF_UNSPEC.
	Type uint16
	// Resolvers are at least one.
	Resolvers []resolve.Library
}

// Run traces a name. An error says why there is no trace; what merely makes it less certain is in Trace.Notes.
func Run(ctx context.Context, o Options) (*Trace, error) {
	if _, err := resolve.Absolute(o.Name); err != nil {
		return nil, fmt.Errorf("%q is no host name: %w", o.Name, err)
	}
	o.Name = strings.ToLower(o.Name)
	facts := cluster.Derive(o.Snapshot)
	if facts.DNS == nil {
		return nil, errors.New("no DNS server was found in what was read")
	}
	r := &run{Options: o, facts: facts, index: cluster.NewIndex(o.Snapshot)}
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	r.config = client.config
	t := &Trace{
		APIVersion: APIVersion, Kind: Kind, Cluster: o.Snapshot.Name, Client: client.Client,
		ResolvConf: resolvConf(client.config), Notes: []string{},
	}
	if o.Type != dns.TypeNone {
		t.Type = dns.TypeToString[o.Type]
	}
	if len(client.config.Nameservers) > 1 {
		t.Notes = append(t.Notes, "all nameservers are taken to answer as the cluster's DNS server does")
	}
	s := newServer(ctx, o.Snapshot, facts, r.index, client)
	walk, err := r.walk(ctx, s, o.Name)
	if err != nil && s.judge != nil {
		// The judge is as good as gone; the models never fail.
		s.useModel(ctx, err)
		walk, err = r.walk(ctx, s, o.Name)
	}
	defer func() { s.stop(ctx) }()
	if err != nil {
		return nil, err
	}
	t.Walk, t.Server = walk, s.description()
	t.Notes = append(t.Notes, s.notes...)
	if t.Fix, err = r.fix(ctx, s, client); err != nil {
		t.Notes = append(t.Notes, "a fix is not shown, because the walk after it did not end: "+err.Error())
	}
	return t, nil
}

// run is the work of Run.
type run struct {
	Options
	facts  *cluster.Facts
	index  *cluster.Index
	config resolve.Config
	// results are those of the walk of Options.Name, steps what was answered to it.
	results []resolve.Result
	queries []Query
}

// client is who asks, with the configuration that its resolver reads.
type client struct {
	Client
	config resolve.Config
	// address is that of the pod, if one was named.
	address netip.Addr
}

func (r *run) client() (client, error) {
	var c client
	if text := r.podText(); text != nil {
		cfg, _ := resolve.ParseConfig(text.Name, []byte(text.Data))
		c.Namespace, c.AsksCluster, c.config = r.textNamespace(text), true, cfg
		c.Object = &finding.Object{Kind: "File", Name: text.Name}
		return c, nil
	}
	c.Namespace = r.Namespace
	if c.Namespace == "" {
		c.Namespace = r.DefaultNamespace
	}
	if c.Namespace == "" {
		c.Namespace = corev1.NamespaceDefault
	}
	if r.index.NamespacesComplete() && !r.index.HasNamespace(c.Namespace) {
		return c, fmt.Errorf("there is no namespace %q", c.Namespace)
	}
	w := &cluster.Workload{Object: finding.Object{Kind: "Pod", Namespace: c.Namespace}, Spec: &corev1.PodSpec{}}
	if r.From != (finding.Object{}) {
		var err error
		if w, c.address, err = r.workload(c.Namespace); err != nil {
			return c, err
		}
		c.Object = &finding.Object{Kind: r.From.Kind, Namespace: c.Namespace, Name: r.From.Name}
	}
	if r.Policy != "" {
		spec := *w.Spec
		spec.DNSPolicy = corev1.DNSPolicy(r.Policy)
		w = &cluster.Workload{Object: w.Object, Spec: &spec}
	}
	c.Policy = string(w.Spec.DNSPolicy)
	if c.Policy == "" {
		c.Policy = string(resolve.ClusterFirst)
	}
	c.config, c.AsksCluster = cluster.PodConfig(r.Snapshot, r.facts, w)
	if resolve.Policy(c.Policy) == resolve.PolicyNone && len(c.config.Nameservers) == 0 {
		return c, errors.New("a pod with the policy None needs nameservers in its dnsConfig, and this one has none")
	}
	return c, nil
}

// podText is the resolv.conf of a pod, where the snapshot has one and nothing says that another client is meant.
func (r *run) podText() *cluster.Text {
	if r.From != (finding.Object{}) || r.Policy != "" {
		return nil
	}
	i := slices.IndexFunc(r.Snapshot.Texts, func(t *cluster.Text) bool { return t.Kind == cluster.TextPodResolvConf })
	if i < 0 || r.Namespace != "" && r.textNamespace(r.Snapshot.Texts[i]) != r.Namespace {
		return nil
	}
	return r.Snapshot.Texts[i]
}

// textNamespace reads the namespace out of a search list: NAMESPACE.svc.DOMAIN.
func (r *run) textNamespace(t *cluster.Text) string {
	cfg, _ := resolve.ParseConfig(t.Name, []byte(t.Data))
	for _, s := range cfg.Search {
		if ns, ok := strings.CutSuffix(s, ".svc."+r.facts.Domain); ok && !strings.Contains(ns, ".") {
			return ns
		}
	}
	return ""
}

// workload finds the client by its kind and name, and the address of a pod.
func (r *run) workload(namespace string) (*cluster.Workload, netip.Addr, error) {
	want := finding.Object{Kind: r.From.Kind, Namespace: namespace, Name: r.From.Name}
	if want.Kind == "Pod" {
		for _, p := range r.Snapshot.Pods {
			if p.Namespace != namespace || p.Name != want.Name || p.Spec == nil {
				continue
			}
			var address netip.Addr
			if len(p.IPs) > 0 {
				address, _ = netip.ParseAddr(p.IPs[0]) // an address that is none counts as not known
			}
			return &cluster.Workload{Object: want, Spec: p.Spec}, address, nil
		}
	}
	var found *cluster.Workload
	for _, w := range r.Snapshot.Workloads() {
		// In the middle of a rollout there are several; the one with the most pods stands for them.
		if w.Object == want && w.Spec != nil && (found == nil || w.Pods > found.Pods) {
			found = w
		}
	}
	switch {
	case found != nil:
		return found, netip.Addr{}, nil
	case r.Snapshot.Absent[cluster.Pods] != "":
		return nil, netip.Addr{}, fmt.Errorf("looking for %s: pods were not read: %s", want, r.Snapshot.Absent[cluster.Pods])
	}
	return nil, netip.Addr{}, fmt.Errorf("there is no %s, or it has no pods", want)
}

func resolvConf(c resolve.Config) ResolvConf {
	conf := ResolvConf{
		Nameservers: append([]string{}, c.Nameservers...), Search: append([]string{}, c.Search...), NDots: c.NDots,
		Options: append([]string{}, c.Options...), Unknown: []string{},
	}
	if c.NameserversUnknown {
		conf.Unknown = append(conf.Unknown, "nameservers")
	}
	if c.SearchUnknown {
		conf.Unknown = append(conf.Unknown, "search")
		conf.Search = slices.Insert(conf.Search, min(c.SearchUnknownAt, len(conf.Search)), UnknownSearch)
	}
	if c.OptionsUnknown {
		conf.Unknown = append(conf.Unknown, "options")
	}
	return conf
}
