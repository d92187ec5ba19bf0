package clustergen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// settled is when everything in the cluster was made and became ready.
func settled() metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) }

// hash returns n hexadecimal digits that depend on the words.
func hash(n int, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:])[:n]
}

func uid(words ...string) types.UID {
	h := hash(32, words...)
	return types.UID(h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:])
}

func meta(kind, namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: uid(kind, namespace, name), CreationTimestamp: settled(), Labels: labels,
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: meta("Namespace", "", name, map[string]string{corev1.LabelMetadataName: name}),
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

func nodeIP(i int) string { return fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255) } // RFC 2544

func node(i int) *corev1.Node {
	name := nodeName(i)
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: meta("Node", "", name, map[string]string{
			corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3),
		}),
	}
	n.Status = corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP(i)}, {Type: corev1.NodeHostName, Address: name}},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: settled(), LastTransitionTime: settled(),
		}},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.2.9", OSImage: "Debian GNU/Linux 12 (bookworm)",
			OperatingSystem: "linux", Architecture: "amd64",
		},
	}
	return n
}

func serviceIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", 97+i>>16, i>>8&255, i&255) }

func podIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255, i&255) }

// object is the Service as the API server returns it.
func (s *service) object() *corev1.Service {
	o := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta("Service", s.namespace, s.name, releaseLabels(s.name)),
	}
	o.Annotations = map[string]string{"meta.helm.sh/release-name": s.name, "meta.helm.sh/release-namespace": s.namespace}
	if s.target != "" {
		o.Spec = corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: s.target, SessionAffinity: corev1.ServiceAffinityNone,
		}
		return o
	}
	selector := s.name
	if s.backend != nil {
		selector = s.backend.name
	}
	selects := map[string]string{"app": selector}
	if s.backend != nil && s.endpoints < s.backend.pods {
		selects["role"] = "leader" // a label that the workload itself puts on some of its pods
	}
	o.Spec = clusterIP(serviceIP(s.index), selects,
		corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP},
		corev1.ServicePort{Name: "metrics", Port: 9090, TargetPort: intstr.FromInt32(9090), Protocol: corev1.ProtocolTCP})
	if s.headless {
		o.Spec.ClusterIP, o.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	}
	return o
}

func clusterIP(ip string, selector map[string]string, ports ...corev1.ServicePort) corev1.ServiceSpec {
	single, everywhere := corev1.IPFamilyPolicySingleStack, corev1.ServiceInternalTrafficPolicyCluster
	return corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, Selector: selector, Ports: ports,
		SessionAffinity: corev1.ServiceAffinityNone, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &single,
		InternalTrafficPolicy: &everywhere,
	}
}

func releaseLabels(name string) map[string]string {
	return map[string]string{
		"app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/instance": name, "app.kubernetes.io/managed-by": "Helm",
		"helm.sh/chart": "service-3.14.1",
	}
}

// slice holds the endpoints of a Service: pods of its workload.
func (c *Cluster) slice(s *service) *discoveryv1.EndpointSlice {
	w := s.backend
	endpoints := make([]discoveryv1.Endpoint, s.endpoints)
	for i := range endpoints {
		endpoints[i] = endpoint(w.namespace, w.podName(i), podIP(w.first+i), nodeName((w.first+i)%c.nodes))
		if s.headless {
			hostname := w.podName(i)
			endpoints[i].Hostname = &hostname
		}
	}
	return endpointSlice(s.namespace, s.name, endpoints,
		discoveryv1.EndpointPort{Name: ptr("http"), Port: ptr[int32](8080), Protocol: ptr(corev1.ProtocolTCP)},
		discoveryv1.EndpointPort{Name: ptr("metrics"), Port: ptr[int32](9090), Protocol: ptr(corev1.ProtocolTCP)})
}

func endpoint(namespace, pod, ip, node string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{ip},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr(true), Serving: ptr(true), Terminating: ptr(false)},
		NodeName:   &node,
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod, UID: uid("Pod", namespace, pod)},
	}
}

func endpointSlice(namespace, service string, endpoints []discoveryv1.Endpoint, ports ...discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: meta("EndpointSlice", namespace, service+"-"+hash(5, namespace, service), map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}),
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints, Ports: ports,
	}
	o.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Service", Name: service, UID: uid("Service", namespace, service), Controller: ptr(true), BlockOwnerDeletion: ptr(true),
	}}
	return o
}

func ptr[T any](v T) *T { return &v }

// templateHash is the pod-template-hash of a Deployment.
func (w *workload) templateHash() string { return hash(10, w.namespace, w.name) }

func (w *workload) podName(i int) string {
	switch w.kind {
	case "StatefulSet":
		return fmt.Sprintf("%s-%d", w.name, i)
	case "CronJob":
		return w.jobName(i) + "-" + hash(5, w.namespace, w.name, fmt.Sprint(i))
	}
	return w.name + "-" + w.templateHash() + "-" + hash(5, w.namespace, w.name, fmt.Sprint(i))
}

// jobName is that of the Job of one run: the minute that it was scheduled for follows the name of the CronJob
// (pkg/controller/cronjob/utils.go).
func (w *workload) jobName(i int) string { return fmt.Sprintf("%s-%d", w.name, 29_453_760+i) }

// configured tells whether the workload mounts a ConfigMap.
func (w *workload) configured() bool { return w.index%3 == 0 }

// caller returns a function that gives hosts which the workload may call, written in all the ways that resolve.
func (c *Cluster) caller(w *workload, r *rand.Rand) func() string {
	near := c.inNamespace[w.namespace]
	return func() string {
		if len(near) > 0 && r.IntN(3) == 0 {
			return near[r.IntN(len(near))].name
		}
		s := c.callable[r.IntN(len(c.callable))]
		switch r.IntN(3) {
		case 0:
			return s.name + "." + s.namespace
		case 1:
			return s.name + "." + s.namespace + ".svc"
		}
		return s.fqdn()
	}
}

// template is the specification that the pods of a workload share.
func (c *Cluster) template(w *workload) *corev1.PodSpec {
	r := c.random(1000 + uint64(w.index))
	host := c.caller(w, r)
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		{Name: "LOG_LEVEL", Value: "info"},
		{Name: "PORT", Value: "8080"},
		{Name: "GOMAXPROCS", Value: "2"},
		{Name: "TZ", Value: "Etc/UTC"},
		{Name: "FEATURE_FLAGS", Value: "checkout-v2,search-suggestions,dark-mode"},
		{Name: "OTEL_SERVICE_NAME", Value: w.name},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://otel-collector.observability:4317"},
		{Name: "DB_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: w.name}, Key: "password",
		}}},
		{Name: "DATABASE_URL", Value: "postgres://app:$(DB_PASSWORD)@" + host() + ":5432/app?sslmode=disable"},
		{Name: "SPRING_DATASOURCE_URL", Value: "jdbc:postgresql://" + host() + ":5432/app"},
		{Name: "REDIS_ADDR", Value: host() + ":6379"},
		{Name: "KAFKA_BROKERS", Value: host() + ":9092," + host() + ":9092"},
		{Name: "ORDERS_URL", Value: "http://" + host() + "/v1/orders"},
		field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"), field("POD_IP", "status.podIP"),
	}
	if w.index%2 == 0 {
		env = append(env, corev1.EnvVar{Name: "PARTNER_API", Value: fmt.Sprintf("https://api.partner-%d.example.org/v2", r.IntN(300))})
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP,
			}},
			TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	main := corev1.Container{
		Name: w.name, Image: "registry.example.org/" + w.namespace + "/" + w.name + ":1.42.0", ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"serve", "--listen=:8080", "--upstream=http://" + host() + ":8080", "--shutdown-timeout=30s"},
		Env:  env,
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP},
		},
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"memory": resource.MustParse("512Mi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("256Mi")},
		},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true), RunAsNonRoot: ptr(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	spec := &corev1.PodSpec{
		Containers: []corev1.Container{main}, DNSPolicy: corev1.DNSClusterFirst, RestartPolicy: corev1.RestartPolicyAlways,
		ServiceAccountName: "default", TerminationGracePeriodSeconds: ptr[int64](30), SchedulerName: corev1.DefaultSchedulerName,
		SecurityContext: &corev1.PodSecurityContext{}, EnableServiceLinks: ptr(true), PreemptionPolicy: ptr(corev1.PreemptLowerPriority), Priority: ptr[int32](0),
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr[int64](300)},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr[int64](300)},
		},
	}
	if w.kind == "CronJob" {
		spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	if w.configured() {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: w.name + "-settings"}, DefaultMode: ptr[int32](0o644),
			},
		}})
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "settings", ReadOnly: true, MountPath: "/etc/" + w.name}}
	}
	return spec
}

// pod is the i-th pod of a workload.
func (c *Cluster) pod(w *workload, i int, template *corev1.PodSpec) *corev1.Pod {
	name, n := w.podName(i), w.first+i
	labels := releaseLabels(w.name)
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: w.kind, Name: w.name}
	spec := template.DeepCopy()
	switch w.kind {
	case "StatefulSet":
		labels["statefulset.kubernetes.io/pod-name"] = name
		labels["controller-revision-hash"] = w.name + "-" + w.templateHash()
		spec.Hostname, spec.Subdomain = name, w.name
	case "CronJob":
		owner.APIVersion, owner.Kind, owner.Name = "batch/v1", "Job", w.jobName(i)
		labels["batch.kubernetes.io/job-name"] = owner.Name
		labels["batch.kubernetes.io/controller-uid"] = string(uid("Job", w.namespace, owner.Name))
	default:
		owner.Kind, owner.Name = "ReplicaSet", w.name+"-"+w.templateHash()
		labels["pod-template-hash"] = w.templateHash()
	}
	spec.NodeName = nodeName(n % c.nodes)
	// What the admission of service accounts adds to every pod.
	access := "kube-api-access-" + hash(5, w.namespace, name)
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: access, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr[int32](0o644), Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr[int64](3607)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		}},
	}})
	main := &spec.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{
		Name: access, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
	})
	p := newPod(w.namespace, name, labels, owner, spec)
	p.Annotations = map[string]string{
		"checksum/config": hash(64, w.namespace, w.name), "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
		"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
	}
	p.Status = running(p, podIP(n), nodeIP(n%c.nodes))
	if w.kind == "CronJob" {
		finish(p)
	}
	return p
}

func newPod(namespace, name string, labels map[string]string, owner metav1.OwnerReference, spec *corev1.PodSpec) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta("Pod", namespace, name, labels), Spec: *spec,
	}
	owner.UID, owner.Controller, owner.BlockOwnerDeletion = uid(owner.Kind, namespace, owner.Name), ptr(true), ptr(true)
	p.OwnerReferences = []metav1.OwnerReference{owner}
	return p
}

// running is the status that a kubelet gives to a pod that is ready.
func running(p *corev1.Pod, ip, host string) corev1.PodStatus {
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: host, HostIPs: []corev1.HostIP{{IP: host}},
		StartTime: ptr(settled()),
	}
	for _, t := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: settled()})
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Started: ptr(true), Image: c.Image,
			ImageID:     c.Image + "@sha256:" + hash(64, c.Image),
			ContainerID: "containerd://" + hash(64, p.Namespace, p.Name, c.Name),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: settled()}},
		})
	}
	return s
}

// finish makes the status that of a pod that ended with success.
func finish(p *corev1.Pod) {
	p.Status.Phase = corev1.PodSucceeded
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason = corev1.ConditionFalse, "PodCompleted"
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		c.Ready, c.Started = false, ptr(false)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: settled(), FinishedAt: settled(), ContainerID: c.ContainerID,
		}}
	}
}

// settings are the ConfigMap of a workload.
func (c *Cluster) settings(w *workload) *corev1.ConfigMap {
	host := c.caller(w, c.random(1_000_000+uint64(w.index)))
	return configMap(w.namespace, w.name+"-settings", map[string]string{
		"application.yaml": fmt.Sprintf(`server:
  port: 8080
  shutdown: graceful
spring:
  datasource:
    url: jdbc:postgresql://%s:5432/app
    hikari: {maximum-pool-size: 10, connection-timeout: 3000}
  kafka:
    bootstrap-servers: %s:9092,%s:9092
clients:
  inventory: {url: "http://%s:8080/inventory", timeout: 2s}
  # The old one: http://inventory.old.example.org
  pricing: {url: "http://%s/pricing", timeout: 500ms}
logging:
  level: {root: INFO, org.example: DEBUG}
`, host(), host(), host(), host(), host()),
		"log4j2.properties": "rootLogger.level = info\nappender.console.type = Console\nappender.console.layout.pattern = %d %-5p %c{1} %m%n\n",
	})
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta("ConfigMap", namespace, name, nil), Data: data,
	}
}

func rootCertificate(namespace string) *corev1.ConfigMap {
	var b strings.Builder
	b.WriteString("-----BEGIN CERTIFICATE-----\n")
	for i := range 17 {
		b.WriteString(hash(64, "certificate", fmt.Sprint(i)) + "\n")
	}
	b.WriteString("-----END CERTIFICATE-----\n")
	return configMap(namespace, "kube-root-ca.crt", map[string]string{"ca.crt": b.String()})
}
