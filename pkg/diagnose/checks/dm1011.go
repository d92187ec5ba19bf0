package checks

import (
	"fmt"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM1011 is an ndots that keeps a name off the search list.
var DM1011 = &finding.Code{
	ID:       "DM1011",
	Severity: finding.Warning,
	Title:    "ndots is too low for a name that needs the search list",
	Doc: `A workload uses a name that only the search list completes, such as SERVICE.NAMESPACE, and its ndots is not above the
number of dots in it. glibc and Go then ask for the bare name first, which leaks a query to servers outside, and use the
search list after that. musl (Alpine) never uses the search list for such a name: it does not resolve.

To mend it, raise ndots above the dots of the name, or use the full name:

    dnsConfig:
      options: [{name: ndots, value: "2"}]`,
}

// ndotsTooLow reports DM1011.
func ndotsTooLow(p *diagnose.Pass, l *lookup) bool {
	if l.dots() < l.client.config.NDots || strings.HasSuffix(l.host, ".") {
		return false
	}
	r := l.result(resolve.Glibc)
	if r.By < 0 || r.Steps[r.By].Bare {
		return false
	}
	step := r.Steps[r.By]
	if !step.Answer.Known || step.Answer.Match.Node == resolve.NoNode || step.Answer.Match.Node == resolve.OutsideNode {
		return false
	}
	musl := l.result(resolve.Musl)
	if musl.By >= 0 {
		return false
	}
	l.report(p, DM1011, finding.Finding{
		Message: fmt.Sprintf("%q needs the search list, and ndots is %d: it does not resolve with musl, and glibc asks outside first",
			l.host, l.client.config.NDots),
		Evidence: []finding.Evidence{walk(r)},
		Fix: &finding.Fix{
			Summary:  fmt.Sprintf("set ndots to %d in dnsConfig, or use %s", l.dots()+1, strings.TrimSuffix(step.Name, ".")),
			Commands: []string{explain(DM1011)},
		},
	})
	return true
}
