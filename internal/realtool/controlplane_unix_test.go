//go:build unix

package realtool

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool/toolcache"
)

func TestControlPlane(t *testing.T) {
	cp := New(t, Options{})
	ctx := t.Context()
	admin := clientset(t)(cp.Config())

	t.Run("the objects of every cluster are there", func(t *testing.T) {
		svc, err := admin.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("10.96.0.1", svc.Spec.ClusterIP); diff != "" {
			t.Errorf("address of Service kubernetes (-want +got):\n%s", diff)
		}
	})

	t.Run("objects are written and listed", func(t *testing.T) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		if _, err := admin.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		dual := corev1.IPFamilyPolicyRequireDualStack
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{IPFamilyPolicy: &dual, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if _, err := admin.CoreV1().Services("shop").Create(ctx, svc, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		// No kubelet and no service account: the Pod stays as written.
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-0"},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web", Image: "web.example.org/web:1"}}},
		}
		if _, err := admin.CoreV1().Pods("shop").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}

		services, err := admin.CoreV1().Services("shop").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(services.Items) != 1 || len(services.Items[0].Spec.ClusterIPs) != 2 {
			t.Fatalf("Services of shop: %v, want one with two addresses", services.Items)
		}
		for i, cidr := range []string{ServiceCIDRv4, ServiceCIDRv6} {
			ip := services.Items[0].Spec.ClusterIPs[i]
			if !netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(ip)) {
				t.Errorf("address %d of the Service is %s, want one in %s", i, ip, cidr)
			}
		}
		pods, err := admin.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) != 1 || pods.Items[0].Spec.NodeName != "n1" {
			t.Errorf("Pods: %v, want web-0 on n1", pods.Items)
		}
	})

	t.Run("users have the rights that RBAC gives them", func(t *testing.T) {
		user := clientset(t)(cp.ConfigFor("jane", "developers"))
		if _, err := user.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Fatalf("listing as a user without rights: %v, want Forbidden", err)
		}
		// A role of our own: the rules of view, edit and admin are gathered by a controller, which does not run here.
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "pods"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
		}
		if _, err := admin.RbacV1().Roles("default").Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "pods"},
			Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "developers"}},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: "pods"},
		}
		if _, err := admin.RbacV1().RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		// The server's authorizer follows its informers, some milliseconds behind.
		var err error
		if !eventually(t, 30*time.Second, func() bool {
			_, err = user.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			return err == nil
		}) {
			t.Errorf("listing as a member of a group with the right: %v", err)
		}
		if _, err := user.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing in another namespace: %v, want Forbidden", err)
		}
	})

	t.Run("an expired certificate is refused", func(t *testing.T) {
		user := clientset(t)(cp.ExpiredConfigFor("admin", "system:masters"))
		if _, err := user.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("the API server took an expired certificate")
		}
	})

	t.Run("requests without credentials are refused", func(t *testing.T) {
		c, err := cp.Config()
		if err != nil {
			t.Fatal(err)
		}
		anonymous := clientset(t)(rest.AnonymousClientConfig(c), nil)
		if _, err := anonymous.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("listing without credentials: %v, want Unauthorized", err)
		}
	})

	t.Run("kubectl reads the kubeconfig", func(t *testing.T) {
		kubectl := Tool(t, "kubectl")
		cmd := exec.Command(kubectl, "--kubeconfig", cp.Kubeconfig(t, ""), "get", "namespace", "default", "-o", "name")
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "namespace/default\n" {
			t.Errorf("kubectl get: %v\n%s", err, out)
		}
	})
}

func TestAnonymousAndArgs(t *testing.T) {
	cp := New(t, Options{Anonymous: true, APIServerArgs: []string{"--service-cluster-ip-range=198.18.0.0/16"}})
	c, err := cp.Config()
	if err != nil {
		t.Fatal(err)
	}
	svc, err := clientset(t)(c, nil).CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if svc.Spec.ClusterIP != "198.18.0.1" {
		t.Errorf("address of Service kubernetes is %s, want 198.18.0.1", svc.Spec.ClusterIP)
	}
	anonymous := clientset(t)(rest.AnonymousClientConfig(c), nil)
	_, err = anonymous.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:anonymous"`) {
		t.Errorf("listing without credentials: %v, want Forbidden for system:anonymous", err)
	}
}

func TestAuthorization(t *testing.T) {
	cp := New(t, Options{Authorization: "AlwaysAllow"})
	user := clientset(t)(cp.ConfigFor("jane"))
	if _, err := user.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listing as a user without roles: %v", err)
	}
}

func TestStartError(t *testing.T) {
	Tool(t, "etcd")
	Tool(t, "kube-apiserver")
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("Start = %v, want the API server's own complaint", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("a start that failed left %v", left)
	}
}

func TestStop(t *testing.T) {
	cp, err := Start(t.Context(), Options{})
	if err != nil {
		Missing(t, err)
	}
	var pids []int
	for _, p := range cp.servers {
		pids = append(pids, p.pid)
	}
	for range 2 { // the second time does nothing
		if err := cp.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after Stop", pid)
		}
	}
	if _, err := os.Stat(cp.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the control plane is there after Stop: %v", err)
	}
}

// orphanEnv makes TestKilled the child that is killed.
const orphanEnv = "DNSMESH_TEST_ORPHAN"

// TestKilled kills a test binary with SIGKILL while it has a control plane: its servers have to go with it.
func TestKilled(t *testing.T) {
	if os.Getenv(orphanEnv) != "" {
		cp, err := Start(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range cp.servers {
			fmt.Println("pid", p.pid)
		}
		fmt.Println("up")
		select {} // until killed
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a process that was killed")
	}
	Tool(t, "etcd")
	Tool(t, "kube-apiserver")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "up" {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Errorf("line %q: %v", lines.Text(), err)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 || !alive(pids[0]) || !alive(pids[1]) {
		t.Errorf("the child started servers %v, want two that live", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended well, want killed")
	}
	for _, pid := range pids {
		if !eventually(t, 30*time.Second, func() bool { return !alive(pid) }) {
			t.Errorf("process %d outlived the test binary that started it", pid)
		}
	}
}

func TestWriteKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	want := &rest.Config{
		Host:            "https://192.0.2.1:6443",
		BearerToken:     "token",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key")},
	}
	if err := WriteKubeconfig(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != want.Host || got.BearerToken != want.BearerToken {
		t.Errorf("server %q and token %q, want %q and %q", got.Host, got.BearerToken, want.Host, want.BearerToken)
	}
	if diff := cmp.Diff(want.TLSClientConfig, got.TLSClientConfig); diff != "" {
		t.Errorf("TLS settings (-want +got):\n%s", diff)
	}
}

func TestSkippable(t *testing.T) {
	missing := fmt.Errorf("starting: %w", &toolcache.MissingError{})
	optional := fmt.Errorf("starting: %w", Optional(errors.New("named is not installed")))
	other := errors.New("etcd ended")
	for _, tt := range []struct {
		name    string
		err     error
		require string
		want    bool
	}{
		{"missing on a laptop", missing, "", true},
		{"missing in CI", missing, "1", false},
		{"optional on a laptop", optional, "0", true},
		{"optional in CI", optional, "1", false},
		{"broken on a laptop", other, "", false},
	} {
		if got := skippable(tt.err, tt.require); got != tt.want {
			t.Errorf("%s: skippable = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// clientset returns a function that makes a client of a configuration, for use around a call that returns one.
func clientset(t *testing.T) func(*rest.Config, error) *kubernetes.Clientset {
	return func(c *rest.Config, err error) *kubernetes.Clientset {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
}

// eventually polls ok until it is true or the time is up, and returns its last answer.
func eventually(t *testing.T, within time.Duration, ok func() bool) bool {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}

// alive reports whether a process of ours exists and is no zombie. A zombie that its new parent has yet to wait for has
// ended all the same.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	// proc(5): the state follows the name in parentheses, which may itself hold parentheses.
	_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return !strings.HasPrefix(state, "Z")
}
