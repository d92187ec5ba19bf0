package corefile

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseZone(t *testing.T) {
	for _, test := range []struct{ key, transport, port, names string }{
		{".", "dns", "53", "."},
		{"Example.ORG", "dns", "53", "example.org."},
		{"example.org.:1053", "dns", "1053", "example.org."},
		{"dns://example.org", "dns", "53", "example.org."},
		{"tls://.", "tls", "853", "."},
		{"quic://.:8853", "quic", "8853", "."},
		{"grpc://example.org", "grpc", "443", "example.org."},
		{"https://example.org", "https", "443", "example.org."},
		{"https3://example.org", "https3", "443", "example.org."},
		{"unix://example.org", "unix", "", "example.org."},
		{"ftp://x", "dns", "53", "ftp://x."},
		{"*.example.org", "dns", "53", "*.example.org."},
		{"example.org:dns", "dns", "53", "example.org:dns."},
		{"32/27.2.0.192.in-addr.arpa", "dns", "53", "32/27.2.0.192.in-addr.arpa."},
		{"10.0.0.0/24:53", "dns", "53", "0.0.10.in-addr.arpa."},
		{"10.0.0.0/8", "dns", "53", "10.in-addr.arpa."},
		{"10.9.8.7/24", "dns", "53", "8.9.10.in-addr.arpa."},
		{"0.0.0.0/0", "dns", "53", "in-addr.arpa."},
		{"192.0.2.64/31", "dns", "53", "64.2.0.192.in-addr.arpa. 65.2.0.192.in-addr.arpa."},
		{"172.16.4.0/22", "dns", "53", "4.16.172.in-addr.arpa. 5.16.172.in-addr.arpa. 6.16.172.in-addr.arpa. 7.16.172.in-addr.arpa."},
		{"2001:db8::/32", "dns", "53", "8.b.d.0.1.0.0.2.ip6.arpa."},
		{"2001:db8::/31", "dns", "53", "8.b.d.0.1.0.0.2.ip6.arpa. 9.b.d.0.1.0.0.2.ip6.arpa."},
		{"10.0.0/24", "dns", "53", "10.0.0/24."},
		{"10.0.0.0/33", "dns", "53", "10.0.0.0/33."},
		{`a\.b`, "dns", "53", `a\.b.`},
		{`a\.`, "dns", "53", `a\..`},
		{`a\`, "dns", "53", ""},
		{"", "dns", "53", ""},
		{":53", "dns", "53", ""},
		{".:", "dns", "53", ""},
		{"a..b", "dns", "53", ""},
		{".a", "dns", "53", ""},
		{"::/0", "dns", "53", ""},
		{strings.Repeat("a", 64), "dns", "53", ""},
		{strings.Repeat("a.", 130), "dns", "53", ""},
	} {
		z, err := ParseZone(test.key)
		if (err != nil) != (test.names == "") {
			t.Errorf("%q: %+v, %v", test.key, z, err)
			continue
		}
		if test.names == "" {
			continue
		}
		want := Zone{Written: test.key, Names: strings.Fields(test.names), Transport: test.transport, Port: test.port}
		if diff := cmp.Diff(want, z); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.key, diff)
		}
	}
}

func TestZones(t *testing.T) {
	f, err := Parse("c", []byte("example.org, 10.0.0.0/8:1053 {\n}\nb\na..b {\n}"))
	if err != nil {
		t.Fatal(err)
	}
	zones, err := f.Blocks[0].Zones()
	if err != nil || len(zones) != 2 || zones[1].Names[0] != "10.in-addr.arpa." || zones[1].Port != "1053" {
		t.Errorf("%+v, %v", zones, err)
	}
	f, _ = Parse("c", []byte("x a..b {\n}"))
	_, err = f.Blocks[0].Zones()
	if want := `c:1:3: reading a server block's key: zone is not a valid domain name: "a..b"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzParseZone: no panic, networks as package net reads them, names absolute and lower case.
func FuzzParseZone(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "2001:db8::/33", "::ffff:192.0.2.1/120", "a:b:c", "tls://x:1", `a\065\`, "1.2.3.4/024", "fe80::%e/64"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		prefix, ok := parseCIDR(key)
		_, network, err := net.ParseCIDR(key)
		if ok != (err == nil) {
			t.Fatalf("%q: %v, net: %v", key, ok, err)
		}
		if ok && !prefix.Addr().Is4In6() && prefix.String() != network.String() {
			t.Fatalf("%q: %v, net: %v", key, prefix, network)
		}
		z, err := ParseZone(key)
		if err != nil {
			return
		}
		for _, name := range z.Names {
			if name != strings.ToLower(name) || !strings.HasSuffix(name, ".") {
				t.Fatalf("%q: %q", key, name)
			}
		}
	})
}
