package corefile

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Zone is what the server makes of one key of a server block.
type Zone struct {
	// Written is the key as it was given to ParseZone.
	Written string
	// Names are the zones: absolute and lower case. There are several only for a network whose prefix does not end at
	// a label of the reverse tree.
	Names []string
	// Transport is dns, tls, quic, grpc, https, https3 or unix.
	Transport string
	// Port is the port that was given, or the default of the transport: 53 for dns, 853 for tls and quic, 443 for grpc,
	// https and https3. It is empty for unix.
	Port string
}

// transports are the prefixes that plugin/pkg/parse/transport.go of CoreDNS knows, with the default ports of
// core/dnsserver/register.go.
var transports = []struct{ name, port string }{
	{"tls", "853"},
	{"dns", "53"},
	{"quic", "853"},
	{"grpc", "443"},
	{"https3", "443"},
	{"https", "443"},
	{"unix", ""},
}

// Zones returns the zones of the keys of a block, in order.
func (b *Block) Zones() ([]Zone, error) {
	zones := make([]Zone, 0, len(b.Keys))
	for _, key := range b.Keys {
		zone, err := ParseZone(key.Text)
		if err != nil {
			e := errorAt(&key, "reading a server block's key")
			e.Err = err
			return zones, e
		}
		zones = append(zones, zone)
	}
	return zones, nil
}

// ParseZone reads a key of a server block as CoreDNS 1.15 does: [transport://]zone[:port], where zone may be a network
// in CIDR notation, which stands for its reverse zones (core/dnsserver/register.go, InspectServerBlocks;
// plugin/normalize.go, SplitHostPort). Whether a server ever reaches a zone is another matter: a key such as
// *.example.org is accepted literally.
func ParseZone(key string) (Zone, error) {
	z := Zone{Written: key, Transport: "dns", Port: "53"}
	rest := key
	for _, t := range transports {
		if after, ok := strings.CutPrefix(key, t.name+"://"); ok {
			z.Transport, z.Port, rest = t.name, t.port, after
			break
		}
	}
	names, port, err := splitHostPort(rest)
	if err != nil {
		return z, err
	}
	if port != "" {
		z.Port = port
	}
	for _, name := range names {
		// The server reads every name a second time, with the final dot.
		if _, _, err := splitHostPort(absolute(name)); err != nil {
			return z, err
		}
		z.Names = append(z.Names, strings.ToLower(absolute(name)))
	}
	return z, nil
}

// splitHostPort is plugin.SplitHostPort.
func splitHostPort(s string) (names []string, port string, err error) {
	colon := strings.LastIndexByte(s, ':')
	if colon == len(s)-1 {
		return nil, "", fmt.Errorf("nothing follows the last colon of %q", s)
	}
	if colon >= 0 {
		if n, err := strconv.Atoi(s[colon+1:]); err == nil {
			port = strconv.Itoa(n)
			s = s[:colon]
		}
	}
	if len(s) > 255 {
		return nil, "", fmt.Errorf("zone is too long: %d characters, at most 255", len(s))
	}
	if !isDomainName(s) {
		return nil, "", fmt.Errorf("zone is not a valid domain name: %q", s)
	}
	prefix, ok := parseCIDR(s)
	if !ok {
		return []string{s}, port, nil
	}
	if s[0] == ':' || s[0] == '0' && strings.Contains(s, ":") {
		return nil, "", fmt.Errorf("network %q cannot be a zone: it starts with a zero group", s)
	}
	return reverseZones(prefix), port, nil
}

// parseCIDR accepts what net.ParseCIDR accepts.
func parseCIDR(s string) (netip.Prefix, bool) {
	address, length, found := strings.Cut(s, "/")
	if !found {
		return netip.Prefix{}, false
	}
	addr, err := netip.ParseAddr(address)
	if err != nil || addr.Zone() != "" || length == "" {
		return netip.Prefix{}, false
	}
	n := 0
	for _, c := range []byte(length) {
		if c < '0' || c > '9' || n > addr.BitLen() {
			return netip.Prefix{}, false
		}
		n = n*10 + int(c-'0')
	}
	prefix := netip.PrefixFrom(addr, n).Masked()
	return prefix, prefix.IsValid()
}

// reverseZones returns the zones of the reverse tree (RFC 1035 section 3.5, RFC 3596 section 2.5) that together hold
// the network, as cidr.Split and cidr.Reverse of CoreDNS do: one, or one per label that the rest of the prefix leaves open.
func reverseZones(prefix netip.Prefix) []string {
	width, suffix := 8, "in-addr.arpa."
	if prefix.Addr().Is6() {
		width, suffix = 4, "ip6.arpa."
	}
	labels := (prefix.Bits() + width - 1) / width
	count := 1 << (labels*width - prefix.Bits())
	names := make([]string, count)
	for i := range names {
		var b strings.Builder
		for l := labels - 1; l >= 0; l-- {
			v := label(prefix.Addr(), l, width)
			if l == labels-1 {
				v += i // the open bits of a masked address are zero
			}
			b.WriteString(strconv.FormatInt(int64(v), map[int]int{8: 10, 4: 16}[width]))
			b.WriteByte('.')
		}
		names[i] = b.String() + suffix
	}
	return names
}

// label returns the l-th group of width bits of an address.
func label(addr netip.Addr, l, width int) int {
	raw := addr.AsSlice()
	if width == 8 {
		return int(raw[l])
	}
	if l%2 == 0 {
		return int(raw[l/2] >> 4)
	}
	return int(raw[l/2] & 0xf)
}

// absolute appends the final dot unless there is one that is not escaped, as dns.Fqdn of github.com/miekg/dns does.
func absolute(name string) string {
	before, ok := strings.CutSuffix(name, ".")
	if !ok {
		return name + "."
	}
	// The library counts bytes from the start of the last character in front of the backslashes.
	last := strings.LastIndexFunc(before, func(r rune) bool { return r != '\\' })
	if !strings.HasSuffix(before, `\`) || (len(before)-last)%2 != 0 {
		return name
	}
	return name + "."
}

// isDomainName accepts what IsDomainName of github.com/miekg/dns accepts: labels of 1 to 63 octets, at most 255 in all
// (RFC 1035 section 2.3.4), any octet in a label, \. and \DDD as escapes.
func isDomainName(name string) bool {
	if name == "" {
		return false
	}
	name = absolute(name)
	if name == "." {
		return true
	}
	const maxWire = 256 // with the root label, plus one that the library allows
	total, length := 0, 0
	escaped := false // an odd number of escapes in a row, which the library refuses at the end only
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\':
			if total+1 > maxWire {
				return false
			}
			if isDDD(name[i+1:]) {
				i += 3
			} else {
				i++
			}
			length++
			escaped = !escaped
		case '.':
			escaped = false
			if length == 0 || length > 63 {
				return false
			}
			total += 1 + length
			if total > maxWire {
				return false
			}
			length = 0
		default:
			escaped = false
			length++
		}
	}
	return !escaped
}

func isDDD(s string) bool {
	return len(s) >= 3 && strings.Trim(s[:3], "0123456789") == ""
}
