package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

func podList(n int) []byte {
	g := newGenerator(1)
	items := make([]message, n)
	for i := range items {
		items[i] = g.pod(i)
	}
	return protoListOf(metav1.ListMeta{}, items...)
}

// BenchmarkPods reads one page of 1,000 pods. "decode" decodes them and does nothing else: what the pipeline adds is the
// difference.
func BenchmarkPods(b *testing.B) {
	raw := podList(1000)
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := protoList(bufio.NewReader(bytes.NewReader(raw)), maxItem, func(raw []byte) error { return new(corev1.Pod).Unmarshal(raw) })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pipeline", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		add := item(func(b *builder, p *corev1.Pod) error { b.addPod(p); return nil })
		for b.Loop() {
			built := newBuilder()
			_, err := protoList(bufio.NewReader(bytes.NewReader(raw)), maxItem, func(raw []byte) error { return add(built, raw, true) })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCluster builds the cluster of the contract, and reports what it holds in memory afterwards.
func BenchmarkCluster(b *testing.B) {
	g := newGenerator(1)
	pods := podList(20_000)
	var services, eps []message
	for i := range 10_000 {
		services = append(services, g.service(i))
	}
	for i := range 8_000 {
		eps = append(eps, g.slice(i))
	}
	rawServices, rawSlices := protoListOf(metav1.ListMeta{}, services...), protoListOf(metav1.ListMeta{}, eps...)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var s *cluster.Snapshot
	for b.Loop() {
		built := newBuilder()
		read := func(raw []byte, add func(*builder, []byte, bool) error) {
			if _, err := protoList(bufio.NewReader(bytes.NewReader(raw)), maxItem, func(raw []byte) error { return add(built, raw, true) }); err != nil {
				b.Fatal(err)
			}
		}
		read(pods, item(func(b *builder, p *corev1.Pod) error { b.addPod(p); return nil }))
		read(rawServices, item(func(b *builder, v *corev1.Service) error { b.addService(v); return nil }))
		read(rawSlices, item(func(b *builder, v *discoveryv1.EndpointSlice) error { b.addEndpointSlice(v); return nil }))
		s = &cluster.Snapshot{}
		built.finish(s)
	}
	b.ReportMetric(float64(int64(heap())-int64(before))/(1<<20), "MiB-held")
	runtime.KeepAlive([]any{s, pods, rawServices, rawSlices})
}

func BenchmarkFiles(b *testing.B) {
	var saved bytes.Buffer
	built := newBuilder()
	g := newGenerator(1)
	for i := range 2000 {
		built.addPod(g.pod(i))
	}
	s := &cluster.Snapshot{}
	built.finish(s)
	if err := Write(&saved, s, ""); err != nil {
		b.Fatal(err)
	}
	var list bytes.Buffer
	fmt.Fprint(&list, "apiVersion: v1\nkind: List\nitems:\n")
	for i := range 1000 {
		fmt.Fprintf(&list, "- apiVersion: v1\n  kind: Service\n  metadata:\n    name: s%d\n    namespace: a\n  spec:\n    type: ClusterIP\n    ports:\n    - port: 80\n      protocol: TCP\n", i)
	}
	for name, raw := range map[string][]byte{"snapshot": saved.Bytes(), "yaml": list.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := Files(b.Context(), []string{"-"}, io.MultiReader(bytes.NewReader(raw)), Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
