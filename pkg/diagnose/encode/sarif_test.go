package encode

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// sarifSchema is that of OASIS, with the formats of URIs asserted.
func sarifSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "sarif-schema-2.1.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// checkSARIF fails the test unless the log is valid and its references lead where they should.
func checkSARIF(t *testing.T, schema *jsonschema.Schema, r *diagnose.Report, data []byte) {
	t.Helper()
	valid(t, schema, data)
	var log sarifLog
	if err := json.Unmarshal(data, &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if len(run.Results) != len(r.Findings) {
		t.Fatalf("%d results of %d findings", len(run.Results), len(r.Findings))
	}
	seen := map[string]bool{}
	for i, result := range run.Results {
		f := r.Findings[i]
		if result.RuleID != f.Code {
			t.Errorf("result %d has the rule %q, want %q", i, result.RuleID, f.Code)
		}
		known := byID(codes())[f.Code] != nil
		if known != (result.RuleIndex != nil) || known && run.Tool.Driver.Rules[*result.RuleIndex].ID != f.Code {
			t.Errorf("result %d: the index does not lead to rule %s", i, f.Code)
		}
		if strings.Contains(result.Message.Text, "](") {
			t.Errorf("the message %q may hold a link", result.Message.Text)
		}
		single := strings.NewReplacer("{{", "", "}}", "").Replace(result.Message.Text)
		if strings.ContainsAny(single, "{}") {
			t.Errorf("the message %q may hold a placeholder", result.Message.Text)
		}
		for _, hash := range result.PartialFingerprints {
			if seen[hash] {
				t.Errorf("the fingerprint %s occurs twice", hash)
			}
			seen[hash] = true
		}
	}
	if n := len(run.Invocations[0].Notifications); n != len(r.Skipped) {
		t.Errorf("%d notifications of %d skipped checks", n, len(r.Skipped))
	}
	for _, n := range run.Invocations[0].Notifications {
		if run.Tool.Driver.Notifications[n.Descriptor.Index].ID != n.Descriptor.ID {
			t.Errorf("the index of notification %q is wrong", n.Descriptor.ID)
		}
	}
	if run.Invocations[0].ExecutionSuccessful != r.Judged() {
		t.Error("success is told of a run that judged nothing, or the reverse")
	}
}

func TestSARIF(t *testing.T) {
	schema := sarifSchema(t)
	for _, r := range append(hostileReports(), full(), clean(), blind()) {
		checkSARIF(t, schema, r, encoded(t, "sarif", r))
	}
}

func TestSARIFWithoutVersionAndCodes(t *testing.T) {
	var b bytes.Buffer
	if err := SARIF(&b, full(), nil, ""); err != nil {
		t.Fatal(err)
	}
	valid(t, sarifSchema(t), b.Bytes())
}

func TestSARIFSchemaRefuses(t *testing.T) {
	schema := sarifSchema(t)
	log := string(encoded(t, "sarif", full()))
	for _, change := range [][2]string{
		{`"level": "note"`, `"level": "info"`},
		{`"uri": "dns/Core%20file"`, `"uri": "dns/Core file%"`},
		{`"startLine": 3`, `"startLine": 0`},
	} {
		changed := strings.Replace(log, change[0], change[1], 1)
		if changed == log {
			t.Fatalf("the log has no %s", change[0])
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(changed))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(doc) == nil {
			t.Errorf("the schema accepts %s", change[1])
		}
	}
}

func TestIsFile(t *testing.T) {
	for source, want := range map[string]bool{
		"": false, "-": false, "ConfigMap kube-system/coredns Corefile": false, "Corefile": true, "ConfigMap": true,
		"ConfigMap notes.txt": true, "configs/ConfigMap a/b": true,
	} {
		if got := isFile(source); got != want {
			t.Errorf("isFile(%q) = %v, want %v", source, got, want)
		}
	}
}

func TestFileURI(t *testing.T) {
	for path, want := range map[string]string{
		"Corefile": "Corefile", "./dns//Corefile": "dns/Corefile", "../a b": "../a%20b", "/etc/coredns/Corefile": "file:///etc/coredns/Corefile",
		`C:\dns\Corefile`: "file:///C:/dns/Corefile", `dns\Corefile`: "dns/Corefile", "a:b": "./a:b", "a%b?c#d": "a%25b%3Fc%23d", "\xff\n": "%FF%0A",
	} {
		if got := fileURI(path); got != want {
			t.Errorf("fileURI(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	base := func() finding.Finding {
		return finding.Finding{Code: "DM1002", Message: "m", Object: finding.Object{Kind: "Service", Namespace: "a", Name: "b"}}
	}
	same := base()
	same.Position = &finding.Position{Source: "Corefile", Line: 3}
	same.Severity = finding.Info
	same.Evidence = []finding.Evidence{{Label: "line", Text: "x"}}
	if fingerprint(base()) != fingerprint(same) {
		t.Error("the fingerprint depends on more than the finding itself")
	}
	for name, change := range map[string]func(*finding.Finding){
		"code":      func(f *finding.Finding) { f.Code = "DM1003" },
		"cluster":   func(f *finding.Finding) { f.Cluster = "c" },
		"message":   func(f *finding.Finding) { f.Message = "n" },
		"kind":      func(f *finding.Finding) { f.Object.Kind = "Pod" },
		"namespace": func(f *finding.Finding) { f.Object.Namespace = "c" },
		"name":      func(f *finding.Finding) { f.Object.Name = "c" },
		"border":    func(f *finding.Finding) { f.Object.Namespace, f.Object.Name = "ab", "" },
	} {
		f := base()
		change(&f)
		if fingerprint(f) == fingerprint(base()) {
			t.Errorf("the fingerprint does not depend on the %s", name)
		}
	}
	// A change of the recipe would open every alert anew: it needs another version in the key.
	if got, want := fingerprint(base()), "b8e8540452b68df4f9a8b592c66d5708"; got != want {
		t.Errorf("fingerprint is %s, want %s", got, want)
	}
}

func TestSARIFMessage(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "{0}": "{{0}}", "[x](1)": "[x] (1)", "a\x1bb": `a\x1bb`,
	} {
		if diff := cmp.Diff(sarifText{Text: want}, sarifMessage(in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func FuzzSARIF(f *testing.F) {
	addTexts(f)
	schema := sarifSchema(f)
	f.Fuzz(func(t *testing.T, name, message, text, block string) {
		r := hostile(name, message, text, block)
		checkSARIF(t, schema, r, encoded(t, "sarif", r))
	})
}
