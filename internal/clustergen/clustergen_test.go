package clustergen

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/checks"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

func jsonOf(t *testing.T, seed uint64, size Size) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := New(seed, size).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDeterministic(t *testing.T) {
	size := Scale(0.02)
	first := jsonOf(t, 7, size)
	if !bytes.Equal(first, jsonOf(t, 7, size)) {
		t.Error("two clusters of one seed differ")
	}
	if bytes.Equal(first, jsonOf(t, 8, size)) {
		t.Error("two clusters of different seeds are equal")
	}
}

func TestScale(t *testing.T) {
	if diff := cmp.Diff(Size{Namespaces: 500, Services: 10_000, Aliases: 1_000, EndpointSlices: 8_000, Pods: 20_000}, Scale(1)); diff != "" {
		t.Errorf("size of the bounds (-want +got):\n%s", diff)
	}
	for _, factor := range []float64{0.01, 0.1, 1} {
		size := Scale(factor)
		c := New(1, size)
		names := map[string]bool{}
		got := Size{}
		for s := range c.Services() {
			if names[s.Namespace+"/"+s.Name] {
				t.Fatalf("two Services %s/%s", s.Namespace, s.Name)
			}
			names[s.Namespace+"/"+s.Name] = true
			got.Services++
		}
		for range c.Namespaces() {
			got.Namespaces++
		}
		for range c.EndpointSlices() {
			got.EndpointSlices++
		}
		for range c.Pods() {
			got.Pods++
		}
		for _, s := range c.services {
			if s.target != "" {
				got.Aliases++
			}
		}
		got.Namespaces -= len(systemNamespaces())
		got.Services -= len(systemServices()) + len(faultServices())
		got.EndpointSlices -= len(systemSlices())
		got.Pods -= len(systemPods()) + len(faultPods())
		if diff := cmp.Diff(size, got); diff != "" {
			t.Errorf("cluster of size %v (-want +got):\n%s", factor, diff)
		}
	}
}

// TestFaults is also the proof that a healthy cluster gives nothing at W or E: whatever is found must be a fault that was
// put there.
func TestFaults(t *testing.T) {
	r, err := load.Files(t.Context(), []string{"-"}, bytes.NewReader(jsonOf(t, 3, Scale(0.1))), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report := diagnose.Run(r.Snapshot, checks.All(), diagnose.Options{})
	got := map[Fault]int{}
	for _, f := range report.Findings {
		switch {
		case f.Severity == finding.Info:
		case f.Severity == finding.Error && slices.Contains(Faults(), Fault{f.Code, f.Object}):
			got[Fault{f.Code, f.Object}]++
		default:
			t.Errorf("%s %s %s: %s", f.Severity, f.Code, f.Object, f.Message)
		}
	}
	for _, f := range Faults() {
		if got[f] != 1 {
			t.Errorf("%s of %s was found %d times, want once", f.Code, f.Object, got[f])
		}
	}
}
