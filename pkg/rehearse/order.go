package rehearse

import (
	_ "embed" // orders.txt
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

//go:embed orders.txt
var orders string

// Release is the CoreDNS that is linked in.
func Release() resolve.Version { return resolve.Version{Major: 1, Minor: 15} }

// order is the order of plugins from one release on.
type order struct {
	from  resolve.Version
	names []string
}

// releaseOrders reads orders.txt, the oldest release first.
func releaseOrders() []order {
	var list []order
	for line := range strings.Lines(orders) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(line, "#") {
			continue
		}
		v, _ := resolve.ParseVersion(words[0])
		list = append(list, order{v, words[1:]})
	}
	return list
}

// Order returns the directives of a release of CoreDNS in the order in which it runs them (plugin.cfg of the release).
// An unknown version, or one after the last release that is known, has the order of the last one; one before the first
// that is known has the order of the first.
func Order(v resolve.Version) []string {
	list := releaseOrders()
	found := list[0]
	for _, o := range list {
		if o.from.Compare(v) <= 0 {
			found = o
		}
	}
	return found.names
}

// knownIn returns the first release that has a directive and the first after it that has not, which is unknown if the
// last release has it. It says false if no release ever had it.
func knownIn(name string) (since, dropped resolve.Version, known bool) {
	for _, o := range releaseOrders() {
		switch has := slices.Contains(o.names, name); {
		case has && !known:
			since, known = o.from, true
		case has:
			dropped = resolve.Version{}
		case known && !dropped.Known():
			dropped = o.from
		}
	}
	return since, dropped, known
}
