package checks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// dice makes snapshots whose names are few, so that they meet, and now and then hostile.
type dice struct{ *rand.Rand }

func (d dice) pick(words ...string) string { return words[d.IntN(len(words))] }

func (d dice) name() string {
	if d.IntN(20) == 0 {
		return d.pick("", ".", "A", "a.b", "a b", "\x1b[31m", "ü", "'; x '", "a\nb", strings.Repeat("a", 70), "-", "*", "$(A)", "{{.}}")
	}
	return d.pick("a", "b", "c", "app", "my-app", "com", "dev", "svc", "pod", "db", "default", "kube-system")
}

func (d dice) host() string {
	n := d.name()
	for range d.IntN(4) {
		n += "." + d.name()
	}
	return n + d.pick("", "", ".", ".svc", ".svc.cluster.local", ".svc.cluster.local", ".svc.cluster.local.", ".svc.other.test", ":80", "/x")
}

func (d dice) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: d.name(), Name: d.name(), Annotations: map[string]string{
		diagnose.IgnoreAnnotation: d.pick("", "", "", "DM1", "*", ",", "DM2001,dm1002"),
	}}
}

func (d dice) some(n int, add func()) {
	for range d.IntN(n + 1) {
		add()
	}
}

func (d dice) spec() *corev1.PodSpec {
	s := &corev1.PodSpec{DNSPolicy: corev1.DNSPolicy(d.pick("", "ClusterFirst", "ClusterFirst", "Default", "None", "ClusterFirstWithHostNet", "X")), HostNetwork: d.IntN(8) == 0}
	if d.IntN(3) == 0 {
		ndots := d.pick("0", "1", "2", "15", "-1", "x", "")
		s.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: []string{d.pick("10.96.0.10", "192.0.2.1", "x")}, Searches: []string{d.host(), d.pick(".", "", "a.svc.cluster.local")},
			Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: &ndots}, {Name: "ndots"}},
		}
	}
	if d.IntN(5) == 0 {
		s.HostAliases = []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{d.host(), ""}}}
	}
	s.Hostname = d.pick("", "", d.name())
	s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: d.pick("coredns", d.name())}}}}}
	d.some(2, func() {
		c := corev1.Container{Name: d.name(), Image: d.pick("app", "coredns/coredns:1.8.0", "registry.example.org/k8s-dns-node-cache:1.2.3", "gcr.io/k8s-dns-kube-dns:1.14.13", d.name()), VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/etc/coredns"}}}
		d.some(4, func() {
			c.Env = append(c.Env, corev1.EnvVar{Name: d.pick("A", "A_URL", "A_HOST", "A_SERVER", "NAMESPACE", d.name()), Value: d.pick("", "http://", "https://", "$(A)", "$$(A)") + d.host()})
		})
		d.some(2, func() { c.Args = append(c.Args, d.pick("--a-url=http://", "-conf", "curl ", "")+d.host()) })
		d.some(1, func() {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: d.name()}}})
		})
		s.Containers = append(s.Containers, c)
	})
	return s
}

func (d dice) corefile() string {
	var b strings.Builder
	d.some(3, func() {
		fmt.Fprintf(&b, "%s%s {\n", d.pick(".:53", "cluster.local", "Corp.Test:53", "10.0.0.0/8", "(x)", d.host()), d.pick("", " a.test"))
		d.some(5, func() {
			b.WriteString(d.pick(
				"kubernetes cluster.local in-addr.arpa {\n pods "+d.pick("insecure", "verified", "x")+"\n fallthrough\n}",
				"forward . /etc/resolv.conf", "forward "+d.host()+" 192.0.2.1", "import x", "import /etc/coredns/*", "log {$X}",
				"rewrite name "+d.pick("exact", "prefix", "suffix", "substring", "regex")+" "+d.host()+" "+d.host()+d.pick("", " answer auto"),
				"hosts {\n 192.0.2.1 "+d.host()+"\n fallthrough\n}", "template IN A {\n match "+d.host()+"\n answer \"{{ .Name }} 60 IN A 192.0.2.1\"\n}",
				"file x", "}", "{", "\"") + "\n")
		})
		b.WriteString("}\n")
	})
	return b.String()
}

func (d dice) snapshot() *cluster.Snapshot {
	s := &cluster.Snapshot{Partial: d.IntN(2) == 0, Absent: map[cluster.Resource]string{}, ServerVersion: d.pick("", "v1.30.0", "x")}
	s.Override = cluster.Override{
		Implementation: cluster.Implementation(d.pick("", "", "coredns", "kube-dns", "x")), Version: d.pick("", "1.8.0", "1.10.0", "1.14.6", "x"),
		Domain: d.pick("", "", "cluster.local", "other.test", ".", "a..b"),
	}
	seen := map[finding.Object]bool{}
	fresh := func(kind string, m metav1.ObjectMeta) bool {
		o := finding.Object{Kind: kind, Namespace: m.Namespace, Name: m.Name}
		ok := !seen[o]
		seen[o] = true
		return ok
	}
	d.some(5, func() {
		if m := d.meta(); fresh("Namespace", metav1.ObjectMeta{Name: m.Name}) {
			m.Namespace = ""
			s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: m})
		}
	})
	d.some(14, func() {
		svc := &corev1.Service{ObjectMeta: d.meta(), Spec: corev1.ServiceSpec{ClusterIP: d.pick("10.96.0.10", "None", "", "x"), Ports: []corev1.ServicePort{{Port: int32(d.pick("5", "P")[0])}}}}
		if d.IntN(2) == 0 {
			svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: d.pick("", "192.0.2.1", d.host(), d.host(), d.host(), d.host()), Ports: svc.Spec.Ports}
		}
		if d.IntN(8) == 0 {
			svc.Namespace, svc.Name = "kube-system", "kube-dns"
		}
		if fresh("Service", svc.ObjectMeta) {
			s.Services = append(s.Services, svc)
		}
	})
	d.some(4, func() {
		e := &discoveryv1.EndpointSlice{ObjectMeta: d.meta()}
		e.Labels = map[string]string{discoveryv1.LabelServiceName: d.name()}
		e.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{d.pick("192.0.2.7", "2001:db8::7", "x")}}}
		if fresh("EndpointSlice", e.ObjectMeta) {
			s.EndpointSlices = append(s.EndpointSlices, e)
		}
	})
	d.some(6, func() {
		w := &cluster.Workload{Object: finding.Object{Kind: d.pick("Deployment", "Job"), Namespace: d.name(), Name: d.name()}, Spec: d.spec()}
		if !seen[w.Object] {
			seen[w.Object] = true
			s.Templates = append(s.Templates, w)
		}
	})
	d.some(4, func() {
		m := d.meta()
		p := &cluster.Pod{Namespace: m.Namespace, Name: m.Name, Owner: finding.Object{Kind: "Pod", Namespace: m.Namespace, Name: m.Name}, Spec: d.spec(), IPs: []string{d.pick("192.0.2.9", "")}, Ready: d.IntN(2) == 0}
		p.Labels = map[string]string{"k8s-app": d.pick("kube-dns", "x")}
		if fresh("Pod", m) {
			s.Pods = append(s.Pods, p)
		}
	})
	d.some(4, func() {
		m := &corev1.ConfigMap{ObjectMeta: d.meta(), Data: map[string]string{"Corefile": d.corefile(), "A_URL": "http://" + d.host(), "app.yaml": "url: http://" + d.host()}}
		if d.IntN(3) == 0 {
			m.Namespace, m.Name = "kube-system", d.pick("coredns", "kubelet-config", "kube-dns", "coredns-custom")
		}
		if fresh("ConfigMap", m.ObjectMeta) {
			s.ConfigMaps = append(s.ConfigMaps, m)
		}
	})
	d.some(2, func() { s.MeshHosts = append(s.MeshHosts, d.pick("*.", "")+d.host()) })
	d.some(3, func() {
		kind := cluster.TextKind(d.pick("Corefile", "UpstreamCorefile", "PodResolvConf", "NodeResolvConf", "x"))
		data := d.corefile()
		if strings.HasSuffix(string(kind), "Conf") {
			data = "search " + d.pick("a.svc.cluster.local svc.cluster.local cluster.local ", "") + d.host() + "\nnameserver 10.96.0.10\noptions ndots:" + d.pick("5", "1", "x") + "\n"
		}
		s.Texts = append(s.Texts, &cluster.Text{Kind: kind, Name: fmt.Sprint("text", len(s.Texts)), Data: data})
	})
	d.some(2, func() {
		all := cluster.Resources()
		s.Absent[all[d.IntN(len(all))]] = "hidden"
	})
	return s
}

// FuzzRun runs every analyzer over snapshots made by chance. Nothing may panic, the order of objects means nothing, and
// every finding is of a code that is known.
func FuzzRun(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := dice{rand.New(rand.NewPCG(seed, 2))}.snapshot()
		want := diagnose.Run(s, All(), diagnose.Options{})
		if diff := cmp.Diff(want, diagnose.Run(shuffled(s, seed), All(), diagnose.Options{})); diff != "" {
			t.Errorf("order matters (-as made +shuffled):\n%s", diff)
		}
		if !slices.IsSortedFunc(want.Findings, finding.Compare) {
			t.Error("the findings are not in order")
		}
		for _, g := range want.Findings {
			if Find(g.Code) == nil || g.Severity < finding.Info || g.Fix == nil || len(g.Evidence) == 0 {
				t.Errorf("incomplete: %s", describe(g))
			}
			if g.Fix != nil && g.Fix.Manifest != "" {
				checkManifest(t, g.Fix.Manifest)
			}
			for _, c := range g.Fix.Commands {
				if strings.ContainsAny(c, "\n\x1b") || strings.Count(c, "'")%2 != 0 {
					t.Errorf("command %q of %s", c, describe(g))
				}
			}
		}
	})
}
