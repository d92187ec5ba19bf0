package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/clustergen"
	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// coreDNS is what takes the place of kube-dns in the second half of TestLive: the server of kubeadm.
const coreDNS = `
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health {
           lameduck 5s
        }
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
           pods insecure
           fallthrough in-addr.arpa ip6.arpa
           ttl 30
        }
        prometheus :9153
        forward . /etc/resolv.conf {
           max_concurrent 1000
        }
        cache 30
        loop
        reload
        loadbalance
    }
---
apiVersion: v1
kind: Pod
metadata:
  name: coredns-7c65d6cfc9-jx5rg
  namespace: kube-system
  labels: {k8s-app: kube-dns, pod-template-hash: 7c65d6cfc9}
  ownerReferences:
  - {apiVersion: apps/v1, kind: ReplicaSet, name: coredns-7c65d6cfc9, uid: 5f0c0b5e-0000-4000-8000-000000000002, controller: true}
spec:
  nodeName: node-1
  dnsPolicy: Default
  containers:
  - name: coredns
    image: registry.k8s.io/coredns/coredns:v1.11.3
    args: [-conf, /etc/coredns/Corefile]
    ports:
    - {name: dns, containerPort: 53, protocol: UDP}
    - {name: dns-tcp, containerPort: 53, protocol: TCP}
    volumeMounts:
    - {name: config-volume, mountPath: /etc/coredns, readOnly: true}
  volumes:
  - name: config-volume
    configMap: {name: coredns, items: [{key: Corefile, path: Corefile}]}
status:
  phase: Running
  podIP: 10.244.1.3
  podIPs: [{ip: 10.244.1.3}]
  conditions: [{type: Ready, status: "True"}]
`

// auditPolicy has the API server write down every request once it is answered.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// TestLive runs the whole program against a real API server that holds the case of the demo: first with kube-dns, at the
// end with CoreDNS.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	policy, audit := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	writeText(t, policy, auditPolicy)
	cp := realtool.New(t, realtool.Options{APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + audit}})
	admin, err := cp.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	demo, err := os.ReadFile(filepath.Join("..", "..", "testdata", "demo", "my-app.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	create(t, client, string(demo))
	kubeconfig := cp.Kubeconfig(t, "")
	t.Setenv("KUBECONFIG", kubeconfig)

	t.Run("kube-dns", func(t *testing.T) {
		want := []string{"error DM1001 Deployment new-namespace-1/frontend"}
		sameEverywhere(t, want)
		for _, text := range []string{"other-app-1", "other-app-2", "GREETING_URL", "name: my-app", "my-app.new-namespace-2.svc.cluster.local"} {
			if r := plugin(t, "doctor"); !strings.Contains(r.stdout, text) {
				t.Errorf("the report does not hold %q:\n%s", text, r.stdout)
			}
		}
	})
	t.Run("redacted", func(t *testing.T) { testRedacted(t) })
	t.Run("requests", func(t *testing.T) { testRequests(t, cp, audit) })
	t.Run("credentials", func(t *testing.T) { testCredentials(t, cp) })
	t.Run("contexts", func(t *testing.T) { testContexts(t, admin) })
	t.Run("completion", testCompletion)
	t.Run("faults", func(t *testing.T) { testFaults(t, admin) })
	t.Run("interrupt", func(t *testing.T) { testInterrupt(t, admin) })

	now := int64(0)
	err = client.CoreV1().Pods("kube-system").Delete(t.Context(), "kube-dns-6f7d9c5b8d-x2x4q", metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		t.Fatal(err)
	}
	create(t, client, coreDNS)
	t.Run("CoreDNS", func(t *testing.T) {
		sameEverywhere(t, []string{"error DM1002 Deployment new-namespace-1/frontend"})
	})
	t.Run("rights", func(t *testing.T) { testRights(t, cp, client) })
	t.Run("CoreDNS and a later search domain", func(t *testing.T) {
		// glibc and Go go on to my-app.corp.example.org, about which nothing is known; musl stops.
		resolv := filepath.Join(t.TempDir(), "resolv.conf")
		writeText(t, resolv, "search corp.example.org\nnameserver 192.0.2.53\n")
		sameEverywhere(t, []string{"warning DM1002 Deployment new-namespace-1/frontend"}, "--node-resolv-conf", resolv)
	})
}

// sameEverywhere runs doctor live, on a snapshot and on what kubectl prints. All give the findings that are wanted at W and
// E, and the first two the same bytes in every format.
func sameEverywhere(t *testing.T, want []string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	saved, list := filepath.Join(dir, "cluster.json.gz"), filepath.Join(dir, "list.yaml")
	if r := plugin(t, "snapshot", "-o", saved); r.status != exitOK {
		t.Fatalf("snapshot ended with %d\n%s", r.status, r.stderr)
	}
	out, err := exec.Command(realtool.Tool(t, "kubectl"), "get", "ns,svc,endpointslices,pods,cm,nodes", "-A", "-o", "yaml").Output()
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, list, string(out))
	status := exitOK
	if strings.HasPrefix(want[0], "error") {
		status = exitFindings
	}
	doctor := func(args ...string) result {
		r := plugin(t, append(append([]string{"doctor"}, args...), flags...)...)
		if r.status != status || r.stderr != "" {
			t.Errorf("doctor %s ended with %d, want %d\n%s", args, r.status, status, r.stderr)
		}
		return r
	}
	for _, format := range reportFormats {
		live, file := doctor("-o", format), doctor("-o", format, "-f", saved)
		if diff := cmp.Diff(live.stdout, file.stdout); diff != "" {
			t.Errorf("-o %s, live against the snapshot (-live +file):\n%s", format, diff)
		}
	}
	live, file := decodeReport(t, doctor("-o", "json")), decodeReport(t, doctor("-o", "json", "-f", list))
	if diff := cmp.Diff(want, verdicts(live)); diff != "" {
		t.Errorf("findings at W and E (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(live.Findings, file.Findings); diff != "" {
		t.Errorf("findings live against what kubectl prints (-live +kubectl):\n%s", diff)
	}
}

func testRedacted(t *testing.T) {
	dir := t.TempDir()
	saved := filepath.Join(dir, "cluster.json.gz")
	if r := plugin(t, "snapshot", "--redact", "-o", saved); r.status != exitOK {
		t.Fatalf("snapshot --redact ended with %d\n%s", r.status, r.stderr)
	}
	codes := func(args ...string) []string {
		r := plugin(t, append([]string{"doctor", "-o", "json"}, args...)...)
		if r.status != exitFindings {
			t.Errorf("doctor %s ended with %d\n%s", args, r.status, r.stderr)
		}
		var all []string
		for _, f := range decodeReport(t, r).Findings {
			all = append(all, f.Severity.String()+" "+f.Code+" "+f.Object.Kind)
		}
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff(codes(), codes("-f", saved)); diff != "" {
		t.Errorf("live against the redacted snapshot (-live +redacted):\n%s", diff)
	}
	file, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"my-app", "new-namespace", "other-app", "frontend", "sessions", "node-1", "shop", "hello",
	} {
		if bytes.Contains(text, []byte(name)) {
			t.Errorf("the redacted snapshot holds %q", name)
		}
	}
}

// testRequests reads in the API server's audit log what one run of doctor asked for.
func testRequests(t *testing.T, cp *realtool.ControlPlane, audit string) {
	const user = "watched"
	t.Setenv("KUBECONFIG", cp.Kubeconfig(t, user, "system:masters"))
	if r := plugin(t, "doctor"); r.status != exitFindings {
		t.Fatalf("doctor ended with %d\n%s", r.status, r.stderr)
	}
	log, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for line := range bytes.Lines(log) {
		var event struct {
			Verb       string
			RequestURI string
			User       struct{ Username string }
			ObjectRef  *struct{ Resource, APIGroup string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if event.User.Username != user {
			continue
		}
		what, _, _ := strings.Cut(event.RequestURI, "?")
		if o := event.ObjectRef; o != nil {
			what = o.Resource
		}
		got[event.Verb+" "+what]++
	}
	// Everything fits a page, so that each is asked for once; none of these is a Secret, and none writes.
	want := map[string]int{
		"get /version": 1, "get /apis": 1, "list namespaces": 1, "list services": 1, "list endpointslices": 1, "list pods": 1,
		"list nodes": 1, "list configmaps": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests of doctor (-want +got):\n%s", diff)
	}
}

// testRights judges the cluster as users who may not list everything.
func testRights(t *testing.T, cp *realtool.ControlPlane, client kubernetes.Interface) {
	all := []string{"namespaces", "services", "endpointslices", "pods", "nodes", "configmaps"}
	rules := func(resources []string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{"", "discovery.k8s.io"}, Resources: resources, Verbs: []string{"list"}}}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	subject := func(user string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	}
	found := []string{"error DM1002 Deployment new-namespace-1/frontend"}
	for _, c := range []struct {
		user string
		// without is the resource that the user may not list.
		without string
		status  int
		// want are the findings at W and E; skipped are the checks that could judge nothing.
		want, skipped []string
	}{
		{user: "no-namespaces", without: "namespaces", status: exitFindings, want: found},
		{
			user: "no-services", without: "services", status: exitOK,
			skipped: []string{"aliases", "capturing-aliases", "namespaces", "references"},
		},
		{user: "no-endpointslices", without: "endpointslices", status: exitFindings, want: found},
		{user: "no-pods", without: "pods", status: exitOK, skipped: []string{"references"}},
		{user: "no-nodes", without: "nodes", status: exitFindings, want: found},
		{user: "no-configmaps", without: "configmaps", status: exitFindings, want: found},
	} {
		t.Run(c.user, func(t *testing.T) {
			ctx := t.Context()
			allowed := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == c.without })
			role := &rbacv1.ClusterRole{ObjectMeta: meta(c.user), Rules: rules(allowed)}
			if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta(c.user), Subjects: subject(c.user),
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.user},
			}
			if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitRight(t, cp, c.user, "", allowed[0])
			t.Setenv("KUBECONFIG", cp.Kubeconfig(t, c.user))
			r := plugin(t, "doctor", "-o", "json")
			if r.status != c.status || r.stderr != "" {
				t.Errorf("doctor ended with %d, want %d\n%s", r.status, c.status, r.stderr)
			}
			report := decodeReport(t, r)
			var skipped []string
			for _, s := range report.Skipped {
				if !s.Partly {
					skipped = append(skipped, s.Check)
				}
			}
			if diff := cmp.Diff(c.want, verdicts(report)); diff != "" {
				t.Errorf("findings at W and E (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.skipped, skipped); diff != "" {
				t.Errorf("skipped checks (-want +got):\n%s", diff)
			}
			reason := fmt.Sprintf("listing %s is forbidden: User %q cannot list resource %q", c.without, c.user, c.without)
			if !slices.ContainsFunc(report.Skipped, func(s diagnose.Skipped) bool { return strings.Contains(s.Reason, reason) }) {
				t.Errorf("no check says %q: %v", reason, report.Skipped)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Setenv("KUBECONFIG", cp.Kubeconfig(t, "nobody"))
		r := plugin(t, "doctor")
		if r.status != exitError || r.stdout != "" {
			t.Errorf("doctor ended with %d, want %d, and printed %q", r.status, exitError, r.stdout)
		}
		for _, text := range []string{"error: ", "is forbidden", `User "nobody"`, "\nhint: "} {
			if !strings.Contains(r.stderr, text) {
				t.Errorf("no %q in:\n%s", text, r.stderr)
			}
		}
	})
	t.Run("one namespace", func(t *testing.T) {
		const user, namespace = "tenant", "new-namespace-1"
		ctx := t.Context()
		role := &rbacv1.Role{ObjectMeta: meta(user), Rules: rules([]string{"services", "endpointslices", "pods", "configmaps"})}
		if _, err := client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: meta(user), Subjects: subject(user),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}
		if _, err := client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitRight(t, cp, user, namespace, "pods")
		t.Setenv("KUBECONFIG", cp.Kubeconfig(t, user))
		// Without the Services of the other namespaces no name can be called wrong.
		r := plugin(t, "doctor", "-n", namespace, "-o", "json")
		if r.status != exitError {
			t.Errorf("doctor ended with %d, want %d", r.status, exitError)
		}
		report := decodeReport(t, r)
		if got := report.Clusters[0].Objects["pods"]; got != 3 || len(report.Findings) > 0 {
			t.Errorf("%d pods were read, want 3; findings %v", got, report.Findings)
		}
		for _, text := range []string{
			"note: services were read in namespace new-namespace-1 only: ", "note: pods were read in namespace new-namespace-1 only: ",
			`error: nothing could be judged: only namespace new-namespace-1 was read: listing services is forbidden: User "tenant" cannot list`,
			"\nhint: ",
		} {
			if !strings.Contains(r.stderr, text) {
				t.Errorf("no %q in:\n%s", text, r.stderr)
			}
		}
	})
}

// awaitRight waits until the user may list the resource: the server's authorizer follows its informers.
func awaitRight(t *testing.T, cp *realtool.ControlPlane, user, namespace, resource string) {
	t.Helper()
	config, err := cp.ConfigFor(user)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := client.CoreV1().RESTClient().Get().Namespace(namespace).Resource(resource).Do(ctx).Error()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s may not list %s: %v", user, resource, err)
		case <-tick.C:
		}
	}
}

// testCredentials runs without usable credentials, or none.
func testCredentials(t *testing.T, cp *realtool.ControlPlane) {
	admin, err := cp.Config()
	if err != nil {
		t.Fatal(err)
	}
	wrongToken := rest.AnonymousClientConfig(admin)
	wrongToken.BearerToken = "eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl"
	expired, err := cp.ExpiredConfigFor("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	absent := rest.CopyConfig(admin)
	server := httptest.NewServer(nil)
	absent.Host = "https" + strings.TrimPrefix(server.URL, "http")
	server.Close() // so that nobody listens there
	for name, c := range map[string]struct {
		config *rest.Config
		want   []string
	}{
		"token that is not accepted": {wrongToken, []string{"does not accept the credentials", "hint: log in again"}},
		"expired certificate":        {expired, []string{"does not accept the credentials", "hint: log in again"}},
		"no server":                  {absent, []string{"refused", "hint: "}},
		"no kubeconfig":              {nil, []string{"there is no kubeconfig", "hint: "}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if c.config != nil {
				if err := realtool.WriteKubeconfig(path, c.config); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("KUBECONFIG", path)
			for _, command := range []string{"doctor", "snapshot"} {
				r := plugin(t, command)
				if r.status != exitError || r.stdout != "" {
					t.Errorf("%s ended with %d, want %d, and printed %q", command, r.status, exitError, r.stdout)
				}
				if !strings.HasPrefix(r.stderr, "error: ") {
					t.Errorf("%s: stderr does not begin with an error:\n%s", command, r.stderr)
				}
				for _, text := range c.want {
					if !strings.Contains(r.stderr, text) {
						t.Errorf("%s: no %q in:\n%s", command, text, r.stderr)
					}
				}
			}
		})
	}
}

// testContexts judges two contexts side by side. Both lead to one API server, as different users.
func testContexts(t *testing.T, admin *rest.Config) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	if err := realtool.WriteKubeconfig(one, admin); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(one)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["east"], config.Contexts["west"] = config.Contexts["test"].DeepCopy(), config.Contexts["test"].DeepCopy()
	config.CurrentContext = ""
	both := filepath.Join(dir, "both")
	if err := clientcmd.WriteToFile(*config, both); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", both)
	r := plugin(t, "doctor", "--contexts", "west,east", "-o", "json")
	if r.status != exitFindings || r.stderr != "" {
		t.Errorf("doctor ended with %d, want %d\n%s", r.status, exitFindings, r.stderr)
	}
	report := decodeReport(t, r)
	var clusters, found []string
	for _, c := range report.Clusters {
		clusters = append(clusters, c.Name)
	}
	for _, f := range report.Findings {
		if f.Severity == finding.Error {
			found = append(found, f.Cluster+" "+f.Code)
		}
	}
	if diff := cmp.Diff([]string{"west", "east"}, clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"east DM1001", "west DM1001"}, found); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if r := plugin(t, "doctor", "--contexts", "west,north"); r.status != exitError || !strings.Contains(r.stderr, `"north"`) {
		t.Errorf("with a context that does not exist doctor ended with %d:\n%s", r.status, r.stderr)
	}
}

func testCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"doctor", "-n", ""},
			[]string{"default", "kube-node-lease", "kube-public", "kube-system", "my-app", "new-namespace-1", "new-namespace-2"},
		},
		{[]string{"doctor", "--context", ""}, []string{"test"}},
		{[]string{"doctor", "--contexts", ""}, []string{"test"}},
		{[]string{"snapshot", "--context", ""}, []string{"test"}},
	} {
		r := plugin(t, append([]string{"__complete"}, c.args...)...)
		got := strings.Split(strings.TrimSpace(r.stdout), "\n")
		want := append(slices.Clone(c.want), ":4") // cobra's directive: no files
		if diff := cmp.Diff(want, got); diff != "" || r.status != exitOK {
			t.Errorf("completing %q ended with %d (-want +got):\n%s", c.args, r.status, diff)
		}
	}
}

// faultyProxy stands between the program and the real API server, for what that cannot be made to show. It has the server
// answer in pages of two objects, and calls fault before each request, counted from 1 for each path; fault returns true if
// it has answered.
type faultyProxy struct {
	upstream *httputil.ReverseProxy
	fault    func(w http.ResponseWriter, r *http.Request, n int, p *faultyProxy) bool

	mu    sync.Mutex
	count map[string]int
}

func newFaultyProxy(t *testing.T, admin *rest.Config, fault func(http.ResponseWriter, *http.Request, int, *faultyProxy) bool) {
	t.Helper()
	target, err := url.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	p := &faultyProxy{
		upstream: &httputil.ReverseProxy{
			Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
			// A client that goes away is what some of the tests are about.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		fault: fault, count: map[string]int{},
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := realtool.WriteKubeconfig(path, &rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Has("limit") {
		q.Set("limit", "2")
		r.URL.RawQuery = q.Encode()
	}
	p.mu.Lock()
	p.count[r.URL.Path]++
	n := p.count[r.URL.Path]
	p.mu.Unlock()
	if !p.fault(w, r, n, p) {
		p.upstream.ServeHTTP(w, r)
	}
}

// half answers with the first half of what the server answers. What follows is up to the caller.
func (p *faultyProxy) half(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Accept-Encoding")
	whole := httptest.NewRecorder()
	p.upstream.ServeHTTP(whole, r)
	w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
	body := whole.Body.Bytes()
	// A client that has gone is the client's affair.
	if _, err := w.Write(body[:len(body)/2]); err == nil {
		http.NewResponseController(w).Flush()
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message, next string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, ListMeta: metav1.ListMeta{Continue: next},
	}
	if err := json.NewEncoder(w).Encode(s); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// testFaults makes lists go wrong on the way. What passes must leave no trace in the report; what stays must leave the
// other checks alone.
func testFaults(t *testing.T, admin *rest.Config) {
	undisturbed := plugin(t, "doctor", "-o", "json")
	const services, pods = "/api/v1/services", "/api/v1/pods"
	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request, n int, p *faultyProxy) bool{
		"only pages of two": func(http.ResponseWriter, *http.Request, int, *faultyProxy) bool { return false },
		"429 with Retry-After": func(w http.ResponseWriter, r *http.Request, n int, _ *faultyProxy) bool {
			if n == 2 && r.URL.Path == pods {
				w.Header().Set("Retry-After", "1")
				refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", "")
				return true
			}
			return false
		},
		"500 once": func(w http.ResponseWriter, r *http.Request, n int, _ *faultyProxy) bool {
			if n == 1 && r.URL.Path == services {
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed", "")
				return true
			}
			return false
		},
		"list cut off": func(w http.ResponseWriter, r *http.Request, n int, p *faultyProxy) bool {
			if n == 2 && r.URL.Path == pods {
				p.half(w, r)
				panic(http.ErrAbortHandler)
			}
			return false
		},
		"list that ends in the middle": func(w http.ResponseWriter, r *http.Request, n int, p *faultyProxy) bool {
			if n == 2 && r.URL.Path == pods {
				p.half(w, r)
				return true
			}
			return false
		},
		"410, begin anew": func(w http.ResponseWriter, r *http.Request, n int, _ *faultyProxy) bool {
			if n == 3 && r.URL.Path == services {
				refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old", "")
				return true
			}
			return false
		},
		"410, go on": func(w http.ResponseWriter, r *http.Request, n int, _ *faultyProxy) bool {
			if n == 3 && r.URL.Path == services {
				// The server's own would hold no resource version; that of the request goes on at the same place.
				refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old", r.URL.Query().Get("continue"))
				return true
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			newFaultyProxy(t, admin, fault)
			r := plugin(t, "doctor", "-o", "json")
			if r.status != undisturbed.status || r.stderr != "" {
				t.Errorf("doctor ended with %d, want %d\n%s", r.status, undisturbed.status, r.stderr)
			}
			if diff := cmp.Diff(undisturbed.stdout, r.stdout); diff != "" {
				t.Errorf("undisturbed against disturbed (-undisturbed +disturbed):\n%s", diff)
			}
		})
	}
	for name, c := range map[string]struct {
		code   int
		reason metav1.StatusReason
		want   string
	}{
		"500 for ever": {http.StatusInternalServerError, metav1.StatusReasonInternalError, "the server answers 500"},
		"429 for ever": {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "the server answers 429"},
		"410 for ever": {http.StatusGone, metav1.StatusReasonExpired, "the server answers 410"},
	} {
		t.Run(name, func(t *testing.T) {
			newFaultyProxy(t, admin, func(w http.ResponseWriter, r *http.Request, _ int, _ *faultyProxy) bool {
				if r.URL.Path == pods {
					refuse(w, c.code, c.reason, "the pods are gone", "")
				}
				return r.URL.Path == pods
			})
			r := plugin(t, "doctor", "-o", "json")
			if r.status != exitOK || r.stderr != "" {
				t.Errorf("doctor ended with %d, want %d\n%s", r.status, exitOK, r.stderr)
			}
			report := decodeReport(t, r)
			i := slices.IndexFunc(report.Skipped, func(s diagnose.Skipped) bool { return s.Check == "references" && !s.Partly })
			if i < 0 || !strings.Contains(report.Skipped[i].Reason, c.want) {
				t.Errorf("references are not skipped because of %q: %v", c.want, report.Skipped)
			}
			if report.Summary.Checks == 0 {
				t.Error("no other check ran")
			}
		})
	}
	t.Run("500 for everything", func(t *testing.T) {
		newFaultyProxy(t, admin, func(w http.ResponseWriter, r *http.Request, _ int, _ *faultyProxy) bool {
			refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd is gone", "")
			return true
		})
		r := plugin(t, "doctor")
		if r.status != exitError || r.stdout != "" || !strings.Contains(r.stderr, "etcd is gone") || !strings.Contains(r.stderr, "\nhint: ") {
			t.Errorf("doctor ended with %d, want %d\n%s%s", r.status, exitError, r.stdout, r.stderr)
		}
	})
}

// testInterrupt types Ctrl-C while a list hangs in its middle.
func testInterrupt(t *testing.T, admin *rest.Config) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted from outside")
	}
	hangs, gone := make(chan struct{}, 100), make(chan struct{}, 100)
	newFaultyProxy(t, admin, func(w http.ResponseWriter, r *http.Request, n int, p *faultyProxy) bool {
		if r.URL.Path != "/api/v1/pods" {
			return false
		}
		p.half(w, r)
		hangs <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
		return true
	})
	await := func(t *testing.T, what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatalf("%s did not happen within a minute", what)
		}
	}
	for _, args := range [][]string{{"doctor"}, {"snapshot", "-o", "cluster.json.gz"}} {
		t.Run(args[0], func(t *testing.T) {
			cmd := pluginCommand(t, args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				cmd.Wait() //nolint:errcheck // the state of the process tells
			}()
			await(t, "a list that hangs", hangs)
			begin := time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			await(t, "the end of the process", ended)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v to end", took)
			}
			await(t, "the end of the request", gone)
			if got := cmd.ProcessState.ExitCode(); got != exitError || stdout.Len() > 0 || stderr.String() != "error: interrupted\n" {
				t.Errorf("%s ended with %d, want %d\n%s%s", args, got, exitError, &stdout, &stderr)
			}
			left, err := os.ReadDir(cmd.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(left) > 0 {
				t.Errorf("files were left behind: %v", left)
			}
		})
	}
}

// result is how a run of the program ended.
type result struct {
	status         int
	stdout, stderr string
}

// plugin runs the program in a process of its own, in an empty folder.
func plugin(t *testing.T, args ...string) result {
	t.Helper()
	cmd := pluginCommand(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// pluginCommand is the test binary under the name that has TestMain run the program.
func pluginCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "kubectl-dnsmesh", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "no-home"), "TMPDIR=" + os.TempDir(), "COLUMNS=80", "NO_COLOR=1",
		"KUBECONFIG=" + os.Getenv("KUBECONFIG"),
	}
	return cmd
}

func decodeReport(t *testing.T, r result) *diagnose.Report {
	t.Helper()
	report := &diagnose.Report{}
	if err := json.Unmarshal([]byte(r.stdout), report); err != nil {
		t.Fatalf("reading the report: %v\n%s%s", err, r.stdout, r.stderr)
	}
	return report
}

// verdicts lists the findings at W and E.
func verdicts(r *diagnose.Report) []string {
	var all []string
	for _, f := range r.Findings {
		if f.Severity > finding.Info {
			all = append(all, f.Severity.String()+" "+f.Code+" "+f.Object.String())
		}
	}
	return all
}

// create writes the documents of a text to the API server, with their status.
func create(t *testing.T, client kubernetes.Interface, text string) {
	t.Helper()
	documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	defer documents.Close()
	for buf := make([]byte, 1<<20); ; {
		n, err := documents.Read(buf)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(buf[:n], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := object.(*corev1.Pod); ok && p.Status.PodIP == "" {
			t.Fatalf("pod %s has no address", p.Name)
		}
		if err := clustergen.Create(t.Context(), client, object); err != nil {
			t.Fatal(err)
		}
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
