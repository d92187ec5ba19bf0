package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzFiles gives any bytes as a file. Whatever is accepted must come through a saved snapshot unchanged.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(objects))
	f.Add([]byte(configMaps))
	f.Add([]byte(objects + "---\n" + configMaps))
	f.Add([]byte("==== START logs for container c of pod a/p ====\nx\n==== END logs for container c of pod a/p ====\n"))
	f.Add([]byte("items:\n- kind: Pod\n  metadata: &a {name: x}\n- *a\nkind: PodList\n"))
	f.Add([]byte("--- {<<: [{kind: Pod}, *x]}\n...\n%YAML 1.1\n---\n? a\n: b\n"))
	f.Add([]byte("\xff\xfek\x00"))
	f.Add([]byte("\xfe {"))
	f.Add([]byte(gzipped(f, `[{"kind":"Endpoints","subsets":[{"addresses":[{"ip":"::1"}]}]},1,"x",null]`)))
	var snapshot bytes.Buffer
	if err := Write(&snapshot, anySnapshot(3), ""); err != nil {
		f.Fatal(err)
	}
	f.Add(snapshot.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := Options{Limits: Limits{Object: 1 << 20, Total: 16 << 20, ConfigMaps: 1 << 20}}
		r, err := Files(context.Background(), []string{"-"}, bytes.NewReader(raw), o)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, r.Snapshot, ""); err != nil {
			t.Fatal(err)
		}
		again, err := Files(context.Background(), []string{"-"}, &b, Options{})
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if diff := cmp.Diff(r.Snapshot, again.Snapshot); diff != "" {
			t.Errorf("(-read +read again):\n%s", diff)
		}
	})
}

// FuzzLists gives any bytes as the answer of an API server.
func FuzzLists(f *testing.F) {
	g := newGenerator(1)
	f.Add(protoListOf(metav1.ListMeta{Continue: "x"}, g.pod(1), g.pod(2)))
	f.Add([]byte("k8s\x00"))
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\x0f"))
	f.Add([]byte(`{"metadata":{"continue":"x"},"items":[{"spec":{}}]}`))
	add := item(func(b *builder, p *corev1.Pod) error { b.addPod(p); return nil })
	f.Fuzz(func(t *testing.T, raw []byte) {
		b := newBuilder()
		in := bufio.NewReader(bytes.NewReader(raw))
		_, protoErr := protoList(in, 1<<20, func(raw []byte) error { return add(b, raw, true) })
		in.Reset(bytes.NewReader(raw))
		_, jsonErr := jsonList(in, func(raw []byte) error { return add(b, raw, false) })
		if protoErr == nil && jsonErr == nil {
			t.Error("one answer is a list in both forms")
		}
		if errors.Is(protoErr, errStop("")) || errors.Is(jsonErr, errStop("both found")) {
			t.Error("an internal error gets out")
		}
	})
}

func TestProtoList(t *testing.T) {
	g := newGenerator(1)
	pod := g.pod(1)
	raw := protoListOf(metav1.ListMeta{Continue: "next"}, pod, g.pod(2))
	read := func(raw []byte) (names []string, meta metav1.ListMeta, err error) {
		meta, err = protoList(bufio.NewReader(bytes.NewReader(raw)), 1<<20, func(raw []byte) error {
			var p corev1.Pod
			err := p.Unmarshal(raw)
			names = append(names, p.Name)
			return err
		})
		return names, meta, err
	}
	names, meta, err := read(raw)
	if err != nil || meta.Continue != "next" || len(names) != 2 || names[0] != pod.Name {
		t.Errorf("names %q, continue %q, error %v", names, meta.Continue, err)
	}
	// Cut off anywhere before the end of the items, it is an error.
	for n := range len(raw) - 4 {
		if _, _, err := read(raw[:n]); err == nil {
			t.Fatalf("no error for the first %d of %d bytes", n, len(raw))
		}
	}
	if _, err := protoList(bufio.NewReader(bytes.NewReader(raw)), 100, func([]byte) error { return nil }); !errors.Is(err, ErrLimit) {
		t.Errorf("an item over the limit: %v", err)
	}
}
