package resolve

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestAbsolute(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := label + "." + label + "." + label + "." + label[:61]
	for in, want := range map[string]string{
		".":             ".",
		"a":             "a.",
		"A.Example.ORG": "a.example.org.",
		"a.example.":    "a.example.",
		"_http._tcp.a":  "_http._tcp.a.",
		"*.a":           "*.a.",
		longest:         longest + ".",
		longest + ".":   longest + ".",
	} {
		if got, err := Absolute(in); err != nil || got != want {
			t.Errorf("Absolute(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "..", "a..", ".a", "a..b", label + "a", longest + "b", "a b", "a\tb", "a\x00", "a\x1b[2J", "é", "a/b", "a:80", "[::1]", `a\.b`} {
		if got, err := Absolute(in); err == nil {
			t.Errorf("Absolute(%q) = %q, want an error", in, got)
		}
	}
}

func TestUnder(t *testing.T) {
	for _, tt := range []struct {
		name, zone string
		want       bool
	}{
		{"a.b.", "b.", true}, {"b.", "b.", true}, {"ab.", "b.", false}, {"b.", "a.b.", false}, {"a.", ".", true}, {".", ".", true},
	} {
		if got := Under(tt.name, tt.zone); got != tt.want {
			t.Errorf("Under(%q, %q) = %v", tt.name, tt.zone, got)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for in, want := range map[string]Version{
		"1.9.3":                   {1, 9, 3},
		"v1.11.1-eksbuild.4":      {1, 11, 1},
		"coredns-1.8.0":           {1, 8, 0},
		"1.12":                    {1, 12, 0},
		"V1.2.3":                  {1, 2, 3},
		"CoreDNS-1.11.3":          {1, 11, 3},
		"v1.11.3-hotfix.20240813": {1, 11, 3},
		"1.14.13.5":               {1, 14, 13},
		"build7-v1.2.3":           {1, 2, 3},
		"20240813-1.9.4":          {1, 9, 4},
		"1.2.4_r1":                {1, 2, 4},
	} {
		if got, ok := ParseVersion(in); !ok || got != want {
			t.Errorf("ParseVersion(%q) = %v, %v, want %v", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "latest", "v1", "sha256-0a1b2c", "20240813", "main-abc1.2x", "x1.2.3", "1.", "0.0.0", "99999999999.1"} {
		if got, ok := ParseVersion(in); ok {
			t.Errorf("ParseVersion(%q) = %v, want none", in, got)
		}
	}
}

func TestVersionOrder(t *testing.T) {
	order := []Version{{1, 6, 9}, {1, 8, 6}, {1, 10, 0}, {1, 10, 1}, {2, 0, 0}, {}}
	for i, a := range order {
		for j, b := range order {
			if got := a.Compare(b); got != compareInt(i, j) {
				t.Errorf("%v against %v: %d", a, b, got)
			}
		}
	}
	if (Version{}).Before(9, 9, 9) {
		t.Error("an unknown version is older than a known one")
	}
	if got := (Version{1, 2, 3}).String() + " " + (Version{}).String(); got != "1.2.3 unknown" {
		t.Error(got)
	}
}

func compareInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestTexts: every value of every enumeration has a text of its own, and so has one that is none.
func TestTexts(t *testing.T) {
	for _, list := range [][]fmt.Stringer{
		{NoError, FormErr, ServFail, NXDomain, NotImp, Refused, NoReply, Rcode(9)},
		{Next, Take, Stop, LeaveList, Action(0)},
		{Resolved, Literal, NotFound, NoAddress, TryAgain, Failed, Invalid, Status(0)},
		{Resolves, Fails, Depends, Verdict(0)},
		{Glibc, Musl, Go, Library(0)},
		{Resolver{Library: Musl}, Resolver{Musl, Version{1, 2, 3}}},
		{NoData(""), CNAMEAlone(""), Negative(NXDomain, ""), Found(), Found(mustAddr("192.0.2.1")), Unknown("")},
	} {
		seen := map[string]bool{}
		for _, v := range list {
			if s := v.String(); s == "" || seen[s] {
				t.Errorf("%T: text %q is empty or used twice", v, s)
			} else {
				seen[s] = true
			}
		}
	}
}
