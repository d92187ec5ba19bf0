package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

const (
	snapshotGroup   = "dnsmesh.io"
	snapshotVersion = snapshotGroup + "/v1alpha1"
	snapshotKind    = "Snapshot"
)

// header is the first line of a snapshot file.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Tool is the version of the program that wrote the file. It does not matter to a reader.
	Tool          string           `json:"toolVersion,omitempty"`
	Name          string           `json:"name"`
	ServerVersion string           `json:"serverVersion,omitempty"`
	APIGroups     []string         `json:"apiGroups"`
	Partial       bool             `json:"partial,omitempty"`
	Override      cluster.Override `json:"override,omitzero"`
	// Objects is how many objects follow: a reader notices by it that a file was cut off.
	Objects   int                         `json:"objects"`
	Absent    map[cluster.Resource]string `json:"absent,omitempty"`
	MeshHosts []string                    `json:"meshHosts,omitempty"`
	Texts     []*cluster.Text             `json:"texts,omitempty"`
}

// readHeader takes an object of our own API group, which in a file must be the header of a snapshot.
func (d *decoder) readHeader(apiVersion, kind string, raw []byte) error {
	switch {
	case kind != snapshotKind:
		return fmt.Errorf("this is a %s of kubectl dnsmesh, not a snapshot", kind)
	case apiVersion != snapshotVersion:
		return fmt.Errorf("a snapshot of version %s: this program reads %s", apiVersion, snapshotVersion)
	case d.header != nil:
		return fmt.Errorf("a second snapshot: one call reads one cluster")
	}
	h, err := decode[header](raw)
	if err != nil {
		return fmt.Errorf("decoding Snapshot: %w", err)
	}
	d.header, d.file.header, d.b.saved = h, h, true
	return nil
}

// fill puts what the header holds into s.
func (h *header) fill(s *cluster.Snapshot) {
	s.Name, s.ServerVersion, s.APIGroups, s.Partial, s.Override = h.Name, h.ServerVersion, h.APIGroups, h.Partial, h.Override
	s.MeshHosts, s.Texts = h.MeshHosts, h.Texts
	maps.Copy(s.Absent, h.Absent)
}

// Write writes s as gzipped JSON, one object on a line, a header first. Files reads it back to an equal snapshot, if s
// is one of this package. Equal snapshots give equal bytes, in whatever order their objects stand. toolVersion is the
// version of the program that writes.
func Write(w io.Writer, s *cluster.Snapshot, toolVersion string) error {
	z := gzip.NewWriter(w)
	b := bufio.NewWriterSize(z, 64<<10)
	if err := write(b, s, toolVersion); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	return nil
}

func write(w io.Writer, s *cluster.Snapshot, toolVersion string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	h := header{
		APIVersion: snapshotVersion, Kind: snapshotKind, Tool: toolVersion,
		Name: s.Name, ServerVersion: s.ServerVersion, APIGroups: s.APIGroups, Partial: s.Partial, Override: s.Override,
		Objects: len(s.Namespaces) + len(s.Nodes) + len(s.Services) + len(s.EndpointSlices) + len(s.ConfigMaps) +
			len(s.Templates) + len(s.Pods),
		Absent: s.Absent, MeshHosts: slices.Sorted(slices.Values(s.MeshHosts)), Texts: s.Texts,
	}
	if err := enc.Encode(h); err != nil {
		return err
	}
	e := &encoder{enc: enc}
	writeAll(e, "v1", "Namespace", s.Namespaces)
	writeAll(e, "v1", "Node", s.Nodes)
	writeAll(e, "v1", "Service", s.Services)
	writeAll(e, "discovery.k8s.io/v1", "EndpointSlice", s.EndpointSlices)
	writeAll(e, "v1", "ConfigMap", s.ConfigMaps)
	for _, t := range sorted(s.Templates, func(t *cluster.Workload) [3]string {
		return [3]string{t.Object.Namespace, t.Object.Kind, t.Object.Name}
	}) {
		e.template(t)
	}
	for _, p := range sorted(s.Pods, func(p *cluster.Pod) [3]string { return [3]string{p.Namespace, p.Name} }) {
		e.pod(p)
	}
	return e.err
}

func sorted[T any](objects []T, key func(T) [3]string) []T {
	return slices.SortedStableFunc(slices.Values(objects), func(a, b T) int {
		ka, kb := key(a), key(b)
		return slices.Compare(ka[:], kb[:])
	})
}

// encoder writes objects until the first error.
type encoder struct {
	enc *json.Encoder
	buf bytes.Buffer
	err error
}

func (e *encoder) encode(v any) {
	if e.err == nil {
		e.err = e.enc.Encode(v)
	}
}

// writeAll writes the objects of one kind. The fields that every type of Kubernetes writes although they are empty are
// left out: in 20,000 objects they weigh.
func writeAll[T metav1.Object](e *encoder, apiVersion, kind string, objects []T) {
	for _, o := range sorted(objects, func(o T) [3]string { return [3]string{o.GetNamespace(), o.GetName()} }) {
		e.object(apiVersion, kind, o)
	}
}

func (e *encoder) object(apiVersion, kind string, o any) {
	if e.err != nil {
		return
	}
	e.buf.Reset()
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	if e.err = enc.Encode(o); e.err != nil {
		return
	}
	var fields map[string]json.RawMessage
	if e.err = json.Unmarshal(e.buf.Bytes(), &fields); e.err != nil {
		return
	}
	for _, k := range []string{"spec", "status"} {
		if v := string(fields[k]); v == "{}" || v == `{"loadBalancer":{}}` {
			delete(fields, k)
		}
	}
	e.encode(struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       json.RawMessage `json:"spec,omitempty"`
		Status     json.RawMessage `json:"status,omitempty"`
		Data       json.RawMessage `json:"data,omitempty"`
		Address    json.RawMessage `json:"addressType,omitempty"`
		Endpoints  json.RawMessage `json:"endpoints,omitempty"`
		Ports      json.RawMessage `json:"ports,omitempty"`
	}{
		apiVersion, kind, fields["metadata"], fields["spec"], fields["status"], fields["data"], fields["addressType"],
		fields["endpoints"], fields["ports"],
	})
}

// savedMeta is the metadata of pods and templates as they are written.
type savedMeta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type savedSpec struct {
	NodeName string `json:"nodeName,omitempty"`
	*corev1.PodSpec
}

type savedStatus struct {
	Phase      corev1.PodPhase  `json:"phase,omitempty"`
	Conditions []savedCondition `json:"conditions,omitempty"`
	PodIPs     []corev1.PodIP   `json:"podIPs,omitempty"`
	Containers []savedContainer `json:"containerStatuses,omitempty"`
}

type savedCondition struct {
	Type   corev1.PodConditionType `json:"type"`
	Status corev1.ConditionStatus  `json:"status"`
}

// savedContainer holds the restarts of all containers of a pod.
type savedContainer struct {
	Name         string `json:"name"`
	RestartCount int32  `json:"restartCount"`
}

func annotations(pairs ...string) map[string]string {
	var m map[string]string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			if m == nil {
				m = map[string]string{}
			}
			m[pairs[i]] = pairs[i+1]
		}
	}
	return m
}

// pod writes a pod as a Pod object, with the owner that was found for it in an annotation.
func (e *encoder) pod(p *cluster.Pod) {
	status := savedStatus{Phase: p.Phase}
	if p.Ready {
		status.Conditions = []savedCondition{{corev1.PodReady, corev1.ConditionTrue}}
	}
	for _, ip := range p.IPs {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
	}
	if p.Restarts != 0 {
		status.Containers = []savedContainer{{RestartCount: p.Restarts}}
	}
	owner := p.Owner.Kind + "/" + p.Owner.Name
	e.encode(struct {
		APIVersion string      `json:"apiVersion"`
		Kind       string      `json:"kind"`
		Metadata   savedMeta   `json:"metadata"`
		Spec       savedSpec   `json:"spec"`
		Status     savedStatus `json:"status"`
	}{
		"v1", "Pod",
		savedMeta{
			Name: p.Name, Namespace: p.Namespace, Labels: p.Labels,
			Annotations: annotations(IgnoreAnnotation, p.Ignore, ownerAnnotation, owner),
		},
		savedSpec{p.Node, p.Spec},
		status,
	})
}

// template writes a controller with nothing but its pod template.
func (e *encoder) template(t *cluster.Workload) {
	type template struct {
		Metadata savedMeta       `json:"metadata,omitzero"`
		Spec     *corev1.PodSpec `json:"spec"`
	}
	spec := any(struct {
		Template template `json:"template"`
	}{template{savedMeta{Labels: t.Labels, Annotations: annotations(IgnoreAnnotation, t.Ignore)}, t.Spec}})
	if t.Object.Kind == kindCronJob {
		spec = map[string]any{"jobTemplate": map[string]any{"spec": spec}}
	}
	e.encode(struct {
		APIVersion string    `json:"apiVersion"`
		Kind       string    `json:"kind"`
		Metadata   savedMeta `json:"metadata"`
		Spec       any       `json:"spec"`
	}{controllerVersion(t.Object), t.Object.Kind, savedMeta{Name: t.Object.Name, Namespace: t.Object.Namespace}, spec})
}

// controllerVersion returns the apiVersion of a controller's kind.
func controllerVersion(o finding.Object) string {
	switch o.Kind {
	case "ReplicationController":
		return "v1"
	case kindJob, kindCronJob:
		return "batch/v1"
	case "DeploymentConfig":
		return "apps.openshift.io/v1"
	case "Rollout":
		return "argoproj.io/v1alpha1"
	}
	return "apps/v1"
}
