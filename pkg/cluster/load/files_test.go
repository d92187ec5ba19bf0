package load

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// objects is a small cluster in the forms that kubectl and people write.
const objects = `apiVersion: v1
kind: Namespace
metadata: {name: payments, creationTimestamp: "2026-01-01T00:00:00Z", uid: 1-2-3}
spec: {finalizers: [kubernetes]}
status: {phase: Active}
---
# a comment
apiVersion: v1
kind: Service
metadata:
  name: ledger
  namespace: payments
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    dnsmesh.io/ignore: DM2006
    metallb.io/address-pool: lan
  managedFields: [{manager: kubectl}]
spec:
  type: ClusterIP
  clusterIP: 10.96.1.2
  sessionAffinity: None
  selector: {app: ledger}
  ports: [{name: http, port: 80, targetPort: 8080}]
status: {loadBalancer: {}}
...
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: payments}
data: {password: c2VjcmV0}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  template:
    metadata: {labels: {app: api}}
    spec:
      serviceAccountName: api
      containers:
      - name: api
        image: registry.example.org/api:1
        imagePullPolicy: Always
        env:
        - {name: LEDGER, value: "http://ledger:80"}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: password}}}
        - {name: DEBUG, valueFrom: {configMapKeyRef: {name: settings, key: debug}}}
        volumeMounts:
        - {name: settings, mountPath: /etc/api}
        - {name: token, mountPath: /var/run/token}
        livenessProbe: {httpGet: {port: 8080}}
      volumes:
      - {name: settings, configMap: {name: files, defaultMode: 420, items: [{key: a.yaml, path: a.yaml, mode: 420}]}}
      - {name: token, secret: {secretName: s}}
`

const configMaps = `{"kind":"List","apiVersion":"v1","items":[
 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"default"},"data":{"debug":"1","more":"2"}},
 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"files","namespace":"default"},"data":{"a.yaml":"x: y","b.yaml":"z"}},
 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"unused","namespace":"default"},"data":{"a":"b"}},
 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"coredns","namespace":"kube-system"},"data":{"Corefile":".:53 {\n whoami\n}\n"}}
]}`

// read reads one text as standard input.
func read(t *testing.T, text string) (*Result, error) {
	t.Helper()
	return Files(t.Context(), []string{"-"}, strings.NewReader(text), Options{})
}

func mustRead(t *testing.T, text string) *Result {
	t.Helper()
	r, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// saved returns what Write writes, unpacked: a readable form of a snapshot for comparisons.
func saved(t *testing.T, s *cluster.Snapshot) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, ""); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReducedFields(t *testing.T) {
	r := mustRead(t, objects+"\n---\n"+configMaps)
	want := strings.Join([]string{
		`{"apiVersion":"dnsmesh.io/v1alpha1","kind":"Snapshot","name":"-","apiGroups":null,"partial":true,"objects":6,` +
			`"absent":{"endpointslices":"no EndpointSlice in the input","nodes":"no Node in the input"}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"payments"},"status":{"phase":"Active"}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"ledger","namespace":"payments",` +
			`"annotations":{"dnsmesh.io/ignore":"DM2006","metallb.io/address-pool":"lan"}},` +
			`"spec":{"ports":[{"name":"http","port":80,"targetPort":8080}],"selector":{"app":"ledger"},` +
			`"clusterIP":"10.96.1.2","type":"ClusterIP"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"files","namespace":"default"},"data":{"a.yaml":"x: y"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"default"},"data":{"debug":"1"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"coredns","namespace":"kube-system"},` +
			`"data":{"Corefile":".:53 {\n whoami\n}\n"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"api","namespace":"default"},"spec":{"template":` +
			`{"metadata":{"labels":{"app":"api"}},"spec":{"volumes":[{"name":"settings","configMap":{"name":"files",` +
			`"items":[{"key":"a.yaml","path":"a.yaml"}]}}],"containers":[{"name":"api","image":"registry.example.org/api:1",` +
			`"env":[{"name":"LEDGER","value":"http://ledger:80"},{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"key":""}}},` +
			`{"name":"DEBUG","valueFrom":{"configMapKeyRef":{"name":"settings","key":"debug"}}}],"resources":{},` +
			`"volumeMounts":[{"name":"settings","mountPath":"/etc/api"}]}]}}}}`,
		"",
	}, "\n")
	if diff := cmp.Diff(want, saved(t, r.Snapshot)); diff != "" {
		t.Errorf("reduced objects (-want +got):\n%s", diff)
	}
	if r.Skipped["Secret"] != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "Secrets") {
		t.Errorf("the Secret is not told of: %v, %v", r.Skipped, r.Notes)
	}
}

// TestForms gives the same objects in every form; each must give the snapshot that plain YAML gives.
func TestForms(t *testing.T) {
	pod := func(indent string) string {
		return strings.ReplaceAll("metadata: {name: p, namespace: a}\nspec: {containers: [{name: c, image: i}]}\n", "\n", "\n"+indent)
	}
	want := saved(t, mustRead(t, "apiVersion: v1\nkind: Pod\n"+pod("")).Snapshot)
	utf16le := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("apiVersion: v1\r\nkind: Pod\r\n" + pod(""))) {
		utf16le = append(utf16le, byte(u), byte(u>>8))
	}
	const json = `{"metadata":{"namespace":"a","name":"p"},"spec":{"containers":[{"image":"i","name":"c"}]}`
	forms := map[string]string{
		"gzip":           gzipped(t, "apiVersion: v1\nkind: Pod\n"+pod("")),
		"UTF-16":         string(utf16le),
		"BOM":            "\ufeffapiVersion: v1\nkind: Pod\n" + pod(""),
		"CRLF":           strings.ReplaceAll("---\nkind: Pod\n"+pod("")+"---\n", "\n", "\r\n"),
		"directive":      "%YAML 1.1\n---\nkind: Pod\n" + pod(""),
		"indented":       "  kind: Pod\n  " + pod("  "),
		"marker":         "--- {kind: Pod, metadata: {name: p, namespace: a}, spec: {containers: [{name: c, image: i}]}}\n",
		"JSON":           json + `,"kind":"Pod"}`,
		"JSON documents": "---\n" + json + `,"kind":"Pod"}` + "\n---\n",
		"JSON array":     "[" + json + `,"kind":"Pod"}]`,
		"PodList":        `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + json + `}]}`,
		"items first":    `{"items":[` + json + `}],"metadata":{},"kind":"PodList","apiVersion":"v1"}`,
		"nested":         `{"kind":"List","items":[{"kind":"List","items":[` + json + `,"kind":"Pod"}]}]}`,
		"YAML list":      "apiVersion: v1\nitems:\n- " + pod("  ") + "\nkind: PodList\n",
		"nested YAML":    "kind: List\nitems:\n- kind: PodList\n  items:\n  - " + pod("    ") + "\n",
		"anchors":        "a: &a {kind: Pod, metadata: &m {name: p, namespace: a}}\n<<: *a\nmetadata: *m\nspec: {containers: [{name: c, image: i}]}\n",
		"dump": `{"kind":"PodList","items":[` + json + `}]}` + "\n==== START logs for container c of pod a/p ====\n" +
			"{broken\n---\n==== END logs for container d of pod a/p ====\n==== END logs for container c of pod a/p ====\n" +
			`{"kind":"EventList","items":[]}` + "\n",
	}
	for name, text := range forms {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, saved(t, mustRead(t, text).Snapshot)); diff != "" {
				t.Errorf("(-YAML +%s):\n%s", name, diff)
			}
		})
	}
}

// TestLongYAMLList makes lists so long that they are read item by item, in the forms that this has to tell apart.
func TestLongYAMLList(t *testing.T) {
	const n = 3000
	for name, form := range map[string]struct{ head, item, tail string }{
		"kubectl": {"apiVersion: v1\nitems:\n", "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: s%d\n    namespace: a\n", "kind: List\nmetadata:\n  resourceVersion: \"\"\n"},
		"typed, indented": {
			"apiVersion: v1\nkind: ServiceList\nitems: # all\n", "  -\n    metadata:\n      namespace: a\n\n# between\n      name: s%d\n", "",
		},
		"kind last": {"items:\n", "- metadata:\n    name: s%d\n    namespace: a\n", "kind: ServiceList\napiVersion: v1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(form.head)
			filler := "    " + "# " + strings.Repeat("-", 500) + "\n"
			for i := range n {
				fmt.Fprintf(&b, form.item, i)
				b.WriteString(filler)
			}
			b.WriteString(form.tail + "---\napiVersion: v1\nkind: Service\nmetadata: {name: last, namespace: b}\n")
			if b.Len() < streamThreshold {
				t.Fatalf("the list is %d bytes long and not read item by item", b.Len())
			}
			s := mustRead(t, b.String()).Snapshot
			if len(s.Services) != n+1 || s.Services[n].Name != "last" {
				t.Errorf("%d Services, want %d", len(s.Services), n+1)
			}
		})
	}
}

func TestLongYAMLListFaults(t *testing.T) {
	item := "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: s\n    x: " + strings.Repeat("x", 1000) + "\n"
	text := "items:\n" + strings.Repeat(item, 1500) + "- kind: Service\n  a: b: c\n" + item + "kind: List\n"
	_, err := read(t, text)
	if want := fmt.Sprintf("-:%d: invalid YAML", 1+5*1500+2); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDirectory(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"b/services.yaml":        "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: a}\nspec: {type: ExternalName, externalName: old.example.org}\n",
		"c/services.yml":         "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: a}\nspec: {type: ExternalName, externalName: new.example.org}\n",
		"nodes.json.gz":          gzipped(t, `{"kind":"NodeList","items":[{"metadata":{"name":"n1"}}]}`),
		"Corefile":               ".:53 {\n whoami\n}\n",
		"upstream.Corefile":      ".:53 {\n errors\n}\n",
		"resolv.conf":            "nameserver 10.96.0.10\n",
		"node-resolv.conf":       "nameserver 192.0.2.53\n",
		"README.md":              "kind: {{",
		"values.yaml":            "replicas: 3\n",
		"logs.txt":               "x",
		"kustomization.yaml":     "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
		".git/config.yaml":       "broken: [",
		".hidden.yaml":           "broken: [",
		"knative/service.yaml":   "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: k, namespace: a}\n",
		"default/pods.json":      `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"default/empty.yaml":     "# nothing\n",
		"default/p/logs.txt.bak": "x",
	})
	r, err := Files(t.Context(), []string{dir}, nil, Options{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Snapshot
	if len(s.Services) != 1 || s.Services[0].Spec.ExternalName != "new.example.org" {
		t.Errorf("Services %v: want the last of two", s.Services)
	}
	if want := []string{"Service a/s is given more than once: the last one counts"}; !cmp.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
	if len(s.Nodes) != 1 {
		t.Errorf("Nodes %v", s.Nodes)
	}
	kinds := map[cluster.TextKind]string{}
	for _, x := range s.Texts {
		kinds[x.Kind] = filepath.Base(x.Name)
	}
	if diff := cmp.Diff(map[cluster.TextKind]string{
		cluster.TextCorefile: "Corefile", cluster.TextUpstreamCorefile: "upstream.Corefile",
		cluster.TextPodResolvConf: "resolv.conf", cluster.TextNodeResolvConf: "node-resolv.conf",
	}, kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"Kustomization": 1, "Service": 1}, r.Skipped); diff != "" {
		t.Errorf("skipped: %s", diff)
	}
	// README.md, values.yaml, logs.txt, logs.txt.bak, pods.json and empty.yaml.
	if r.Ignored != 6 {
		t.Errorf("%d files ignored, want 6", r.Ignored)
	}
}

func TestDirectoryNamesEveryBrokenFile(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml":    "kind: Pod\nmetadata: {\n",
		"b.json":    "{\"kind\":\"Pod\",\n\"metadata\":{\"name\":1}}",
		"c.yaml":    "{{ if .x }}\nkind: Pod\na: b: c\n",
		"good.yaml": "kind: Namespace\nmetadata: {name: a}\n",
		"ok.yaml":   "kind: Service\nmetadata: {name: a}\nspec: {ports: [{port: http}]}\n---\nkind: Pod\n--- x: [\n",
	})
	_, err := Files(t.Context(), []string{dir}, nil, Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"a.yaml:", "b.json:2: ", "c.yaml:", "helm template", "ok.yaml:1: decoding Service", "ok.yaml:6: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "good.yaml") {
		t.Errorf("the good file is blamed:\n%v", err)
	}
	var f *FileError
	if !errors.As(err, &f) || f.Line == 0 {
		t.Errorf("no FileError with a line in %v", err)
	}
}

func TestLinks(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"outside/secret.yaml": "kind: Namespace\nmetadata: {name: stolen}\n",
		"in/..data/Corefile":  ".:53 {\n}\n",
	})
	in := filepath.Join(dir, "in")
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(in, name)); err != nil {
			t.Skipf("making a link: %v", err)
		}
	}
	// As the kubelet mounts a ConfigMap.
	link("..data/Corefile", "Corefile")
	r, err := Files(t.Context(), []string{in}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Snapshot.Texts) != 1 {
		t.Errorf("texts %v: want the Corefile behind the link", r.Snapshot.Texts)
	}
	link("../outside/secret.yaml", "escape.yaml")
	if _, err := Files(t.Context(), []string{in}, nil, Options{}); err == nil || !strings.Contains(err.Error(), "escape.yaml") {
		t.Errorf("a link that leads out of the directory: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	yamlBomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		yamlBomb += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), c-1)
	}
	mergeBomb := "a: &a {}\n"
	for c := 'b'; c < 'z'; c++ {
		mergeBomb += fmt.Sprintf("%c: &%c {<<: [*%c,*%c,*%c]}\n", c, c, c-1, c-1, c-1)
	}
	for name, c := range map[string]struct {
		text, want string
		is         error
	}{
		"empty":            {"", "nothing that is read", ErrNothing},
		"only other kinds": {"apiVersion: x/v1\nkind: Widget\n", "only 1 Widget", ErrNothing},
		"foreign JSON":     {`{"nodes":[1,2]}`, "-:1: this is no Kubernetes object", nil},
		"prose":            {"hello world\nthis is prose\n", "this is no Kubernetes object", nil},
		"table":            {"NAMESPACE   NAME   READY\ndefault     a      1/1\n", "this is no Kubernetes object", nil},
		"binary":           {"\x7fELF\x02\x01\x00\x00", "binary file", nil},
		"zip":              {"PK\x03\x04abc", "zip archive: unpack it first", nil},
		"cut off JSON":     {`{"kind":"PodList","items":[{"metadata":{"name":"a"}},{"meta`, "cut off", nil},
		"cut off gzip":     {gzipped(t, objects)[:200], "cut off", nil},
		"broken gzip":      {"\x1f\x8b\x08garbage", "gzip", nil},
		"no JSON":          {`{kind: Pod}`, "invalid JSON", nil},
		"control":          {"kind: Pod\nmetadata: {name: \"\x01\"}\n", "invalid YAML", nil},
		"deep JSON":        {`{"kind":"Pod","spec":` + strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6) + "}", "exceeded max depth", nil},
		"deep YAML":        {"kind: Pod\nspec: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "nested more than", ErrLimit},
		"alias bomb":       {"kind: Pod\n" + yamlBomb, "aliases", ErrLimit},
		"merge bomb":       {"kind: Pod\n" + mergeBomb, "aliases", ErrLimit},
		"alias of itself":  {"kind: Pod\nspec: &a [*a]\n", "", nil},
		"nested lists":     {strings.Repeat(`{"kind":"List","items":[`, 9) + strings.Repeat(`]}`, 9), "nested more than", nil},
		"another version":  {`{"apiVersion":"dnsmesh.io/v9","kind":"Snapshot"}`, "version dnsmesh.io/v9", nil},
		"a report":         {`{"apiVersion":"dnsmesh.io/v1alpha1","kind":"Report"}`, "a Report of kubectl dnsmesh", nil},
		"missing objects":  {`{"apiVersion":"dnsmesh.io/v1alpha1","kind":"Snapshot","objects":2}`, "0 of its 2 objects", nil},
		"two snapshots":    {strings.Repeat(`{"apiVersion":"dnsmesh.io/v1alpha1","kind":"Snapshot","objects":0}`+"\n", 2), "a second snapshot", nil},
		"log without end":  {"==== START logs for container c of pod a/p ====\nx\n", "cut off", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Limits: Limits{Object: 4 << 20}}
			_, err := Files(t.Context(), []string{"-"}, strings.NewReader(c.text), o)
			if err == nil || !strings.Contains(err.Error(), c.want) || (c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Files(t.Context(), []string{filepath.Join(t.TempDir(), "none.yaml")}, nil, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Files(t.Context(), []string{"-"}, nil, Options{}); err == nil {
		t.Error("no standard input: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Files(ctx, []string{"-"}, strings.NewReader(objects), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

func TestLimits(t *testing.T) {
	pod := `{"kind":"Pod","metadata":{"name":"p"},"x":"` + strings.Repeat("x", 2000) + `"}`
	dir := writeFiles(t, map[string]string{"a.json": pod, "b.json": pod})
	for name, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"object": {Limits{Object: 1000}, "a.json:1: input exceeds a limit: one object is larger than 1000 bytes"},
		"total":  {Limits{Total: 3000}, "b.json: input exceeds a limit: the files hold more than 3000 bytes"},
		"files":  {Limits{Files: 1}, "more than 1 files"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Files(t.Context(), []string{dir}, nil, Options{Limits: c.limits})
			if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	_, err := Files(t.Context(), []string{"-"}, strings.NewReader(configMaps), Options{Limits: Limits{ConfigMaps: 10}})
	if !errors.Is(err, ErrLimit) {
		t.Errorf("ConfigMaps: %v", err)
	}
}

// repeat gives a text again and again.
type repeat struct {
	text string
	left int
	off  int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.off:])
	if r.off += n; r.off == len(r.text) {
		r.off = 0
		r.left--
	}
	return n, nil
}

// TestGzipBomb packs 512 MiB of line feeds: they must be refused long before they are unpacked.
func TestGzipBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("packs a bomb of 512 MiB")
	}
	pr, pw := io.Pipe()
	go func() {
		z, err := gzip.NewWriterLevel(pw, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(z, &repeat{text: strings.Repeat("\n", 1<<20), left: 512})
		}
		if err == nil {
			err = z.Close()
		}
		pw.CloseWithError(err)
	}()
	defer pr.Close()
	var packed bytes.Buffer
	if _, err := io.Copy(&packed, pr); err != nil {
		t.Fatal(err)
	}
	_, err := Files(t.Context(), []string{"-"}, &packed, Options{})
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Errorf("error %v", err)
	}
}

// TestLargeFile reads a list of 256 MB and looks at how much memory stays in use on the way.
func TestLargeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 256 MB")
	}
	item := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"},"status":{"message":"` +
		strings.Repeat("x", 60<<10) + `"},"spec":{"containers":[{"name":"c"}]}},` + "\n"
	in := io.MultiReader(
		strings.NewReader(`{"apiVersion":"v1","kind":"List","items":[`), &repeat{text: item, left: 4200}, strings.NewReader(`{"kind":"Widget"}]}`))
	var peak uint64
	seen := 0
	o := Options{Progress: func(p Progress) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
		seen = p.Count
	}}
	r, err := Files(t.Context(), []string{"-"}, in, o)
	if err != nil {
		t.Fatal(err)
	}
	if seen != 4200 || len(r.Snapshot.Pods) != 1 {
		t.Errorf("read %d pods, kept %d of one name", seen, len(r.Snapshot.Pods))
	}
	if peak > 40<<20 {
		t.Errorf("%d MiB in use while reading 256 MB", peak>>20)
	}
}

func TestTextsByContent(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want cluster.TextKind
	}{
		"Corefile":          {"# mine\nexample.org:53 . { # zones\n    whoami\n}\n", cluster.TextCorefile},
		"snippet":           {"(snip) {\n    errors\n}\n", cluster.TextCorefile},
		"import":            {"import custom/*.server\n", cluster.TextCorefile},
		"resolv.conf":       {"; made by hand\nsearch example.org\nnameserver 192.0.2.1\n", cluster.TextPodResolvConf},
		"YAML in flow form": {"kind: Namespace\nmetadata: {name: x}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustRead(t, c.text).Snapshot
			var got cluster.TextKind
			if len(s.Texts) > 0 {
				got = s.Texts[0].Kind
			}
			if got != c.want {
				t.Errorf("kind %q, want %q", got, c.want)
			}
		})
	}
	dir := writeFiles(t, map[string]string{"Corefile": "not { what it seems"})
	r, err := Files(t.Context(), []string{filepath.Join(dir, "Corefile")}, nil, Options{})
	if err != nil || len(r.Snapshot.Texts) != 1 {
		t.Errorf("a file named Corefile is one, whatever it holds: %v", err)
	}
}

func TestOwners(t *testing.T) {
	pod := func(name, labels, kind, owner string) string {
		return fmt.Sprintf("kind: Pod\nmetadata: {name: %s, namespace: a, labels: {%s}, ownerReferences: [{kind: %s, name: %s, controller: true}]}\n"+
			"spec: {nodeName: node-1, hostname: %s, containers: [{name: c}]}\n---\n", name, labels, kind, owner, name)
	}
	text := pod("d1", "pod-template-hash: abc", "ReplicaSet", "web-abc") +
		pod("d2", "rollouts-pod-template-hash: xyz", "ReplicaSet", "roll-xyz") +
		pod("d3", "", "ReplicaSet", "bare") +
		pod("s-0", "", "StatefulSet", "s") +
		pod("s-1", "", "StatefulSet", "s") +
		pod("j1", "", "Job", "nightly-manual") +
		pod("j2", "", "Job", "nightly-29400000") +
		pod("j3", "", "Job", "migrate-20260131") +
		pod("j4", "", "Job", "once-29400000") +
		pod("etcd-node-1", "", "Node", "node-1") +
		pod("dc1", "deploymentconfig: shop", "ReplicationController", "shop-3") +
		"kind: Pod\nmetadata: {name: alone, namespace: a}\nspec: {containers: [{name: c}]}\n---\n" +
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: nightly-manual, namespace: a, ownerReferences: [{kind: CronJob, name: nightly, controller: true}]}\n---\n" +
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: once-29400000, namespace: a}\n"
	s := mustRead(t, text).Snapshot
	got := map[string]finding.Object{}
	for _, p := range s.Pods {
		got[p.Name] = p.Owner
	}
	object := func(kind, name string) finding.Object {
		return finding.Object{Kind: kind, Namespace: "a", Name: name}
	}
	want := map[string]finding.Object{
		"d1": object("Deployment", "web"), "d2": object("Rollout", "roll"), "d3": object("ReplicaSet", "bare"),
		"s-0": object("StatefulSet", "s"), "s-1": object("StatefulSet", "s"),
		"j1": object("CronJob", "nightly"), "j2": object("CronJob", "nightly"), "j3": object("Job", "migrate-20260131"),
		"j4": object("Job", "once-29400000"), "etcd-node-1": object("Pod", "etcd"), "dc1": object("DeploymentConfig", "shop"),
		"alone": object("Pod", "alone"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, w := range s.Workloads() {
		if w.Object.Kind == "StatefulSet" && w.Pods != 2 {
			t.Errorf("the pods of one StatefulSet are %d workloads apart", w.Pods)
		}
	}
}

func TestOldAndOtherKinds(t *testing.T) {
	const template = "template: {spec: {containers: [{name: c, image: i}]}}"
	s := mustRead(t, `
apiVersion: extensions/v1beta1
kind: Deployment
metadata: {name: old, annotations: {dnsmesh.io/ignore: DM1007}}
spec: {`+template+`}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec: {jobTemplate: {spec: {`+template+`}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: rc}
spec: {selector: {a: b}, `+template+`}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: ro}
spec: {`+template+`}
status: {observedGeneration: "7"}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: by-reference}
spec: {workloadRef: {name: x}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: old-1, ownerReferences: [{kind: Deployment, name: old, controller: true}]}
spec: {`+template+`}
---
apiVersion: v1
kind: Endpoints
metadata: {name: e}
subsets:
- addresses: [{ip: 192.0.2.1, hostname: h}]
  notReadyAddresses: [{ip: 192.0.2.2}]
  ports: [{name: dns, port: 53, protocol: UDP}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se}
spec: {hosts: [API.example.org., "*.example.net"]}
`).Snapshot
	var got []string
	for _, w := range s.Templates {
		got = append(got, w.Object.String()+" "+w.Ignore)
	}
	want := []string{"CronJob default/cron ", "Deployment default/old DM1007", "ReplicationController default/rc ", "Rollout default/ro "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("templates: %s", diff)
	}
	if diff := cmp.Diff([]string{"*.example.net", "api.example.org"}, s.MeshHosts); diff != "" {
		t.Errorf("hosts: %s", diff)
	}
	if len(s.EndpointSlices) != 1 || len(s.EndpointSlices[0].Endpoints) != 2 || *s.EndpointSlices[0].Endpoints[1].Conditions.Ready {
		t.Errorf("slices of Endpoints: %v", s.EndpointSlices)
	}
}

func TestWholeCluster(t *testing.T) {
	text := func(kind, namespace, name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n---\n", kind, name, namespace)
	}
	whole := text("Namespace", `""`, "kube-system") + text("Service", "default", "kubernetes") + text("Pod", "kube-system", "coredns")
	if s := mustRead(t, whole).Snapshot; s.Partial || s.Absent[cluster.Nodes] == "" || s.Absent[cluster.Services] != "" {
		t.Errorf("a whole cluster without nodes: partial %v, absent %v", s.Partial, s.Absent)
	}
	one := text("Namespace", `""`, "kube-system") + text("Service", "a", "s") + text("Pod", "a", "p")
	if s := mustRead(t, one).Snapshot; !s.Partial {
		t.Error("one namespace passes for a whole cluster")
	}
}

// TestLimitsOfYAML: YAML and objects are bounded, and a file that is too large is refused before it is read.
func TestLimitsOfYAML(t *testing.T) {
	doc := "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(strings.Repeat(doc, 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]Limits{
		"size of the file":  {YAML: 1000},
		"number of objects": {Objects: 99},
	} {
		_, err := Files(t.Context(), []string{path}, nil, Options{Limits: limits})
		if !errors.Is(err, ErrLimit) {
			t.Errorf("%s: the error is %v, want one that matches ErrLimit", name, err)
		}
	}
	_, err := Files(t.Context(), []string{"-"}, strings.NewReader(strings.Repeat(doc, 100)), Options{Limits: Limits{YAML: 1000}})
	if !errors.Is(err, ErrLimit) {
		t.Errorf("standard input: the error is %v, want one that matches ErrLimit", err)
	}
	if _, err := Files(t.Context(), []string{path}, nil, Options{Limits: Limits{YAML: 10000, Objects: 100}}); err != nil {
		t.Errorf("within the limits: %v", err)
	}
}
