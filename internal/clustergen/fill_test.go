package clustergen

import (
	"testing"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/checks"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// TestFill writes a small cluster to a real API server, which must take all of it, and reads it back.
func TestFill(t *testing.T) {
	cp := realtool.New(t, realtool.Options{})
	config, err := cp.Config()
	if err != nil {
		t.Fatal(err)
	}
	c := New(5, Scale(0.01))
	if err := c.Fill(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	r, err := load.Live(t.Context(), config, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Snapshot
	want := 0
	for range c.Pods() {
		want++
	}
	if len(s.Pods) != want {
		t.Errorf("%d pods, want %d", len(s.Pods), want)
	}
	ready := 0
	for _, p := range s.Pods {
		if len(p.IPs) == 0 {
			t.Errorf("pod %s/%s has no address", p.Namespace, p.Name)
		}
		if p.Ready {
			ready++
		}
	}
	if ready == 0 {
		t.Error("no pod is ready")
	}
	report := diagnose.Run(s, checks.All(), diagnose.Options{})
	errors := 0
	for _, f := range report.Findings {
		if f.Severity == finding.Error {
			errors++
		}
	}
	if errors != len(Faults()) {
		t.Errorf("%d errors, want %d", errors, len(Faults()))
	}
}
