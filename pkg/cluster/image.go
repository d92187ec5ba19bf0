package cluster

import (
	"path"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// imageRef is a container image reference, cut as github.com/distribution/reference does: registry and path, tag,
// digest. Any text is taken: what is no valid reference has parts that are of no use, and harms nobody.
type imageRef struct {
	// Repository is registry and path: "registry.k8s.io/coredns/coredns".
	Repository string
	// Tag is the part behind the last colon of the last path element, Digest the part behind "@". Both may be empty.
	Tag, Digest string
}

func parseImage(s string) imageRef {
	var ref imageRef
	s, ref.Digest, _ = strings.Cut(strings.TrimSpace(s), "@")
	// A colon before the last slash belongs to the port of the registry.
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, '/') {
		s, ref.Tag = s[:i], s[i+1:]
	}
	ref.Repository = s
	return ref
}

// words are the words of the last path element, lower case: "mirrored-coredns-coredns" has three.
func (r imageRef) words() []string {
	return strings.FieldsFunc(strings.ToLower(path.Base(r.Repository)), func(c rune) bool {
		return c == '-' || c == '_' || c == '.'
	})
}

// helperWords mark images that help a DNS server and answer no query themselves, such as coredns-autoscaler.
func helperWords() []string {
	return []string{
		"autoscaler", "controller", "operator", "exporter", "sidecar", "migration", "test", "tests", "checker", "monitor",
		"webhook", "updater", "reloader", "proxy", "nanny",
	}
}

// implementation is the DNS server that an image of this name holds, or "" if the name tells of none.
//
//   - coredns/coredns, registry.k8s.io/coredns/coredns, k8s.gcr.io/coredns, eks/coredns, oss/kubernetes/coredns,
//     rancher/mirrored-coredns-coredns, rancher/hardened-coredns, lighthouse-coredns
//   - k8s-dns-kube-dns, k8s-dns-kube-dns-amd64, kubedns-amd64: the kubedns container of kube-dns; its dnsmasq and
//     sidecar hold no names of their own
//   - k8s-dns-node-cache, hardened-dns-node-cache: NodeLocal DNSCache
func (r imageRef) implementation() Implementation {
	words := r.words()
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(helperWords(), w) }) {
		return ""
	}
	base := strings.Join(words, "-")
	switch {
	case strings.Contains(base, "dns-node-cache"), slices.Contains(words, "nodelocaldns"):
		return NodeLocalDNS
	case slices.Contains(words, "coredns"):
		return CoreDNS
	case strings.Contains(base, "kube-dns"), slices.Contains(words, "kubedns"):
		return KubeDNS
	}
	return ""
}

// serverVersion is the version of a DNS server, from the tag of its image, else from the label
// app.kubernetes.io/version of its pods; "" if neither tells. The label of a chart is that of the version the chart
// was made for, so it does not count where the tag is a moving one. A label such as helm.sh/chart names the version of
// the chart and never counts.
func serverVersion(impl Implementation, image string, labels map[string]string) string {
	ref := parseImage(image)
	named := ref.implementation() == impl
	// lighthouse-coredns is Submariner's build of CoreDNS with the version of Submariner.
	foreign := slices.Contains(ref.words(), "lighthouse")
	if named && !foreign {
		if v, ok := plausibleVersion(impl, ref.Tag); ok {
			return v
		}
	}
	moving := ref.Tag == "" && ref.Digest == "" || slices.Contains([]string{"latest", "stable", "edge", "main", "master"}, ref.Tag)
	if foreign || moving {
		return ""
	}
	v, _ := plausibleVersion(impl, labels["app.kubernetes.io/version"])
	return v
}

// plausibleVersion finds a version of impl in text. All releases of the three servers have the major version 1, so
// that dates and the versions of other products stand out; "011", CoreDNS's old numbering, is none either.
func plausibleVersion(impl Implementation, text string) (string, bool) {
	if impl != CoreDNS && impl != KubeDNS && impl != NodeLocalDNS {
		return "", false
	}
	v, ok := resolve.ParseVersion(text)
	if !ok || v.Major != 1 {
		return "", false
	}
	return v.String(), true
}
