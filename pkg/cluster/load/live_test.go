package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// fakeAPI speaks as much of the list protocol as the faults need that a real API server does not show when asked: it
// answers in JSON, pages by the position in the list, and calls fault before each answer. It is a fake: what the real
// server does is tested with the real one.
type fakeAPI struct {
	t     *testing.T
	items map[string][]string
	// fault may answer a request itself, and then returns true. n counts the requests of that path from 1.
	fault func(w http.ResponseWriter, r *http.Request, n int) bool

	mu    sync.Mutex
	count map[string]int
	paths []string
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.count[r.URL.Path]++
	n := f.count[r.URL.Path]
	f.paths = append(f.paths, r.URL.Path)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if f.fault != nil && f.fault(w, r, n) {
		return
	}
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3+k3s1"}`)
		return
	case "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"networking.istio.io","preferredVersion":{"version":"v1"}},{"name":"apps"}]}`)
		return
	}
	items, ok := f.items[r.URL.Path]
	if !ok {
		items = []string{}
	}
	f.page(w, r, items)
}

// page answers one page of items.
func (f *fakeAPI) page(w http.ResponseWriter, r *http.Request, items []string) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		f.t.Errorf("%s is not paged", r.URL)
		limit = len(items)
	}
	from := 0
	if c := r.URL.Query().Get("continue"); c != "" {
		if from, err = strconv.Atoi(strings.TrimPrefix(c, "newer-")); err != nil {
			f.t.Errorf("unknown token %q", c)
		}
	}
	to, next := from+limit, ""
	if to < len(items) {
		next = strconv.Itoa(to)
	} else {
		to = len(items)
	}
	fmt.Fprintf(w, `{"kind":"XList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`,
		next, strings.Join(items[from:to], ","))
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, message, next string) {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
	s.Continue = next
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(s); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func services(n int) []string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"s%03d","namespace":"a"},"spec":{"ports":[]}}`, i))
	}
	return items
}

func fake(t *testing.T, fault func(w http.ResponseWriter, r *http.Request, n int) bool) (*fakeAPI, *rest.Config) {
	t.Helper()
	f := &fakeAPI{t: t, fault: fault, count: map[string]int{}, items: map[string][]string{
		"/api/v1/services":   services(25),
		"/api/v1/namespaces": {`{"metadata":{"name":"a"}}`},
		"/api/v1/nodes":      {`{"metadata":{"name":"n1"}}`},
		"/api/v1/pods": {
			`{"metadata":{"name":"p1","namespace":"a","ownerReferences":[{"kind":"Job","name":"j1","controller":true}]},` +
				`"spec":{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"used"}}]}]}}`,
		},
		"/apis/batch/v1/jobs": {
			`{"metadata":{"name":"j1","namespace":"a","ownerReferences":[{"kind":"CronJob","name":"cj","controller":true}]}}`,
		},
		"/api/v1/configmaps": {
			`{"metadata":{"name":"used","namespace":"a"},"data":{"A":"b"}}`,
			`{"metadata":{"name":"unused","namespace":"a"},"data":{"A":"b"}}`,
			`{"metadata":{"name":"coredns-custom","namespace":"kube-system"},"data":{"x.server":"a:53 {\n}\n"}}`,
		},
		"/apis/networking.istio.io/v1/serviceentries": {`{"metadata":{"name":"se"},"spec":{"hosts":["API.example.org"]}}`},
	}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, &rest.Config{Host: server.URL}
}

func TestLive(t *testing.T) {
	f, config := fake(t, nil)
	counts := map[cluster.Resource]int{}
	r, err := Live(t.Context(), config, Options{Name: "ctx", PageSize: 10, Progress: func(p Progress) {
		if p.Done {
			counts[p.Resource] = p.Count
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Snapshot
	if len(s.Services) != 25 || len(s.Absent) != 0 || s.ServerVersion != "v1.36.3+k3s1" || s.Name != "ctx" {
		t.Errorf("%d Services, absent %v, version %q", len(s.Services), s.Absent, s.ServerVersion)
	}
	if diff := cmp.Diff([]string{"apps", "networking.istio.io"}, s.APIGroups); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"api.example.org"}, s.MeshHosts); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, c := range s.ConfigMaps {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"used", "coredns-custom"}, names); diff != "" {
		t.Error(diff)
	}
	if o := s.Pods[0].Owner.String(); o != "CronJob a/cj" {
		t.Errorf("owner %s", o)
	}
	if counts[cluster.Services] != 25 || counts[cluster.Pods] != 1 {
		t.Errorf("progress ends at %v", counts)
	}
	for _, p := range f.paths {
		if strings.Contains(p, "secret") {
			t.Errorf("asked for %s", p)
		}
	}
}

// TestFaultsInLists makes the second page of the Services go wrong in every way; the list must come out whole.
func TestFaultsInLists(t *testing.T) {
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "5000")
		fmt.Fprint(w, `{"kind":"ServiceList","metadata":{},"items":[{"metadata":{"name":"half","namespace":"a"}},{"meta`)
		panic(http.ErrAbortHandler)
	}
	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request, token string, n int) bool{
		"500": func(w http.ResponseWriter, _ *http.Request, token string, n int) bool {
			if n == 2 {
				status(w, 500, metav1.StatusReasonInternalError, "etcdserver: request timed out", "")
			}
			return n == 2
		},
		"429": func(w http.ResponseWriter, _ *http.Request, token string, n int) bool {
			if n == 2 {
				w.Header().Set("Retry-After", "1")
				status(w, 429, metav1.StatusReasonTooManyRequests, "slow down", "")
			}
			return n == 2
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request, token string, n int) bool {
			if n == 2 {
				cut(w)
			}
			return false
		},
		"ends in the middle": func(w http.ResponseWriter, _ *http.Request, token string, n int) bool {
			if n == 2 {
				fmt.Fprint(w, `{"kind":"ServiceList","metadata":{},"items":[{"metadata":{"name":"half","namespace":"a"}}`)
			}
			return n == 2
		},
		"410, anew": func(w http.ResponseWriter, _ *http.Request, token string, n int) bool {
			if n == 2 {
				status(w, 410, metav1.StatusReasonExpired, "too old", "")
			}
			return n == 2
		},
		"410, goes on": func(w http.ResponseWriter, _ *http.Request, token string, n int) bool {
			if n == 2 {
				status(w, 410, metav1.StatusReasonExpired, "too old", "newer-"+token)
			}
			return n == 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, config := fake(t, func(w http.ResponseWriter, r *http.Request, n int) bool {
				return r.URL.Path == "/api/v1/services" && fault(w, r, r.URL.Query().Get("continue"), n)
			})
			r, err := Live(t.Context(), config, Options{PageSize: 10})
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for _, s := range r.Snapshot.Services {
				got = append(got, s.Name)
			}
			for i := range 25 {
				want = append(want, fmt.Sprintf("s%03d", i))
			}
			if diff := cmp.Diff(want, got); diff != "" || len(r.Snapshot.Absent) > 0 {
				t.Errorf("absent %v, Services %s", r.Snapshot.Absent, diff)
			}
		})
	}
}

// TestAbsent makes the Services unreadable for good; everything else must be read, and the reason told.
func TestAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(w http.ResponseWriter)
		want  string
	}{
		"403": {func(w http.ResponseWriter) {
			status(w, 403, metav1.StatusReasonForbidden, `services is forbidden: User "jane" cannot list resource "services"`, "")
		}, `listing services is forbidden: User "jane" cannot list`},
		"403 of a proxy": {func(w http.ResponseWriter) { w.WriteHeader(403) }, "forbidden"},
		"404":            {func(w http.ResponseWriter) { w.WriteHeader(404) }, "does not serve services"},
		"500":            {func(w http.ResponseWriter) { status(w, 500, "", "etcd is gone", "") }, "the server answers 500: etcd is gone"},
		"always expired": {func(w http.ResponseWriter) { status(w, 410, metav1.StatusReasonExpired, "too old", "") }, "410"},
		"page of HTML":   {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>log in</html>") }, "no list of Kubernetes objects"},
		"another object": {func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"Cat"}`) }, "no list of Kubernetes objects"},
		"same page":      {func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"XList","metadata":{"continue":"1"},"items":[]}`) }, "repeats"},
		"half":           {func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"XList","items":[`) }, "cut off"},
		"broken item":    {func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"XList","items":[{"spec":1}]}`) }, "reading the list of services"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, config := fake(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
				if r.URL.Path == "/api/v1/services" {
					c.fault(w)
				}
				return r.URL.Path == "/api/v1/services"
			})
			r, err := Live(t.Context(), config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := r.Snapshot
			if !strings.Contains(s.Absent[cluster.Services], c.want) || len(s.Absent) != 1 {
				t.Errorf("absent %v, want %q", s.Absent, c.want)
			}
			if s.Services != nil || len(s.Pods) != 1 || len(s.ConfigMaps) != 2 {
				t.Errorf("%d Services, %d pods, %d ConfigMaps", len(s.Services), len(s.Pods), len(s.ConfigMaps))
			}
		})
	}
}

func TestOnlyOneNamespace(t *testing.T) {
	f, config := fake(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if strings.HasPrefix(r.URL.Path, "/api") && !strings.Contains(r.URL.Path, "/namespaces/a/") && r.URL.Path != "/apis" {
			status(w, 403, metav1.StatusReasonForbidden, r.URL.Path+` is forbidden: User "jane" cannot list it at the cluster scope`, "")
			return true
		}
		return false
	})
	f.items["/api/v1/namespaces/a/services"] = services(3)
	f.items["/api/v1/namespaces/a/pods"] = f.items["/api/v1/pods"]
	r, err := Live(t.Context(), config, Options{Namespace: "a"})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Snapshot
	if len(s.Services) != 3 || !strings.HasPrefix(s.Absent[cluster.Services], "only namespace a was read: ") {
		t.Errorf("%d Services, absent %q", len(s.Services), s.Absent[cluster.Services])
	}
	if _, ok := s.Absent[cluster.Pods]; ok || len(s.Pods) != 1 || s.Absent[cluster.Namespaces] == "" || s.Absent[cluster.Nodes] == "" {
		t.Errorf("%d pods, absent %v", len(s.Pods), s.Absent)
	}
	if len(r.Notes) != 4 {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestLiveErrors(t *testing.T) {
	t.Run("expired token", func(t *testing.T) {
		_, config := fake(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
			status(w, 401, metav1.StatusReasonUnauthorized, "Unauthorized", "")
			return true
		})
		if _, err := Live(t.Context(), config, Options{}); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("token expires on the way", func(t *testing.T) {
		_, config := fake(t, func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.URL.Path == "/api/v1/services" && n == 2 {
				status(w, 401, metav1.StatusReasonUnauthorized, "Unauthorized", "")
				return true
			}
			return false
		})
		if _, err := Live(t.Context(), config, Options{PageSize: 10}); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		_, config := fake(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
			status(w, 403, metav1.StatusReasonForbidden, "no", "")
			return true
		})
		_, err := Live(t.Context(), config, Options{Namespace: "a"})
		if err == nil || !strings.Contains(err.Error(), "nothing could be read") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no server", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		url := server.URL
		server.Close()
		_, err := Live(t.Context(), &rest.Config{Host: url}, Options{})
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "/api/") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, config := fake(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
			cancel()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
				t.Error("the request goes on after the context ended")
			}
			return true
		})
		if _, err := Live(ctx, config, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// TestConfigMapsWaitForPods makes the pods slow and the ConfigMaps large.
func TestConfigMapsWaitForPods(t *testing.T) {
	release := make(chan struct{})
	f, config := fake(t, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Path == "/api/v1/pods" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	})
	var big []string
	for i := range 50 {
		big = append(big, fmt.Sprintf(`{"metadata":{"name":"big%d","namespace":"a"},"data":{"k":%q}}`, i, strings.Repeat("x", 1<<20)))
	}
	f.items["/api/v1/configmaps"] = append(big, f.items["/api/v1/configmaps"]...)
	var once sync.Once
	r, err := Live(t.Context(), config, Options{PageSize: 10, Progress: func(p Progress) {
		if p.Resource == cluster.ConfigMaps && p.Count >= 30 {
			once.Do(func() { close(release) })
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Snapshot.ConfigMaps) != 2 {
		t.Errorf("%d ConfigMaps", len(r.Snapshot.ConfigMaps))
	}
}

// TestProtobufEqualsJSON gives one pod in both forms.
func TestProtobufEqualsJSON(t *testing.T) {
	yes := true
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a", Labels: map[string]string{"k8s-app": "kube-dns"}},
		Spec: corev1.PodSpec{
			NodeName: "n",
			Containers: []corev1.Container{{
				Name: "c", Image: "coredns:1", Args: []string{}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready"}}},
			}},
			DNSConfig: &corev1.PodDNSConfig{Searches: []string{}}, SetHostnameAsFQDN: &yes,
		},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "192.0.2.1"}}},
	}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&pod)
	if err != nil {
		t.Fatal(err)
	}
	add := item(func(b *builder, p *corev1.Pod) error { b.addPod(p); return nil })
	a, b := newBuilder(), newBuilder()
	if err := errors.Join(add(a, raw, true), add(b, text, false)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.pods, b.pods); diff != "" {
		t.Errorf("(-protobuf +JSON):\n%s", diff)
	}
}
