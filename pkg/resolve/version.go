package resolve

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is the version of a server or library. The zero value is an unknown version; every model of this package
// treats an unknown version as the newest it knows.
type Version struct{ Major, Minor, Patch int }

// ParseVersion finds a version in a tag of an image or in an output: "1.9.3", "v1.11.1-eksbuild.4", "coredns-1.8.0",
// "1.12". The first number with at least one dot and a number behind it counts, where it does not stand inside a word
// or a longer number. It says false if there is none.
func ParseVersion(s string) (Version, bool) {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			continue
		}
		if i > 0 && !startsVersion(s[:i]) {
			for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
				i++
			}
			continue
		}
		end := i
		for end < len(s) && (isDigit(s[end]) || s[end] == '.') {
			end++
		}
		if v, ok := parseNumbers(s[i:end]); ok {
			return v, true
		}
		i = end
	}
	return Version{}, false
}

// startsVersion tells whether a version may begin after before: at a break of words, or after a "v" that is one.
func startsVersion(before string) bool {
	before = strings.TrimSuffix(strings.TrimSuffix(before, "v"), "V")
	if before == "" {
		return true
	}
	c := before[len(before)-1]
	return !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z')
}

func parseNumbers(s string) (Version, bool) {
	parts := strings.Split(strings.Trim(s, "."), ".")
	if len(parts) < 2 {
		return Version{}, false
	}
	var n [3]int
	for i := range min(len(parts), len(n)) {
		// Nine digits fit every int; longer numbers are dates or hashes, no versions.
		if len(parts[i]) > 9 {
			return Version{}, false
		}
		var err error
		if n[i], err = strconv.Atoi(parts[i]); err != nil {
			return Version{}, false
		}
	}
	v := Version{n[0], n[1], n[2]}
	return v, v != Version{}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Known tells whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// Compare orders versions; an unknown version is after every other, because it is treated as the newest.
func (v Version) Compare(w Version) int {
	switch {
	case v == w:
		return 0
	case !v.Known():
		return 1
	case !w.Known():
		return -1
	}
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// Before tells whether v is known and older than major.minor.patch.
func (v Version) Before(major, minor, patch int) bool {
	return v.Compare(Version{major, minor, patch}) < 0
}

// String returns major.minor.patch, or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}
