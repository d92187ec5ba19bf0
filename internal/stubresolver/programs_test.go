//go:build linux

package stubresolver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompiled(t *testing.T) {
	got, err := Compiled(" musl=1.2.4=probes/musl  glibc=2.39=a=b ")
	want := []Program{{Library: "musl", Version: "1.2.4", command: "probes/musl"}, {Library: "glibc", Version: "2.39", command: "a=b"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Program{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"musl", "musl=1.2.4", "Go=1.26=probe"} {
		if got, err := Compiled(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
	if got, err := Compiled(""); err != nil || got != nil {
		t.Errorf("no text: %v, %v", got, err)
	}
}

func TestParse(t *testing.T) {
	o, err := parse("OK 192.0.2.2 2001:db8::1 192.0.2.1 192.0.2.2\n")
	if err != nil || o.Status != "OK" || len(o.Addresses) != 3 || o.Addresses[0].String() != "192.0.2.1" {
		t.Errorf("%v, %v", o, err)
	}
	if o, err := parse("died with status 6\n"); err != nil || o.Status != "died with status 6" {
		t.Errorf("%v, %v", o, err)
	}
	for _, line := range []string{"\n", "OK 192.0.2\n"} {
		if o, err := parse(line); err == nil {
			t.Errorf("%q: %v, want an error", line, o)
		}
	}
}
