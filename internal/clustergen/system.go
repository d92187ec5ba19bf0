package clustergen

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// systemNamespaces are the namespaces of the system and of the faults.
func systemNamespaces() []string {
	return []string{"default", "kube-system", "observability", "ledger", "shopfront", "backoffice"}
}

// dnsIP is the address that pods ask.
const dnsIP = "10.96.0.10"

func dnsPorts() []corev1.ServicePort {
	return []corev1.ServicePort{
		{Name: "dns", Port: 53, TargetPort: intstr.FromInt32(53), Protocol: corev1.ProtocolUDP},
		{Name: "dns-tcp", Port: 53, TargetPort: intstr.FromInt32(53), Protocol: corev1.ProtocolTCP},
		{Name: "metrics", Port: 9153, TargetPort: intstr.FromInt32(9153), Protocol: corev1.ProtocolTCP},
	}
}

func newService(namespace, name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta("Service", namespace, name, nil), Spec: spec,
	}
}

func systemServices() []*corev1.Service {
	dns := newService("kube-system", "kube-dns", clusterIP(dnsIP, map[string]string{"k8s-app": "kube-dns"}, dnsPorts()...))
	dns.Labels = map[string]string{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS", "kubernetes.io/cluster-service": "true"}
	otlp := corev1.ServicePort{Name: "otlp", Port: 4317, TargetPort: intstr.FromInt32(4317), Protocol: corev1.ProtocolTCP}
	api := newService("default", "kubernetes", clusterIP("10.96.0.1", nil, corev1.ServicePort{
		Name: "https", Port: 443, TargetPort: intstr.FromInt32(6443), Protocol: corev1.ProtocolTCP,
	}))
	api.Labels = map[string]string{"component": "apiserver", "provider": "kubernetes"}
	return []*corev1.Service{
		api, dns, newService("observability", "otel-collector", clusterIP("10.96.0.20", map[string]string{"app": "otel-collector"}, otlp)),
	}
}

// systemPod describes a pod that stands in the system's namespaces.
type systemPod struct {
	namespace, app, image string
	labels                map[string]string
	pods                  int
}

func systemApps() []systemPod {
	return []systemPod{
		{"kube-system", "coredns", "registry.k8s.io/coredns/coredns:v1.14.1", map[string]string{"k8s-app": "kube-dns"}, 2},
		{"observability", "otel-collector", "registry.example.org/otel/collector:0.140.0", map[string]string{"app": "otel-collector"}, 1},
	}
}

// systemIP is the address of the i-th pod of a system app; they lie outside of those of the workloads.
func systemIP(app, i int) string { return fmt.Sprintf("10.127.%d.%d", app, i+2) }

func (s systemPod) name(i int) string {
	return fmt.Sprintf("%s-%s-%s", s.app, hash(10, s.app), hash(5, s.app, fmt.Sprint(i)))
}

func systemPods() []*corev1.Pod {
	var all []*corev1.Pod
	for a, s := range systemApps() {
		for i := range s.pods {
			labels := map[string]string{"pod-template-hash": hash(10, s.app)}
			for k, v := range s.labels {
				labels[k] = v
			}
			c := corev1.Container{Name: s.app, Image: s.image, ImagePullPolicy: corev1.PullIfNotPresent}
			spec := corev1.PodSpec{NodeName: nodeName(i), DNSPolicy: corev1.DNSClusterFirst}
			if s.app == "coredns" {
				spec.DNSPolicy = corev1.DNSDefault
				c.Args = []string{"-conf", "/etc/coredns/Corefile"}
				c.VolumeMounts = []corev1.VolumeMount{{Name: "config-volume", ReadOnly: true, MountPath: "/etc/coredns"}}
				c.Ports = []corev1.ContainerPort{
					{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", ContainerPort: 53, Protocol: corev1.ProtocolTCP},
				}
				spec.Volumes = []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}, Items: []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}},
				}}}}
			}
			spec.Containers = []corev1.Container{c}
			p := newPod(s.namespace, s.name(i), labels, metav1.OwnerReference{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: s.app + "-" + hash(10, s.app),
			}, &spec)
			p.Status = running(p, systemIP(a, i), nodeIP(i))
			all = append(all, p)
		}
	}
	return all
}

func systemSlices() []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for a, s := range systemApps() {
		var endpoints []discoveryv1.Endpoint
		for i := range s.pods {
			endpoints = append(endpoints, endpoint(s.namespace, s.name(i), systemIP(a, i), nodeName(i)))
		}
		service, ports := s.app, []discoveryv1.EndpointPort{{Name: ptr("otlp"), Port: ptr[int32](4317), Protocol: ptr(corev1.ProtocolTCP)}}
		if s.app == "coredns" {
			service, ports = "kube-dns", nil
			for _, p := range dnsPorts() {
				ports = append(ports, discoveryv1.EndpointPort{Name: ptr(p.Name), Port: ptr(p.Port), Protocol: ptr(p.Protocol)})
			}
		}
		all = append(all, endpointSlice(s.namespace, service, endpoints, ports...))
	}
	return all
}

// corefile is the Corefile of kubeadm.
func corefile() *corev1.ConfigMap {
	return configMap("kube-system", "coredns", map[string]string{"Corefile": `.:53 {
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
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`})
}

// Fault is a fault of the cluster: what doctor must report, at the severity of an error.
type Fault struct {
	Code   string
	Object finding.Object
}

// Faults lists the faults of every cluster, whatever its size, in the order of codes and objects.
func Faults() []Fault {
	service := func(name string) finding.Object {
		return finding.Object{Kind: "Service", Namespace: "backoffice", Name: name}
	}
	deployment := func(name string) finding.Object {
		return finding.Object{Kind: "Deployment", Namespace: "shopfront", Name: name}
	}
	return []Fault{
		{"DM1002", deployment("checkout")},
		{"DM1007", deployment("basket")},
		{"DM2001", service("gone")},
		{"DM2002", service("loop-a")},
		{"DM2003", service("address")},
		{"DM2005", service("one-label")},
	}
}

// faultServices are the Services that are at fault, and those that the faults need beside them.
func faultServices() []*corev1.Service {
	alias := func(namespace, name, target string) *corev1.Service {
		return newService(namespace, name, corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: target, SessionAffinity: corev1.ServiceAffinityNone,
		})
	}
	web := corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}
	return []*corev1.Service{
		newService("backoffice", "ledger", clusterIP("10.96.0.30", map[string]string{"app": "ledger"}, web)),
		alias("ledger", "archive", "ledger.backoffice.svc.cluster.local"),
		alias("backoffice", "gone", "gone.shopfront.svc.cluster.local"),
		alias("backoffice", "loop-a", "loop-b.backoffice.svc.cluster.local"),
		alias("backoffice", "loop-b", "loop-a.backoffice.svc.cluster.local"),
		alias("backoffice", "address", "192.0.2.7"),
		alias("backoffice", "one-label", "mainframe"),
	}
}

// faultPods are pods of workloads that use a wrong name: one that reaches a namespace, and one that does not exist.
func faultPods() []*corev1.Pod {
	var all []*corev1.Pod
	for i, f := range []struct{ app, url string }{
		{"checkout", "https://ledger/v1/entries"},
		{"basket", "http://stock.backoffice.svc.cluster.local:8080"},
	} {
		template := hash(10, f.app)
		name := f.app + "-" + template + "-" + hash(5, f.app)
		spec := corev1.PodSpec{NodeName: nodeName(0), DNSPolicy: corev1.DNSClusterFirst, Containers: []corev1.Container{{
			Name: f.app, Image: "registry.example.org/shopfront/" + f.app + ":2.0.1",
			Env: []corev1.EnvVar{{Name: "BACKEND_URL", Value: f.url}},
		}}}
		p := newPod("shopfront", name, map[string]string{"app": f.app, "pod-template-hash": template}, metav1.OwnerReference{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: f.app + "-" + template,
		}, &spec)
		p.Status = running(p, systemIP(200, i), nodeIP(0))
		all = append(all, p)
	}
	return all
}
