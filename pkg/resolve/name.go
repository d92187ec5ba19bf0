package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Limits of a name in presentation form, from RFC 1035 section 2.3.4: 255 octets on the wire are 253 characters
// without the final dot.
const (
	maxName  = 253
	maxLabel = 63
)

// Absolute returns host as an absolute name: lower case, with a final dot. The root is ".".
//
// It refuses what no resolver can put into a query or what is no host name in any notation: an empty host, an empty
// label, a label over 63 octets, a name over 253 octets without its final dot (RFC 1035 section 2.3.4), and characters
// other than printable ASCII, or that have a meaning in zone files (backslash, quote, semicolon, parentheses, @, $).
// Underscores and asterisks pass: servers of clusters give both a meaning.
func Absolute(host string) (string, error) {
	if host == "." {
		return host, nil
	}
	name := strings.TrimSuffix(host, ".")
	if name == "" {
		return "", errors.New("empty name")
	}
	if len(name) > maxName {
		return "", fmt.Errorf("name of %d octets exceeds %d", len(name), maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			return "", fmt.Errorf("name %s has an empty label", strconv.Quote(host))
		}
		if len(label) > maxLabel {
			return "", fmt.Errorf("label of %d octets exceeds %d", len(label), maxLabel)
		}
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`\";()@$/:,<>[]{}|^`+"`", c) >= 0 {
			return "", fmt.Errorf("name %s holds a character that no host name has", strconv.Quote(host))
		}
	}
	return strings.ToLower(name) + ".", nil
}

// Under tells whether name is zone or a name below it. Both are absolute.
func Under(name, zone string) bool {
	if zone == "." || name == zone {
		return true
	}
	n := len(name) - len(zone)
	return n > 0 && name[n-1] == '.' && name[n:] == zone
}

// join appends an absolute domain to a relative host. It says false where the result would be no valid name.
func join(host, domain string) (string, bool) {
	if domain == "." {
		domain = ""
	}
	name, err := Absolute(host + "." + domain)
	return name, err == nil
}

// labels returns the labels of an absolute name, the leftmost first; none for the root.
func labels(name string) []string {
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return nil
	}
	return strings.Split(name, ".")
}

// isAddress tells whether r takes host as an address and asks nobody. glibc and musl read the old notations of
// inet_aton as well ("10.1", "0x7f.1", "127"), Go reads dotted quads and IPv6 alone.
func isAddress(r Resolver, host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return r.Library != Go && isInetAton(host)
}

// isInetAton follows inet_aton(3): one to four numbers in the notation of C, of which the last fills the rest.
func isInetAton(host string) bool {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return false
	}
	for i, p := range parts {
		base := 10
		switch {
		case strings.HasPrefix(p, "0x") || strings.HasPrefix(p, "0X"):
			base, p = 16, p[2:]
		case len(p) > 1 && p[0] == '0':
			base, p = 8, p[1:]
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		// ParseUint takes a sign nowhere, but underscores only with base 0: what is left is digits.
		if _, err := strconv.ParseUint(p, base, bits); err != nil {
			return false
		}
	}
	return true
}
