package encode

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// readJUnit reads a report strictly to its end.
func readJUnit(t *testing.T, data []byte) junitSuites {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
	}
	var suites junitSuites
	if err := xml.Unmarshal(data, &suites); err != nil {
		t.Fatal(err)
	}
	return suites
}

// checkJUnit fails the test unless the counts are right and every finding is there with its text.
func checkJUnit(t *testing.T, r *diagnose.Report, data []byte) {
	t.Helper()
	suites := readJUnit(t, data)
	var sum junitSuites
	var failures, notes []string
	for _, s := range suites.Suites {
		var got junitSuite
		names := map[string]bool{}
		for _, c := range s.Cases {
			got.Tests++
			switch {
			case c.Failure != nil:
				got.Failures++
				failures = append(failures, c.Failure.Type+" "+c.Failure.Message)
				if !strings.Contains(c.Failure.Text, c.Failure.Message) {
					t.Errorf("the text of %s lacks the message", c.Name)
				}
			case c.Skipped != nil:
				got.Skipped++
			case c.Out != nil && strings.HasPrefix(c.Out.Text, "info "):
				notes = append(notes, c.Out.Text)
			}
			if names[c.Class+" "+c.Name] {
				t.Errorf("two cases have the name %s %s", c.Class, c.Name)
			}
			names[c.Class+" "+c.Name] = true
		}
		if got.Tests != s.Tests || got.Failures != s.Failures || got.Skipped != s.Skipped || s.Errors != 0 {
			t.Errorf("suite %s tells %d tests, %d failures, %d skipped and has %d, %d, %d",
				s.Name, s.Tests, s.Failures, s.Skipped, got.Tests, got.Failures, got.Skipped)
		}
		sum.Tests += s.Tests
		sum.Failures += s.Failures
		sum.Skipped += s.Skipped
	}
	if sum.Tests != suites.Tests || sum.Failures != suites.Failures || sum.Skipped != suites.Skipped || suites.Errors != 0 {
		t.Errorf("the counts of all suites are %d, %d, %d, want %d, %d, %d",
			suites.Tests, suites.Failures, suites.Skipped, sum.Tests, sum.Failures, sum.Skipped)
	}
	var want []string
	infos := 0
	for _, f := range r.Findings {
		if f.Severity == finding.Info {
			infos++
			continue
		}
		want = append(want, f.Severity.String()+" "+finding.Printable(f.Message))
	}
	slices.Sort(want)
	slices.Sort(failures)
	if diff := cmp.Diff(want, failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if len(notes) != infos {
		t.Errorf("%d notes have output, want %d", len(notes), infos)
	}
}

func TestJUnit(t *testing.T) {
	for _, r := range append(hostileReports(), full(), clean(), blind()) {
		checkJUnit(t, r, encoded(t, "junit", r))
	}
}

// states tells the state of each case of the only suite.
func states(t *testing.T, r *diagnose.Report, codes []*finding.Code) map[string]string {
	t.Helper()
	var b bytes.Buffer
	if err := JUnit(&b, r, codes); err != nil {
		t.Fatal(err)
	}
	suites := readJUnit(t, b.Bytes())
	if len(suites.Suites) != 1 {
		t.Fatalf("%d suites, want one", len(suites.Suites))
	}
	got := map[string]string{}
	for _, c := range suites.Suites[0].Cases {
		state := "passed"
		switch {
		case c.Failure != nil:
			state = "failed"
		case c.Skipped != nil:
			state = "skipped"
		case c.Out != nil:
			state = "passed with output"
		}
		got[strings.TrimPrefix(c.Class, "dnsmesh.")] += state
	}
	return got
}

func TestJUnitStates(t *testing.T) {
	r := clean()
	r.Findings = []finding.Finding{
		{Code: "DM3004", Severity: finding.Warning, Message: "m"},
		{Code: "DM1009", Severity: finding.Info, Message: "m"},
	}
	r.Skipped = []diagnose.Skipped{
		{Check: "aliases", Codes: []string{"DM2003", "DM3004"}, Reason: "absent"}, // another check has found DM3004
		{Check: "corefiles", Codes: []string{"DM3005"}, Reason: "absent", Partly: true},
		{Check: "others", Codes: []string{"DM8888"}, Reason: "absent"}, // not in the list of codes
	}
	want := map[string]string{
		"DM1002": "passed", "DM1009": "passed with output", "DM2003": "skipped", "DM3004": "failed",
		"DM3005": "passed with output", "DM8888": "skipped",
	}
	if diff := cmp.Diff(want, states(t, r, codes())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing passes where no check ran.
func TestJUnitBlind(t *testing.T) {
	for code, state := range states(t, blind(), codes()) {
		if state != "skipped" {
			t.Errorf("%s %s", code, state)
		}
	}
}

func FuzzJUnit(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, name, message, text, block string) {
		r := hostile(name, message, text, block)
		checkJUnit(t, r, encoded(t, "junit", r))
	})
}
