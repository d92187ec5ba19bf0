package load

import (
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IgnoreAnnotation suppresses codes for the object that carries it.
const IgnoreAnnotation = "dnsmesh.io/ignore"

// keptAnnotations are the prefixes of annotations that decide where an address is announced, which distribution a
// cluster is, or who owns an object. Everything else, kubectl's last-applied configuration above all, is dropped.
var keptAnnotations = []string{
	"dnsmesh.io/",
	"metallb.io/", "metallb.universe.tf/", "kube-vip.io/", "io.cilium/", "io.cilium.", "lbipam.cilium.io/", "service.cilium.io/",
	"service.kubernetes.io/", "service.beta.kubernetes.io/", "service.alpha.kubernetes.io/",
	"external-dns.alpha.kubernetes.io/",
	"cloud.google.com/", "networking.gke.io/", "container.googleapis.com/",
	"eks.amazonaws.com/", "alpha.eksctl.io/", "kubernetes.azure.com/",
	"kubeadm.alpha.kubernetes.io/", "k3s.io/", "rke2.io/", "k0sproject.io/", "flannel.alpha.coreos.com/", "microk8s.io/", "talos.dev/", "kops.k8s.io/",
	"openshift.io/", "machineconfiguration.openshift.io/", "machine.openshift.io/",
	"topology.istio.io/", "networking.istio.io/",
}

// droppedAnnotations are exceptions of keptAnnotations: they are long, or hold the environment of a node's agent.
var droppedAnnotations = []string{"k3s.io/node-env", "rke2.io/node-env", "eks.amazonaws.com/last-applied"}

// maxAnnotation bounds the value of an annotation that is kept, in bytes.
const maxAnnotation = 4 << 10

// implicitConfigMaps are put into every namespace by controllers and mounted into every pod. They hold certificates.
var implicitConfigMaps = []string{"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"}

// reduceMeta leaves the name, the namespace, the labels and the annotations that decide something.
func reduceMeta(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, Labels: nilIfEmpty(m.Labels), Annotations: reduceAnnotations(m.Annotations),
	}
}

func nilIfEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

func reduceAnnotations(in map[string]string) map[string]string {
	var out map[string]string
	for k, v := range in {
		if len(v) > maxAnnotation || slices.Contains(droppedAnnotations, k) {
			continue
		}
		if slices.ContainsFunc(keptAnnotations, func(p string) bool { return strings.HasPrefix(k, p) }) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// ReduceNamespace leaves metadata and the phase.
func ReduceNamespace(n *corev1.Namespace) {
	n.TypeMeta = metav1.TypeMeta{}
	reduceMeta(&n.ObjectMeta)
	n.Spec = corev1.NamespaceSpec{}
	n.Status = corev1.NamespaceStatus{Phase: n.Status.Phase}
}

// ReduceService leaves what decides which names and addresses lead to a Service.
func ReduceService(s *corev1.Service) {
	s.TypeMeta = metav1.TypeMeta{}
	reduceMeta(&s.ObjectMeta)
	in := s.Spec
	s.Spec = corev1.ServiceSpec{
		Ports: in.Ports, Selector: nilIfEmpty(in.Selector), ClusterIP: in.ClusterIP, ClusterIPs: in.ClusterIPs, Type: in.Type,
		ExternalIPs: in.ExternalIPs, LoadBalancerIP: in.LoadBalancerIP, LoadBalancerSourceRanges: in.LoadBalancerSourceRanges,
		ExternalName: in.ExternalName, ExternalTrafficPolicy: in.ExternalTrafficPolicy,
		InternalTrafficPolicy: in.InternalTrafficPolicy, PublishNotReadyAddresses: in.PublishNotReadyAddresses,
		IPFamilies: in.IPFamilies, IPFamilyPolicy: in.IPFamilyPolicy, LoadBalancerClass: in.LoadBalancerClass,
	}
	ingress := s.Status.LoadBalancer.Ingress
	for i := range ingress {
		ingress[i] = corev1.LoadBalancerIngress{IP: ingress[i].IP, Hostname: ingress[i].Hostname, IPMode: ingress[i].IPMode}
	}
	s.Status = corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}
}

// ReduceEndpointSlice leaves addresses, host names, conditions, nodes, targets and ports. Of the labels it leaves those
// that say which Service the slice belongs to and who wrote it; the others repeat the Service's.
func ReduceEndpointSlice(s *discoveryv1.EndpointSlice) {
	s.TypeMeta = metav1.TypeMeta{}
	labels := s.Labels
	s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace}
	for _, k := range []string{discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy, corev1.IsHeadlessService} {
		if v, ok := labels[k]; ok {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[k] = v
		}
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.NodeName == nil {
			// discovery.k8s.io/v1beta1 kept the node here.
			if n, ok := e.DeprecatedTopology[corev1.LabelHostname]; ok {
				e.NodeName = &n
			}
		}
		*e = discoveryv1.Endpoint{
			Addresses: e.Addresses, Conditions: e.Conditions, Hostname: e.Hostname, NodeName: e.NodeName, TargetRef: e.TargetRef,
		}
		if t := e.TargetRef; t != nil {
			e.TargetRef = &corev1.ObjectReference{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		*p = discoveryv1.EndpointPort{Name: p.Name, Protocol: p.Protocol, Port: p.Port}
	}
}

// ReduceNode leaves metadata, addresses, pod networks, versions and whether the node is ready.
func ReduceNode(n *corev1.Node) {
	n.TypeMeta = metav1.TypeMeta{}
	reduceMeta(&n.ObjectMeta)
	n.Spec = corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs, ProviderID: n.Spec.ProviderID}
	in := n.Status
	n.Status = corev1.NodeStatus{
		Addresses: in.Addresses,
		NodeInfo: corev1.NodeSystemInfo{
			KernelVersion: in.NodeInfo.KernelVersion, OSImage: in.NodeInfo.OSImage,
			ContainerRuntimeVersion: in.NodeInfo.ContainerRuntimeVersion, KubeletVersion: in.NodeInfo.KubeletVersion,
			OperatingSystem: in.NodeInfo.OperatingSystem, Architecture: in.NodeInfo.Architecture,
		},
	}
	for _, c := range in.Conditions {
		if c.Type == corev1.NodeReady {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
}

// ReduceConfigMap leaves metadata and the texts. A value that is a certificate keeps its key and loses its text: it holds
// no host name, and bundles of authorities are copied into many namespaces.
func ReduceConfigMap(c *corev1.ConfigMap) {
	c.TypeMeta = metav1.TypeMeta{}
	reduceMeta(&c.ObjectMeta)
	c.BinaryData, c.Immutable = nil, nil
	c.Data = nilIfEmpty(c.Data)
	for k, v := range c.Data {
		if !utf8.ValidString(v) {
			// A snapshot is JSON, which cannot hold it.
			c.Data[k] = strings.ToValidUTF8(v, "\uFFFD")
		}
		if strings.HasPrefix(strings.TrimSpace(v[:min(len(v), 256)]), "-----BEGIN ") {
			c.Data[k] = ""
		}
	}
}

// ReducePodSpec leaves what decides how a pod resolves names, the places that may hold host names, and which ConfigMaps
// they come from. For DNS servers (see servesDNS) it also leaves probes, resources, host paths and the working directory.
//
// What differs between the pods of one controller is dropped, so that their reduced specifications are equal.
func ReducePodSpec(s *corev1.PodSpec, dns bool) {
	in := *s
	*s = corev1.PodSpec{
		HostNetwork: in.HostNetwork, DNSPolicy: in.DNSPolicy, DNSConfig: in.DNSConfig, HostAliases: in.HostAliases,
		Hostname: in.Hostname, Subdomain: in.Subdomain, SetHostnameAsFQDN: in.SetHostnameAsFQDN, OS: in.OS,
		Containers: in.Containers, InitContainers: in.InitContainers, EphemeralContainers: in.EphemeralContainers,
	}
	if dns {
		s.PriorityClassName, s.ServiceAccountName = in.PriorityClassName, in.ServiceAccountName
	}
	for _, v := range in.Volumes {
		if reduceVolume(&v, dns) {
			s.Volumes = append(s.Volumes, v)
		}
	}
	mounted := func(name string) bool {
		return slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	}
	for i := range s.InitContainers {
		reduceContainer(&s.InitContainers[i], mounted, dns)
	}
	for i := range s.Containers {
		reduceContainer(&s.Containers[i], mounted, dns)
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		reduceContainer(&c, mounted, dns)
		s.EphemeralContainers[i] = corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)}
	}
}

func reduceContainer(c *corev1.Container, mounted func(volume string) bool, dns bool) {
	in := *c
	*c = corev1.Container{
		Name: in.Name, Image: in.Image, Command: in.Command, Args: in.Args, Env: in.Env, EnvFrom: in.EnvFrom, Ports: in.Ports,
	}
	if dns {
		c.WorkingDir = in.WorkingDir
		c.Resources = corev1.ResourceRequirements{Limits: in.Resources.Limits, Requests: in.Resources.Requests}
		c.ReadinessProbe, c.LivenessProbe = reduceProbe(in.ReadinessProbe), reduceProbe(in.LivenessProbe)
	}
	for _, m := range in.VolumeMounts {
		if mounted(m.Name) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: m.Name, MountPath: m.MountPath, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr,
			})
		}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		*p = corev1.ContainerPort{Name: p.Name, HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: p.Protocol}
	}
	for i := range c.Env {
		if f := c.Env[i].ValueFrom; f != nil {
			c.Env[i].ValueFrom = reduceEnvSource(f)
		}
	}
	for i := range c.EnvFrom {
		e := &c.EnvFrom[i]
		switch {
		case e.SecretRef != nil:
			// That variables come from a Secret matters; which one does not.
			*e = corev1.EnvFromSource{Prefix: e.Prefix, SecretRef: &corev1.SecretEnvSource{}}
		case e.ConfigMapRef != nil:
			*e = corev1.EnvFromSource{Prefix: e.Prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: e.ConfigMapRef.LocalObjectReference, Optional: e.ConfigMapRef.Optional,
			}}
		}
	}
}

func reduceEnvSource(f *corev1.EnvVarSource) *corev1.EnvVarSource {
	switch {
	case f.SecretKeyRef != nil:
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}
	case f.ConfigMapKeyRef != nil:
		return &corev1.EnvVarSource{ConfigMapKeyRef: f.ConfigMapKeyRef}
	case f.FieldRef != nil:
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: f.FieldRef.FieldPath}}
	case f.ResourceFieldRef != nil:
		return &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: f.ResourceFieldRef.Resource}}
	}
	return &corev1.EnvVarSource{}
}

func reduceProbe(p *corev1.Probe) *corev1.Probe {
	if p == nil {
		return nil
	}
	out := &corev1.Probe{}
	switch {
	case p.HTTPGet != nil:
		out.HTTPGet = &corev1.HTTPGetAction{Path: p.HTTPGet.Path, Port: p.HTTPGet.Port, Host: p.HTTPGet.Host, Scheme: p.HTTPGet.Scheme}
	case p.TCPSocket != nil:
		out.TCPSocket = &corev1.TCPSocketAction{Port: p.TCPSocket.Port, Host: p.TCPSocket.Host}
	case p.Exec != nil:
		out.Exec = &corev1.ExecAction{Command: p.Exec.Command}
	}
	return out
}

// reduceVolume reports whether the volume is kept: one that brings texts of ConfigMaps into a container, and every volume of
// a DNS server, of which it matters that something stands there that is not read. The volume kube-api-access-xxxxx, which
// every pod has under a name of its own (plugin/pkg/admission/serviceaccount/admission.go), is never kept.
func reduceVolume(v *corev1.Volume, dns bool) bool {
	in := v.VolumeSource
	v.VolumeSource = corev1.VolumeSource{}
	if strings.HasPrefix(v.Name, "kube-api-access-") {
		return false
	}
	switch {
	case in.ConfigMap != nil:
		if slices.Contains(implicitConfigMaps, in.ConfigMap.Name) {
			return false
		}
		v.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: in.ConfigMap.LocalObjectReference, Items: reduceItems(in.ConfigMap.Items), Optional: in.ConfigMap.Optional,
		}
		return true
	case in.Projected != nil:
		var sources []corev1.VolumeProjection
		for _, p := range in.Projected.Sources {
			switch c := p.ConfigMap; {
			case c != nil && slices.Contains(implicitConfigMaps, c.Name), p.ServiceAccountToken != nil, p.DownwardAPI != nil:
			case c != nil:
				sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: c.LocalObjectReference, Items: reduceItems(c.Items), Optional: c.Optional,
				}})
			case dns:
				sources = append(sources, corev1.VolumeProjection{})
			}
		}
		v.Projected = &corev1.ProjectedVolumeSource{Sources: sources}
		return len(sources) > 0
	case in.HostPath != nil:
		v.HostPath = &corev1.HostPathVolumeSource{Path: in.HostPath.Path}
	case in.EmptyDir != nil:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case in.Secret != nil:
		v.Secret = &corev1.SecretVolumeSource{}
	}
	return dns
}

func reduceItems(items []corev1.KeyToPath) []corev1.KeyToPath {
	for i := range items {
		items[i].Mode = nil
	}
	return items
}

// servesDNS tells whether a pod looks like a DNS server: by a label that the usual deployments carry, a port, or the name
// of an image. It only decides how much is kept of the pod.
func servesDNS(labels map[string]string, s *corev1.PodSpec) bool {
	for _, k := range []string{"k8s-app", "app.kubernetes.io/name", "app", "name"} {
		if isDNSName(labels[k]) {
			return true
		}
	}
	if _, ok := labels["dns.operator.openshift.io/daemonset-dns"]; ok {
		return true
	}
	for i := range s.Containers {
		c := &s.Containers[i]
		if isDNSName(imageName(c.Image)) {
			return true
		}
		for _, p := range c.Ports {
			if p.ContainerPort == 53 || strings.HasPrefix(p.Name, "dns") {
				return true
			}
		}
	}
	return false
}

// imageName returns the last part of the path of an image, without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndexByte(image, '/')+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}

func isDNSName(s string) bool {
	for _, part := range []string{"coredns", "kube-dns", "kubedns", "k8s-dns", "node-local-dns", "nodelocaldns", "node-cache", "dnsmasq"} {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
