package load

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// anySnapshot is what the pipeline makes of random objects.
func anySnapshot(seed uint64) *cluster.Snapshot {
	g := newGenerator(seed)
	b := newBuilder()
	for i := range g.IntN(60) {
		b.addPod(g.anyPod(i))
	}
	for i := range g.IntN(30) {
		b.addService(g.service(i))
		b.addEndpointSlice(g.slice(i))
		b.addNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%03d", i)}})
		b.addConfigMap(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: fmt.Sprintf("team-%03d", i)},
			Data:       map[string]string{"a.yaml": "url: <http://x&y>\u2028\x1b[31m\n", "ca.crt": " -----BEGIN CERTIFICATE-----\nx"},
			BinaryData: map[string][]byte{"b": {1}},
		})
		b.addNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", i), Annotations: map[string]string{"k3s.io/node-args": "[]"}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.0", MachineID: "x"},
			},
		})
	}
	for i, kind := range []string{"Deployment", kindCronJob, kindJob, "Rollout", "ReplicationController", "DeploymentConfig"} {
		if g.chance(50) {
			p := g.anyPod(i)
			b.addController(kind, &metav1.ObjectMeta{Name: "w", Namespace: "a"}, &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec})
		}
	}
	b.addMeshHosts([]string{"B.example.org.", "*.example.net"})
	s := &cluster.Snapshot{
		Name: "c", ServerVersion: "v1.36.3", Partial: g.chance(50), Absent: map[cluster.Resource]string{},
		Texts: []*cluster.Text{{Kind: cluster.TextCorefile, Name: "Corefile", Data: ".:53 {\n}\n"}},
	}
	if g.chance(50) {
		s.APIGroups = []string{"apps"}
		s.Absent[cluster.Nodes] = `listing nodes is forbidden: User "x"`
		s.Override = cluster.Override{Implementation: "coredns", Version: "1.11.3"}
	}
	b.finish(s)
	return s
}

// TestRoundTrip is the property that makes doctor on a saved snapshot equal to doctor on the cluster.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(40) {
		s := anySnapshot(seed)
		var b bytes.Buffer
		if err := Write(&b, s, "v1.0.0"); err != nil {
			t.Fatal(err)
		}
		first := bytes.Clone(b.Bytes())
		r, err := Files(t.Context(), []string{"-"}, &b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, r.Snapshot); diff != "" {
			t.Fatalf("seed %d: (-written +read):\n%s", seed, diff)
		}
		if len(r.Notes) > 0 {
			t.Errorf("seed %d: notes %q", seed, r.Notes)
		}
		shared := map[*corev1.PodSpec]bool{}
		for _, p := range s.Pods {
			shared[p.Spec] = true
		}
		for _, p := range r.Snapshot.Pods {
			delete(shared, p.Spec)
		}
		again := map[*corev1.PodSpec]bool{}
		for _, p := range r.Snapshot.Pods {
			again[p.Spec] = true
		}
		if len(shared) != len(again) {
			t.Errorf("seed %d: %d specifications became %d", seed, len(shared), len(again))
		}
		// The bytes depend on nothing but the content.
		random := rand.New(rand.NewPCG(seed, 2))
		x := *r.Snapshot
		x.Pods, x.Services, x.MeshHosts = slices.Clone(x.Pods), slices.Clone(x.Services), slices.Clone(x.MeshHosts)
		random.Shuffle(len(x.Pods), func(i, j int) { x.Pods[i], x.Pods[j] = x.Pods[j], x.Pods[i] })
		random.Shuffle(len(x.Services), func(i, j int) { x.Services[i], x.Services[j] = x.Services[j], x.Services[i] })
		slices.Reverse(x.MeshHosts)
		b.Reset()
		if err := Write(&b, &x, "v1.0.0"); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, b.Bytes()) {
			t.Errorf("seed %d: other bytes for the same snapshot in another order", seed)
		}
	}
}

func TestForgedOwner(t *testing.T) {
	s := mustRead(t, "kind: Pod\nmetadata: {name: p, annotations: {dnsmesh.io/owner: Deployment/forged}}\nspec: {containers: [{name: c}]}\n").Snapshot
	if o := s.Pods[0].Owner; o.Kind != "Pod" {
		t.Errorf("a pod of a cluster chose its owner %s", o)
	}
}

// failing fails after some bytes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, fmt.Errorf("disk full")
	}
	return len(p), nil
}

func TestWriteError(t *testing.T) {
	s := anySnapshot(1)
	for _, left := range []int{0, 10, 1000} {
		if err := Write(&failing{left}, s, ""); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
}
