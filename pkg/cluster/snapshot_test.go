package cluster

import (
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// snapshot decodes documents of YAML: the kinds of objects that a snapshot holds, Deployments and DaemonSets as
// templates, and pods with the owner that their label "owner" names as KIND.NAME.
func snapshot(t testing.TB, docs ...string) *Snapshot {
	t.Helper()
	s := &Snapshot{Absent: map[Resource]string{}}
	for doc := range strings.SplitSeq(strings.Join(docs, "\n---\n"), "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var head metav1.TypeMeta
		decode(t, doc, &head)
		switch head.Kind {
		case "Namespace":
			s.Namespaces = append(s.Namespaces, decode(t, doc, &corev1.Namespace{}))
		case "Service":
			s.Services = append(s.Services, decode(t, doc, &corev1.Service{}))
		case "ConfigMap":
			s.ConfigMaps = append(s.ConfigMaps, decode(t, doc, &corev1.ConfigMap{}))
		case "Node":
			s.Nodes = append(s.Nodes, decode(t, doc, &corev1.Node{}))
		case "EndpointSlice":
			s.EndpointSlices = append(s.EndpointSlices, decode(t, doc, &discoveryv1.EndpointSlice{}))
		case "Deployment":
			d := decode(t, doc, &appsv1.Deployment{})
			s.Templates = append(s.Templates, &Workload{
				Object: finding.Object{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name},
				Labels: d.Spec.Template.Labels, Spec: &d.Spec.Template.Spec,
			})
		case "DaemonSet":
			d := decode(t, doc, &appsv1.DaemonSet{})
			s.Templates = append(s.Templates, &Workload{
				Object: finding.Object{Kind: "DaemonSet", Namespace: d.Namespace, Name: d.Name},
				Labels: d.Spec.Template.Labels, Spec: &d.Spec.Template.Spec,
			})
		case "Pod":
			p := decode(t, doc, &corev1.Pod{})
			pod := &Pod{
				Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Phase: corev1.PodRunning, Ready: true, Spec: &p.Spec,
				Owner: finding.Object{Kind: "Pod", Namespace: p.Namespace, Name: p.Name},
			}
			if kind, name, ok := strings.Cut(p.Labels["owner"], "."); ok {
				pod.Owner = finding.Object{Kind: kind, Namespace: p.Namespace, Name: name}
			}
			for _, ip := range p.Status.PodIPs {
				pod.IPs = append(pod.IPs, ip.IP)
			}
			s.Pods = append(s.Pods, pod)
		default:
			t.Fatalf("a fixture holds the kind %q", head.Kind)
		}
	}
	return s
}

func decode[T any](t testing.TB, doc string, into T) T {
	t.Helper()
	if err := yaml.Unmarshal([]byte(doc), into); err != nil {
		t.Fatalf("decoding a fixture: %v\n%s", err, doc)
	}
	return into
}

// shuffled returns a copy of s with every slice in another order.
func shuffled(s *Snapshot, seed uint64) *Snapshot {
	r := rand.New(rand.NewPCG(seed, seed))
	out := *s
	out.Namespaces, out.Services, out.EndpointSlices = shuffle(r, s.Namespaces), shuffle(r, s.Services), shuffle(r, s.EndpointSlices)
	out.Pods, out.Templates, out.ConfigMaps = shuffle(r, s.Pods), shuffle(r, s.Templates), shuffle(r, s.ConfigMaps)
	out.Nodes, out.Texts = shuffle(r, s.Nodes), shuffle(r, s.Texts)
	return &out
}

func shuffle[T any](r *rand.Rand, list []T) []T {
	out := append([]T(nil), list...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func TestKnown(t *testing.T) {
	s := &Snapshot{Absent: map[Resource]string{Pods: "forbidden"}}
	if s.Known(Pods) {
		t.Error("absent pods are known")
	}
	if !s.Known(Nodes) {
		t.Error("the nodes of a whole cluster are not known")
	}
	s.Partial = true
	for _, r := range Resources() {
		if s.Known(r) {
			t.Errorf("%s of an empty selection are known", r)
		}
	}
	s.Absent = nil
	s.Templates = []*Workload{{}}
	if !s.Known(Pods) {
		t.Error("a template does not count as pods")
	}
}
