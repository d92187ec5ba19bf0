package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// walk looks a name up with every resolver. The results of the last walk are kept in r.
func (r *run) walk(ctx context.Context, s *server, host string) (Walk, error) {
	w := Walk{Name: host, Queries: []Query{}, Resolvers: []Result{}}
	answers := map[string]answer{}
	var failed error
	r.results, r.queries = nil, nil
	positions := make([][]int, len(r.Resolvers))
	for i, library := range r.Resolvers {
		ask := func(name string) resolve.Answer {
			a, ok := answers[name]
			if !ok && failed == nil {
				a, failed = s.ask(ctx, name, r.Type)
				answers[name] = a
			}
			return r.asRead(library, a.Answer)
		}
		result := resolve.Walk(resolve.Resolver{Library: library}, r.configOf(library), host, ask)
		if failed != nil {
			return w, failed
		}
		r.results = append(r.results, result)
		at := 0
		for _, step := range result.Steps {
			q := r.query(step, answers[step.Name])
			j := slices.IndexFunc(w.Queries[at:], func(have Query) bool {
				return have.Name == q.Name && (q.Name != "" || have.Domain == q.Domain)
			})
			if j < 0 {
				w.Queries = slices.Insert(w.Queries, at, q)
				for _, list := range positions[:i] {
					for k := range list {
						if list[k] >= at {
							list[k]++
						}
					}
				}
				j = 0
			}
			at += j
			w.Queries[at].Actions[resolverName(library)] = actionWord(step.Action)
			positions[i] = append(positions[i], at)
			at++
		}
	}
	for i := range w.Queries {
		w.Queries[i].Number = i + 1
	}
	for i, result := range r.results {
		w.Resolvers = append(w.Resolvers, r.result(result, w.Queries, positions[i]))
	}
	r.queries = w.Queries
	return w, nil
}

// isAddressType tells whether getaddrinfo asks for a type.
func isAddressType(t uint16) bool { return t == dns.TypeNone || t == dns.TypeA || t == dns.TypeAAAA }

// configOf is the configuration as a resolver reads it for the type: musl has no search list but for addresses
// (res_search in src/network/res_query.c is res_query).
func (r *run) configOf(l resolve.Library) resolve.Config {
	cfg := r.config
	if l == resolve.Musl && !isAddressType(r.Type) {
		cfg.Search, cfg.SearchUnknown = nil, false
	}
	return cfg
}

// asRead is an answer as a resolver reads it. For types other than addresses every record in the answer section counts
// with glibc (ancount in __res_context_query) and musl (res_query), and Go wants one of the type.
func (r *run) asRead(l resolve.Library, a resolve.Answer) resolve.Answer {
	if !isAddressType(r.Type) && l != resolve.Go && a.A.Records == resolve.AliasAlone {
		a.A.Records, a.AAAA.Records = resolve.Address, resolve.Address
	}
	return a
}

// resolverName is the name of a resolver in flags and documents.
func resolverName(l resolve.Library) string { return strings.ToLower(l.String()) }

func actionWord(a resolve.Action) string {
	switch a {
	case resolve.Take:
		return "take"
	case resolve.Stop:
		return "stop"
	case resolve.LeaveList:
		return "leave"
	}
	return "next"
}

// query describes a step.
func (r *run) query(step resolve.Step, a answer) Query {
	q := Query{
		Name: step.Name, Domain: step.Domain, Known: step.Answer.Known, Block: a.block, Plugin: a.plugin,
		Upstream: orEmpty(a.upstream), Replies: append([]Reply{}, a.replies...), Aliases: orEmpty(a.chain), Addresses: []string{},
		Note: step.Answer.Note, Actions: map[string]string{}, varies: step.Answer.Varies,
	}
	for _, ip := range step.Answer.Addresses {
		q.Addresses = append(q.Addresses, ip.String())
	}
	switch {
	case step.Unseen:
		q.Text = NotKnown
	case step.Invalid:
		q.Text = "not asked"
	case !step.Answer.Known:
		q.Text = "unknown"
	case !isAddressType(r.Type):
		q.Text = recordsText(a)
	case len(q.Addresses) > 0:
		q.Text = strings.Join(q.Addresses, " ")
	case step.Answer.HasAddress():
		q.Text = "an address"
	case r.Type != dns.TypeNone:
		q.Text = step.Answer.A.String()
	default:
		q.Text = step.Answer.String()
	}
	q.Object = r.object(step.Name)
	return q
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

// recordsText are the data of the records, or the code.
func recordsText(a answer) string {
	var list []string
	for _, reply := range a.replies {
		for _, rr := range reply.Records {
			// The fields before the data are name, TTL, class and type.
			if fields := strings.SplitN(rr, "\t", 5); len(fields) == 5 {
				list = append(list, fields[4])
			}
		}
	}
	if len(list) == 0 {
		return a.A.String()
	}
	return strings.Join(list, ", ")
}

// object is the Service or namespace that a name stands for by its form, if it exists.
func (r *run) object(name string) *finding.Object {
	if name == "" {
		return nil
	}
	m, ok := resolve.Shape(name, r.facts.Domain)
	switch {
	case !ok:
	case m.Node == resolve.NamespaceNode && r.index.HasNamespace(m.Namespace):
		return &finding.Object{Kind: "Namespace", Name: m.Namespace}
	case m.Node == resolve.ServiceNode && r.index.Service(m.Namespace, m.Service) != nil:
		return &finding.Object{Kind: "Service", Namespace: m.Namespace, Name: m.Service}
	}
	return nil
}

// result says how a look-up ends. The positions are those of its steps in queries.
func (r *run) result(res resolve.Result, queries []Query, positions []int) Result {
	out := Result{Resolver: resolverName(res.Resolver.Library), Addresses: []string{}}
	switch verdict(res) {
	case Resolves:
		r.resolves(&out, res, queries, positions)
	case Fails:
		r.fails(&out, res, queries, positions)
	default:
		depends(&out, res, queries, positions)
	}
	return out
}

// verdict is that of a result, for which names that nobody outside a cluster answers do not count as unknown.
func verdict(res resolve.Result) string {
	switch res.Verdict() {
	case resolve.Resolves:
		return Resolves
	case resolve.Fails:
		return Fails
	}
	if !res.MustResolve() && assumed(res) != "" {
		return Fails
	}
	return Depends
}

// assumed is what has to hold for a look-up to fail whose unknown answers are only those of search domains that are not
// known and of a name of one label, which is no name of the Internet; empty if there are others, or none. The checks of
// doctor assume the same.
func assumed(res resolve.Result) string {
	var parts []string
	for _, i := range res.Unknown() {
		var part string
		switch step := res.Steps[i]; {
		case step.Unseen:
			part = "no search domain that pods inherit from their node answers"
		case step.Bare && strings.Count(step.Name, ".") == 1:
			part = "no upstream answers for a name of one label"
		default:
			return ""
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", and ")
}

func (r *run) resolves(out *Result, res resolve.Result, queries []Query, positions []int) {
	out.Verdict = Resolves
	if res.By < 0 {
		out.Text = "needs no query: " + res.Status.String()
		return
	}
	q := queries[positions[res.By]]
	out.Query, out.Addresses = q.Number, q.Addresses
	out.Text = q.Text
	if res.Partial {
		out.Text += ", or a part of them: the answer is truncated"
	}
	if ns := q.namespace(); ns != "" && len(q.Aliases) > 0 {
		out.Code = "DM1001"
		how := "the aliases in it"
		if q.varies {
			how += " in turn"
		}
		out.Text += fmt.Sprintf(": query %d is the node of namespace %q, which is answered with %s", q.Number, ns, how)
	}
}

func (r *run) fails(out *Result, res resolve.Result, queries []Query, positions []int) {
	out.Verdict, out.Assumed = Fails, assumed(res)
	out.Text = "does not resolve: " + res.Status.String()
	last := len(positions) - 1
	if last >= 0 && res.Steps[last].Action == resolve.Stop {
		out.Query = queries[positions[last]].Number
		out.Text += fmt.Sprintf(", query %d ends the search", out.Query)
	}
	for i, at := range positions {
		q := queries[at]
		if ns := q.namespace(); ns != "" && res.Steps[i].Answer.Known && (out.Query == 0 || out.Query == q.Number) {
			out.Text = fmt.Sprintf("does not resolve: query %d is the node of namespace %q", q.Number, ns)
			if r.facts.DNS.Implementation == cluster.CoreDNS {
				out.Code = "DM1002"
			}
			return
		}
	}
}

func depends(out *Result, res resolve.Result, queries []Query, positions []int) {
	out.Verdict = Depends
	unknown := res.Unknown()
	q := queries[positions[unknown[0]]]
	out.Query = q.Number
	rest := ""
	if more := len(unknown) - 1; more == 1 {
		rest = " and one more"
	} else if more > 1 {
		rest = fmt.Sprintf(" and %d more", more)
	}
	verb := "hangs on"
	if res.MustResolve() {
		verb = "resolves; whose address it gets hangs on"
	}
	out.Text = fmt.Sprintf("%s query %d%s: %s", verb, q.Number, rest, cmp.Or(q.Note, "the answer is not known"))
}

// namespace is the namespace whose node a query asked for, if it exists.
func (q Query) namespace() string {
	if q.Object == nil || q.Object.Kind != "Namespace" {
		return ""
	}
	return q.Object.Name
}

// Parting says where the resolvers of a walk first do different things with the same answer, for people; empty if they
// never do.
func (w Walk) Parting() string {
	if len(w.Resolvers) < 2 {
		return ""
	}
	verbs := map[string]string{
		"next": "goes on", "take": "takes the answer", "stop": "stops", "leave": "leaves the search list", "": "does not ask",
	}
	for _, q := range w.Queries {
		var order []string
		groups := map[string][]string{}
		for _, r := range w.Resolvers {
			action := q.Actions[r.Resolver]
			if groups[action] == nil {
				order = append(order, action)
			}
			groups[action] = append(groups[action], display(r.Resolver))
		}
		if len(order) < 2 {
			continue
		}
		parts := make([]string, len(order))
		for i, action := range order {
			verb := verbs[action]
			if len(groups[action]) > 1 {
				verb = plural(verb)
			}
			parts[i] = strings.Join(groups[action], " and ") + " " + verb
		}
		return fmt.Sprintf("at query %d %s", q.Number, strings.Join(parts, ", "))
	}
	return ""
}

// plural is a verb of Parting for several.
func plural(verb string) string {
	first, rest, _ := strings.Cut(verb, " ")
	switch first {
	case "goes", "does":
		first = first[:2]
	default:
		first = strings.TrimSuffix(first, "s")
	}
	return strings.TrimSpace(first + " " + rest)
}

// display is the name of a resolver as its makers write it.
func display(resolver string) string {
	if resolver == "go" {
		return "Go"
	}
	return resolver
}

// Group is what several resolvers have in common.
type Group struct {
	// Names are those of the resolvers as people write them: "glibc, Go".
	Names string
	Result
}

// Groups puts resolvers with the same end together, in their order.
func (w Walk) Groups() []Group {
	var groups []Group
	for _, r := range w.Resolvers {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Text == r.Text && g.Verdict == r.Verdict })
		if i >= 0 {
			groups[i].Names += ", " + display(r.Resolver)
			continue
		}
		groups = append(groups, Group{Names: display(r.Resolver), Result: r})
	}
	return groups
}
