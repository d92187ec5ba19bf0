// Package reference finds the host names that workloads use: in the values of environment variables, in commands and
// arguments, and in the ConfigMaps that pods mount or take variables from. Secrets are never looked at.
//
// Nobody declares these names, so they are read out of texts made for other programs. A false alarm is as bad as a
// missed fault; the rules therefore ask for a sign that a word is meant as a host: the scheme of a URL, a DSN, a port
// behind it, a key or a flag that names a host, or a suffix under the cluster domain. Whatever a template, a shell
// variable or a Secret would complete is not a host name yet and is left out.
//
// The texts come from a cluster and are not trusted. Work is linear in their size, and size, depth and number of
// references are bounded (see Limits).
package reference

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The bounds of what one text can cost. What lies beyond them is not searched.
const (
	// MaxText is how many bytes of one value are read. The API server accepts ConfigMaps of 1 MiB in total
	// (k8s.io/kubernetes pkg/apis/core/validation, MaxSecretSize, which also bounds ConfigMaps).
	MaxText = 1 << 20
	// MaxReferences is how many references one value yields.
	MaxReferences = 1000
	// maxDepth bounds texts within texts: a script in a block of YAML in a JSON string.
	maxDepth = 4
	// maxPath bounds the nesting of keys that is remembered in one text.
	maxPath = 64
)

// Strength tells how sure it is that a text means a host name.
type Strength int

const (
	// Likely is a host by its shape or its key, where the same text could mean something else: a word under SERVER,
	// name:port under a key that says nothing. A check that calls an unresolvable name a fault wants more than this.
	Likely Strength = iota + 1
	// Certain is a host by syntax: a URL of a network scheme, a DSN, host:port or a name under a key that names a
	// host, or a name under the cluster domain.
	Certain
)

// String returns "likely" or "certain".
func (s Strength) String() string {
	switch s {
	case Likely:
		return "likely"
	case Certain:
		return "certain"
	}
	return "unknown"
}

// Kind is the kind of place where a reference stands.
type Kind int

const (
	// Text is a text without a known owner, as given to Finder.Text.
	Text Kind = iota
	// Env is the value of an environment variable.
	Env
	// Arg is an element of args.
	Arg
	// Command is an element of command.
	Command
	// ConfigMap is a key of a ConfigMap that is mounted as a file.
	ConfigMap
)

// Origin is where a reference stands.
type Origin struct {
	Kind Kind
	// Container is the name of the container; for a mounted file, of the first one that mounts it.
	Container string
	// Key is the name of the variable, the flag with its dashes, or the path of keys in a file joined with dots. It
	// is empty where a name stands without a key.
	Key string
	// ConfigMap is the name of the ConfigMap that holds the text, if one does: that of a mounted file, or the source of
	// an environment variable. Namespace is that of the pod.
	ConfigMap, Namespace string
	// DataKey is the key of that ConfigMap.
	DataKey string
	// Line counts from 1 in the value of DataKey or in the text; 0 for variables and arguments.
	Line int
	// Excerpt is, for Arg and Command, the part of the argument that holds the host, without anything that could be a
	// secret: no user, password, path or query of a URL.
	Excerpt string
}

// String returns the place as evidence quotes it:
//
//	env LEDGER_URL
//	env LEDGER_URL from ConfigMap payments/api-config ledger.url
//	args --ledger-endpoint=ledger:8443
//	command curl http://ledger/…
//	ConfigMap payments/api-config application.yaml:4
//
// Nothing in it comes from a value but the host, its port and its scheme. The texts are not escaped; see
// finding.Printable.
func (o Origin) String() string {
	switch o.Kind {
	case Env:
		s := "env " + o.Key
		if o.ConfigMap != "" {
			s += " from " + o.configMap()
		}
		return s
	case Arg:
		return "args " + o.Excerpt
	case Command:
		return "command " + o.Excerpt
	case ConfigMap:
		return o.configMap() + o.line()
	}
	return strings.TrimPrefix(o.line(), ":")
}

func (o Origin) configMap() string {
	return "ConfigMap " + o.Namespace + "/" + o.ConfigMap + " " + o.DataKey
}

func (o Origin) line() string {
	if o.Line == 0 {
		return ""
	}
	return ":" + strconv.Itoa(o.Line)
}

// Reference is one use of a host name.
type Reference struct {
	// Host is the name in lower case, as it was written otherwise: with or without a final dot, of one label or more.
	// It is never an IP address, never localhost, and at most 253 bytes long without the final dot. Labels may hold
	// underscores, as those of SRV names do.
	Host string
	// Port is the port written beside the host, 0 where none is.
	Port int
	// Scheme is that of the URL in lower case: "https", "postgresql" of a JDBC URL, "mongodb+srv" and "dnssrv" where
	// the look-up is for SRV records; empty where there is no URL.
	Scheme   string
	Strength Strength
	Origin   Origin
}

// Options is what the search depends on beside the texts.
type Options struct {
	// ClusterDomain is the domain of the cluster's names, with or without a final dot; empty means cluster.local.
	ClusterDomain string
}

// FromSpec finds the host names that the containers of a pod use; see Finder.Spec.
func FromSpec(spec *corev1.PodSpec, namespace string, configMap func(name string) *corev1.ConfigMap, o Options) []Reference {
	return NewFinder(o).Spec(spec, namespace, configMap)
}

// FromText finds the host names in a text; see Finder.Text.
func FromText(name, text string, o Options) []Reference {
	return NewFinder(o).Text(name, text)
}

// HostAliases returns the names that the hostAliases of a pod put into its /etc/hosts, in lower case, without final
// dots, sorted, each once. Such a name never reaches a DNS server.
func HostAliases(spec *corev1.PodSpec) []string {
	if spec == nil {
		return nil
	}
	var names []string
	for _, a := range spec.HostAliases {
		for _, n := range a.Hostnames {
			names = append(names, strings.TrimSuffix(strings.ToLower(n), "."))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Without returns the references whose host is none of names, in their order. A name is a host name, or "*." and a
// domain, which stands for every name below that domain; case and a final dot do not matter. It serves for the hosts
// of a mesh's ServiceEntries, which the proxy of the pod answers.
func Without(refs []Reference, names []string) []Reference {
	if len(names) == 0 {
		return refs
	}
	exact := make(map[string]bool, len(names))
	below := make(map[string]bool)
	for _, n := range names {
		n = strings.TrimSuffix(strings.ToLower(n), ".")
		if d, ok := strings.CutPrefix(n, "*."); ok {
			below[d] = true
		} else {
			exact[n] = true
		}
	}
	var kept []Reference
	for _, r := range refs {
		host := strings.TrimSuffix(r.Host, ".")
		drop := exact[host]
		for d := host; !drop; {
			_, rest, ok := strings.Cut(d, ".")
			if !ok {
				break
			}
			d, drop = rest, below[rest]
		}
		if !drop {
			kept = append(kept, r)
		}
	}
	return kept
}
