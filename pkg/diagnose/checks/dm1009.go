package checks

import (
	"fmt"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM1009 is the cost of the search list for names outside the cluster.
var DM1009 = &finding.Code{
	ID:       "DM1009",
	Severity: finding.Info,
	Title:    "look-ups of names outside the cluster cost several queries each",
	Doc: `A name with fewer dots than ndots (5 in pods) is first asked below every search domain, for A and for AAAA, before it
is asked as it stands. A name outside the cluster so costs two queries for each search domain that are answered with
NXDOMAIN, on every look-up. It works, and it is load on the DNS servers and time for the client.

To mend it, write the name with a final dot where the program takes one, or lower ndots for the workload. ndots:2 keeps
SERVICE.NAMESPACE working with every C library; lower values break it on musl.

    spec:
      dnsConfig:
        options: [{name: ndots, value: "2"}]`,
}

// searchCost reports DM1009: one finding for each workload.
func searchCost(p *diagnose.Pass, c *client, outside []*lookup) {
	var names []string
	var evidence []finding.Evidence
	queries := 0
	for _, l := range outside {
		if l.dots() >= c.config.NDots {
			continue
		}
		n := 0
		for _, cand := range resolve.Candidates(resolve.Resolver{Library: resolve.Glibc}, c.config.Config, l.host) {
			if !cand.Unseen && cand.Name != "" {
				n += 2
			}
		}
		queries = max(queries, n)
		names = append(names, l.host)
		evidence = append(evidence, l.used...)
	}
	if len(names) == 0 || queries <= 2 {
		return
	}
	const shown = 8
	if n := len(evidence); n > shown {
		evidence = append(evidence[:shown:shown], finding.Evidence{Label: "used in", Text: fmt.Sprintf("%d more places", n-shown)})
	}
	subject := fmt.Sprintf("%q", names[0])
	if n := len(names); n > 1 {
		subject += fmt.Sprintf(" and %d other outside names", n-1)
		if n == 2 {
			subject = fmt.Sprintf("%q and %q", names[0], names[1])
		}
		evidence = append([]finding.Evidence{{Label: "names", Text: enumerate(names, "and", 12)}}, evidence...)
	}
	f := finding.Finding{
		Object:   c.object,
		Message:  fmt.Sprintf("%s: each look-up costs %d queries instead of 2", subject, queries),
		Evidence: evidence,
		Fix: &finding.Fix{
			Summary:  "write the names with a final dot, or set ndots to 2 in dnsConfig",
			Commands: []string{explain(DM1009)},
		},
	}
	if search := c.config.Search; len(search) > 0 {
		list := make([]string, len(search))
		for i, s := range search {
			list[i] = strings.TrimSuffix(s, ".")
		}
		f.Evidence = append(f.Evidence, finding.Evidence{
			Label: "search", Text: fmt.Sprintf("%s, ndots %d", strings.Join(list, " "), c.config.NDots),
		})
	}
	p.Report(DM1009, f)
}
