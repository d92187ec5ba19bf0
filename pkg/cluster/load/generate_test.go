package load

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// generator makes objects as an API server returns them, with all that the reduction has to cut off. Equal seeds make
// equal objects.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 1))} }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) meta(namespace, name string) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: "7f2c7b1e-6c1d-4b8a-9c55-0242ac120002", ResourceVersion: "123456",
		CreationTimestamp: metav1.Unix(1767225600, 0), Generation: 2,
		Labels: map[string]string{
			"app.kubernetes.io/name": name, "app.kubernetes.io/instance": namespace, "app.kubernetes.io/managed-by": "Helm",
		},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 800),
			"checksum/config": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name + "-7d9f8b6c5d", Controller: &yes}},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:metadata":{}}`, 60)),
		}},
	}
}

// pod is the i-th pod; four pods in a row belong to one Deployment.
func (g generator) pod(i int) *corev1.Pod {
	app := i / 4
	namespace := fmt.Sprintf("team-%03d", app%500)
	name := fmt.Sprintf("app-%05d", app)
	p := &corev1.Pod{ObjectMeta: g.meta(namespace, fmt.Sprintf("%s-7d9f8b6c5d-%05x", name, i))}
	p.OwnerReferences[0].Name = name + "-7d9f8b6c5d"
	p.Labels["pod-template-hash"] = "7d9f8b6c5d"
	var env []corev1.EnvVar
	for e := range 12 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", e), Value: fmt.Sprintf("value of %d", e)})
	}
	env = append(env,
		corev1.EnvVar{Name: "LEDGER_URL", Value: fmt.Sprintf("http://app-%05d.team-%03d:8080", app/2, app%500)},
		corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k",
		}}},
	)
	access := fmt.Sprintf("kube-api-access-%05x", i)
	resources := corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("512Mi")},
	}
	p.Spec = corev1.PodSpec{
		NodeName: fmt.Sprintf("node-%03d", i%200), ServiceAccountName: "default", DNSPolicy: corev1.DNSClusterFirst,
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "config"},
			}}},
			{Name: access, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
			}}}},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: fmt.Sprintf("registry.example.org/team/app-%05d:v1.2.3", app), Env: env, Resources: resources,
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app"}, {Name: access, MountPath: "/var/run/secrets"}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/healthz", Port: intstr.FromInt32(8080),
			}}},
		}},
		Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}},
	}
	ip := fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255)
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: "192.0.2.1",
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1767225600, 0)},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1767225600, 0)},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Ready: true, RestartCount: int32(i % 3), Image: "registry.example.org/team/app:v1.2.3",
			ImageID: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		}},
	}
	return p
}

// anyPod is a pod with an unusual mix of fields, for properties.
func (g generator) anyPod(i int) *corev1.Pod {
	yes := true
	p := g.pod(i)
	switch g.IntN(6) {
	case 0:
		p.OwnerReferences = nil
	case 1:
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: fmt.Sprintf("job-%d", 29500000+g.IntN(9)), Controller: &yes}}
	case 2:
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: p.Spec.NodeName, Controller: &yes}}
	case 3:
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: &yes}}
		p.Spec.Hostname, p.Spec.Subdomain = p.Name, "db"
	}
	if g.chance(20) {
		p.Labels["k8s-app"] = "kube-dns"
	}
	if g.chance(20) {
		p.Annotations[IgnoreAnnotation] = "DM1009"
		p.Annotations[ownerAnnotation] = "Deployment/forged"
	}
	if g.chance(20) {
		p.Spec.HostNetwork, p.Spec.DNSPolicy = true, corev1.DNSNone
		ndots := "2"
		p.Spec.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: []string{"192.0.2.53"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: &ndots}, {Name: "edns0"}},
		}
		p.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a.example.org"}}}
	}
	if g.chance(20) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Command: []string{"sh", "-c", "nc -z db 5432"}}}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}, TargetContainerName: "main",
		}}
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{Prefix: "S_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}},
		}
	}
	if g.chance(20) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
	return p
}

func (g generator) service(i int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: g.meta(fmt.Sprintf("team-%03d", i%500), fmt.Sprintf("app-%05d", i))}
	s.OwnerReferences = nil
	policy := corev1.IPFamilyPolicySingleStack
	cluster := corev1.ServiceInternalTrafficPolicyCluster
	ip := fmt.Sprintf("10.96.%d.%d", i>>8&255, i&255)
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, Selector: map[string]string{"app": s.Name},
		Ports:           []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: "TCP"}},
		SessionAffinity: corev1.ServiceAffinityNone, IPFamilyPolicy: &policy, InternalTrafficPolicy: &cluster,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
	}
	if i%10 == 0 {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "app.team-001.svc.cluster.local"}
	}
	return s
}

func (g generator) slice(i int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  g.meta(fmt.Sprintf("team-%03d", i%500), fmt.Sprintf("app-%05d-x%d", i, i)),
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	s.Labels[discoveryv1.LabelServiceName] = fmt.Sprintf("app-%05d", i)
	yes, port, name, protocol := true, int32(8080), "http", corev1.ProtocolTCP
	s.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	for e := range 2 {
		node := fmt.Sprintf("node-%03d", (i+e)%200)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.64.%d.%d", i>>8&255, i&255)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: "p", UID: "7f2c7b1e-6c1d-4b8a-9c55-0242ac120002"},
		})
	}
	return s
}

// protoListOf writes a list as the API server does: the envelope, in it the metadata and the items.
func protoListOf(meta metav1.ListMeta, items ...message) []byte {
	field := func(b []byte, number int, v []byte) []byte {
		b = binary.AppendUvarint(b, uint64(number<<3|wireBytes))
		return append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	m, err := meta.Marshal()
	if err != nil {
		panic(err)
	}
	list := field(nil, listMetadata, m)
	for _, item := range items {
		raw, err := item.Marshal()
		if err != nil {
			panic(err)
		}
		list = field(list, listItems, raw)
	}
	out := field(protoMagic[:], 1, []byte{0x0a, 2, 'v', '1'})
	out = field(out, unknownRaw, list)
	return field(field(out, 3, nil), 4, nil)
}
