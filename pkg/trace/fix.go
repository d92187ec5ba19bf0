package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// fix returns the change that mends the look-up of r, as DM1001, DM1002 and DM1007 advise it, with the walk after it; nil
// where none is needed or known. A change after which it is not certain that every resolver gets an address is no fix.
func (r *run) fix(ctx context.Context, s *server, c client) (*Fix, error) {
	if !isAddressType(r.Type) || !r.wanting() {
		return nil, nil
	}
	labels := strings.Split(strings.TrimSuffix(r.Name, "."), ".")
	name := labels[0]
	var meant []*corev1.Service
	if r.meansService(labels) {
		for _, svc := range r.index.ServicesNamed(name) {
			if svc.Namespace != c.Namespace || len(labels) > 1 {
				meant = append(meant, svc)
			}
		}
	}
	switch {
	case len(meant) == 1:
		target := strings.TrimSuffix(resolve.ServiceName(meant[0].Namespace, meant[0].Name, r.facts.Domain), ".")
		if r.canAlias(c) {
			return r.alias(ctx, c, name, target)
		}
		return r.rename(ctx, s, "use "+target, target)
	case len(meant) == 0 && !strings.HasSuffix(r.Name, "."):
		// Another resolver, or another order, finds the name by a later search domain.
		for _, result := range r.results {
			step, ok := result.Taken()
			if ok && step.Answer.Known && step.Answer.Match.Node != resolve.NamespaceNode && strings.Count(step.Name, ".") > 1 {
				return r.rename(ctx, s, "use "+step.Name+" with the final dot", step.Name)
			}
		}
	}
	return nil, nil
}

// meansService tells whether a name is likely to mean a Service of the cluster: it has one label, or the second is a
// namespace, or it goes on with svc.
func (r *run) meansService(labels []string) bool {
	return len(labels) == 1 || r.index.HasNamespace(labels[1]) || len(labels) > 2 && labels[2] == "svc" || labels[1] == "svc"
}

// wanting tells whether the look-up fails for a resolver, or leads to aliases that happen to be in a namespace.
func (r *run) wanting() bool {
	return slices.ContainsFunc(r.results, func(res resolve.Result) bool {
		step, ok := res.Taken()
		return verdict(res) == Fails || ok && step.Answer.Match.Node == resolve.NamespaceNode
	})
}

// canAlias tells whether a Service of that name in the namespace of the client would answer the look-up.
func (r *run) canAlias(c client) bool {
	return c.Namespace != "" && !strings.Contains(r.Name, ".") && r.config.NDots > 0 &&
		slices.Contains(r.config.Search, c.Namespace+".svc."+r.facts.Domain)
}

// alias is the fix of an ExternalName Service in the namespace of the client.
func (r *run) alias(ctx context.Context, c client, name, target string) (*Fix, error) {
	if len(validation.IsDNS1123Label(c.Namespace))+len(validation.IsDNS1123Label(name))+len(validation.IsDNS1123Subdomain(target)) > 0 {
		return nil, nil // the API server would not take it
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	svc.Spec.Type, svc.Spec.ExternalName = corev1.ServiceTypeExternalName, target
	after := *r.Snapshot
	after.Services = append(slices.Clone(after.Services), svc)
	next := &run{Options: r.Options, facts: cluster.Derive(&after), index: cluster.NewIndex(&after), config: r.config}
	next.Snapshot = &after
	s := newServer(ctx, &after, next.facts, next.index, c)
	defer s.stop(ctx)
	return next.fixed(ctx, s, r.Name, &Fix{
		Summary: fmt.Sprintf("add an alias in %s, or use %s", c.Namespace, target),
		Manifest: fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %s
  namespace: %s
spec:
  type: ExternalName
  externalName: %s
`, name, c.Namespace, target),
	})
}

// rename is the fix of another name.
func (r *run) rename(ctx context.Context, s *server, summary, name string) (*Fix, error) {
	next := &run{Options: r.Options, facts: r.facts, index: r.index, config: r.config}
	return next.fixed(ctx, s, name, &Fix{Summary: summary})
}

// fixed walks once more and returns f if that mends the look-up.
func (r *run) fixed(ctx context.Context, s *server, name string, f *Fix) (*Fix, error) {
	var err error
	if f.Walk, err = r.walk(ctx, s, name); err != nil {
		return nil, err
	}
	if r.wanting() || slices.ContainsFunc(r.results, func(res resolve.Result) bool { return !res.MustResolve() }) {
		return nil, nil
	}
	return f, nil
}
