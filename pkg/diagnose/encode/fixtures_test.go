package encode

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"unicode"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

func codes() []*finding.Code {
	return []*finding.Code{
		{
			ID: "DM1002", Severity: finding.Error, Title: "a host name reaches a namespace: it does not resolve",
			Doc: `A workload uses a host name that is no Service in its own namespace, but the name of another
namespace (RFC 2308 calls the answer NODATA).

Give the name a Service, or use the full name of the Service that is meant:

    apiVersion: v1
    kind: Service
    metadata: {name: my-app, namespace: new-namespace-1}

    spec: {type: ExternalName}

Aliases that nobody uses can be deleted.`,
		},
		{ID: "DM1009", Severity: finding.Info, Title: "each look-up of an outside name asks for others first", Doc: "Write a final dot."},
		{ID: "DM2003", Severity: finding.Error, Title: "an alias points to an IP address", Doc: "Use a headless Service."},
		{ID: "DM3004", Severity: finding.Error, Title: "a rewrite has no answer rule", Doc: "Add `answer auto`."},
		{ID: "DM3005", Severity: finding.Error, Title: "a regular expression cannot match", Doc: "Write it in lower case."},
	}
}

// full is a report on two clusters in which every field is set at least once.
func full() *diagnose.Report {
	return &diagnose.Report{
		APIVersion: diagnose.APIVersion, Kind: diagnose.ReportKind,
		Clusters: []diagnose.ClusterSummary{
			{
				Name: "prod", ServerVersion: "v1.36.3", Domain: "cluster.local",
				DNS: &diagnose.DNSSummary{
					Implementation: "coredns", Version: "1.14.1", Assumed: true,
					Object: &finding.Object{Kind: "Deployment", Namespace: "kube-system", Name: "coredns"}, Ready: 1, Total: 2,
				},
				NodeLocal: true, NodeServer: "Talos host DNS", Distribution: "kubeadm v1.36.3", CNI: "cilium 1.19.0",
				Objects: map[string]int{"pods": 17012, "services": 10006},
			},
			{Name: "edge.yaml", Domain: "cluster.local", Objects: map[string]int{}},
		},
		Findings: []finding.Finding{
			{
				Code: "DM1002", Severity: finding.Error, Cluster: "prod",
				Message: `"ledger" reaches namespace ledger, not a Service: it does not resolve`,
				Object:  finding.Object{Kind: "Deployment", Namespace: "payments", Name: "api"},
				Evidence: []finding.Evidence{
					{Label: "used in", Text: "args --ledger-endpoint=ledger:8443"},
					{
						Label: "used in", Text: "ConfigMap payments/api-config application.yaml:4",
						Position: &finding.Position{Source: "ConfigMap payments/api-config application.yaml", Line: 4},
					},
					{Label: "walk", Text: "ledger.payments.svc.cluster.local NXDOMAIN → ledger.svc.cluster.local NODATA"},
				},
				Related: []finding.Object{{Kind: "Service", Namespace: "backoffice", Name: "ledger"}, {Kind: "Namespace", Name: "ledger"}},
				Fix: &finding.Fix{
					Summary:  "add an alias in payments, or use ledger.backoffice.svc.cluster.local",
					Manifest: "apiVersion: v1\nkind: Service\nmetadata:\n  name: ledger\n  namespace: payments\nspec:\n  type: ExternalName\n  externalName: ledger.backoffice.svc.cluster.local\n",
					Commands: []string{"kubectl dnsmesh explain DM1002", "kubectl dnsmesh trace ledger --from deploy/api -n payments"},
				},
			},
			{
				Code: "DM3004", Severity: finding.Error, Cluster: "edge.yaml",
				Message:  `"rewrite name regex" has no answer rule: glibc drops the answer`,
				Object:   finding.Object{Kind: "File", Name: "dns/Core file"},
				Position: &finding.Position{Source: "dns/Core file", Line: 3, Col: 5},
				Evidence: []finding.Evidence{{
					Label: "line", Text: `rewrite name regex (.*)\.mesh {1}.svc.cluster.local`,
					Position: &finding.Position{Source: "dns/Core file", Line: 3, Col: 5},
				}},
				Fix: &finding.Fix{
					Summary: "add answer auto",
					Diff:    "--- dns/Core file\n+++ dns/Core file\n@@ -1,4 +1,4 @@\n .:53 {\n \n-\trewrite name regex a b\n+\trewrite name regex a b answer auto\n }\n",
				},
			},
			{
				Code: "DM3004", Severity: finding.Error, Cluster: "edge.yaml",
				Message:  `"rewrite name regex" has no answer rule: glibc drops the answer`,
				Object:   finding.Object{Kind: "File", Name: "dns/Core file"},
				Position: &finding.Position{Source: "dns/Core file", Line: 9},
				Evidence: []finding.Evidence{{Label: "lines", Text: "rewrite {\n\n\tname a b\n}"}},
			},
			{
				Code: "DM9999", Severity: finding.Warning, Cluster: "prod",
				Message:  "a code that the caller does not list",
				Object:   finding.Object{Kind: "Node", Name: "n1"},
				Evidence: []finding.Evidence{},
			},
			{
				Code: "DM1009", Severity: finding.Info, Cluster: "prod",
				Message:  `"api.example.org" costs 4 queries before it is asked`,
				Object:   finding.Object{Kind: "Deployment", Namespace: "shop", Name: "web"},
				Evidence: []finding.Evidence{{Label: "used in", Text: "env API_URL=https://api.example.org/v1"}},
				Fix:      &finding.Fix{Summary: "write api.example.org. with a final dot"},
			},
		},
		Skipped: []diagnose.Skipped{
			{Check: "aliases", Codes: []string{"DM2003"}, Cluster: "edge.yaml", Reason: "no object of kind Service was given"},
			{Check: "corefiles", Codes: []string{"DM3004", "DM3005"}, Cluster: "prod", Reason: `configmaps is forbidden: User "jane" cannot list resource`, Partly: true},
		},
		Summary: diagnose.Summary{Errors: 3, Warnings: 1, Infos: 1, Suppressed: 2, Checks: 9},
	}
}

// clean is a report on one cluster without findings.
func clean() *diagnose.Report {
	return &diagnose.Report{
		APIVersion: diagnose.APIVersion, Kind: diagnose.ReportKind,
		Clusters: []diagnose.ClusterSummary{{Domain: "cluster.local"}},
		Summary:  diagnose.Summary{Checks: 4},
	}
}

// blind is a report on one cluster of which nothing could be read.
func blind() *diagnose.Report {
	return &diagnose.Report{
		APIVersion: diagnose.APIVersion, Kind: diagnose.ReportKind,
		Clusters: []diagnose.ClusterSummary{{Name: "prod", Domain: "cluster.local"}},
		Skipped:  []diagnose.Skipped{{Check: "aliases", Codes: []string{"DM2003"}, Reason: "services is forbidden"}},
	}
}

// texts are hostile, or just unusual, in one format or another.
func texts() []string {
	return []string{
		"", " ", "plain words, and more", "\x1b[31mred\x1b[0m", "a\u202eb\u2066c\u200d", "\u0085\u2028\u2029\ufeff\ufffe", "\x00\x01\x7f\u009b", "bad \xff\xfe utf-8",
		"| a || b |", `\| \\| \`, "`", "``` yaml", "~~~", "````\n```\n`````", "<script>alert(1)</script>", "<!-- -->", "&lt;&#60;&amp;",
		"[click](https://evil.example)", "![x](//evil.example/p.png)", "[x]: //evil.example", "https://evil.example www.evil.example a@evil.example",
		"@admin please #1 GH-12 !3 deadbeefcafe 1234567 $x$ :tada: ~~a~~ *b* __c__ H~2~O x^2^", "# h", "1. a", "2) b", "- a", "+ a", "* a", "> q", "===", "---", "\ta",
		"a\n\n# h\n\n| x |\n| - |\n", "a\r\nb", "]]>", "<![CDATA[", "{0} {{1}} {", "x](1)", "\U000e0041\U0001f600 ünïcode → …", "rune runee\x01rune0000202E", `\x01rune0000202E \U0000202E`,
		"'- \"(a)\" -- don't -", "../../etc/passwd", `C:\dns\Corefile`, "a:b?c#d%", "yes", "null", "0x1f", "1e3", "- a: b",
	}
}

// hostile is a report in which every text is one of the given, and each is in a place of each kind.
func hostile(name, message, text, block string) *diagnose.Report {
	at := &finding.Position{Source: name, Line: 2, Col: 3}
	object := finding.Object{Kind: text, Namespace: name, Name: message}
	f := finding.Finding{
		Code: "DM1002", Severity: finding.Warning, Message: message, Cluster: name, Object: object, Position: at,
		Evidence: []finding.Evidence{{Label: name, Text: block, Position: at}, {Label: message, Text: text}},
		Related:  []finding.Object{object},
		Fix:      &finding.Fix{Summary: text, Manifest: block, Diff: block + "\n" + text, Commands: []string{block, name}},
	}
	note := f
	note.Severity, note.Code = finding.Info, "DM1009"
	return &diagnose.Report{
		APIVersion: diagnose.APIVersion, Kind: diagnose.ReportKind,
		Clusters: []diagnose.ClusterSummary{{
			Name: name, ServerVersion: text, Domain: message, NodeServer: text, Distribution: block, CNI: message,
			DNS:     &diagnose.DNSSummary{Implementation: name, Version: text, Object: &object},
			Objects: map[string]int{"pods": 1},
		}},
		Findings: []finding.Finding{f, note},
		Skipped: []diagnose.Skipped{
			{Check: "aliases", Codes: []string{"DM2003"}, Cluster: name, Reason: text},
			{Check: "corefiles", Codes: []string{"DM3004"}, Cluster: name, Reason: block, Partly: true},
		},
		Summary: diagnose.Summary{Warnings: 1, Infos: 1, Checks: 1},
	}
}

// hostileReports has every text in every place.
func hostileReports() []*diagnose.Report {
	var rs []*diagnose.Report
	list := texts()
	for i := range list {
		at := func(k int) string { return list[(i+k)%len(list)] }
		rs = append(rs, hostile(at(0), at(7), at(13), at(23)+"\n"+at(29)))
	}
	return rs
}

func addTexts(f *testing.F) {
	list := texts()
	for i := range list {
		at := func(k int) string { return list[(i+k)%len(list)] }
		f.Add(at(0), at(7), at(13), at(23)+"\n"+at(29))
	}
}

// encoders are all of them with the signature of JSON.
func encoders() map[string]func(io.Writer, *diagnose.Report) error {
	return map[string]func(io.Writer, *diagnose.Report) error{
		"json":     JSON,
		"yaml":     YAML,
		"markdown": func(w io.Writer, r *diagnose.Report) error { return Markdown(w, r, codes()) },
		"sarif":    func(w io.Writer, r *diagnose.Report) error { return SARIF(w, r, codes(), "v1.2.3") },
		"junit":    func(w io.Writer, r *diagnose.Report) error { return JUnit(w, r, codes()) },
	}
}

// encoded returns what an encoder writes, and fails for a rune in it that could steer a viewer.
func encoded(t *testing.T, format string, r *diagnose.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encoders()[format](&b, r); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	for i, c := range b.String() {
		if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
			t.Errorf("%s: %U at byte %d could steer a viewer", format, c, i)
		}
	}
	return b.Bytes()
}

// failing is a writer that never writes.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriterError(t *testing.T) {
	want := errors.New("disk full")
	for format, encode := range encoders() {
		if err := encode(failing{want}, full()); !errors.Is(err, want) {
			t.Errorf("%s returns %v, want %v", format, err, want)
		}
	}
}
