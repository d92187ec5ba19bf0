package rehearse

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// api is an API server that has the objects of a snapshot and in which nothing ever changes. It listens on a loopback
// port, under a path that nobody else knows, because that is how the kubernetes plugin reaches an API server.
type api struct {
	snapshot *cluster.Snapshot
	index    *cluster.Index

	secret string
	server *http.Server
	// url is empty until start.
	url    string
	serves sync.WaitGroup
	// closed ends the watches, for which a server would wait.
	closed chan struct{}

	mu sync.Mutex
	// lists are encoded answers by path and selector.
	lists map[string][]byte
}

func newAPI(s *cluster.Snapshot, ix *cluster.Index) *api {
	return &api{snapshot: s, index: ix, lists: map[string][]byte{}, closed: make(chan struct{}), secret: "/" + rand.Text()}
}

// start listens, once.
func (a *api) start() error {
	if a.url != "" {
		return nil
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the kubernetes plugin: %w", err)
	}
	a.url = "http://" + listener.Addr().String() + a.secret
	a.server = &http.Server{
		Handler: a, ReadHeaderTimeout: startTime,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	a.serves.Go(func() { _ = a.server.Serve(listener) }) // it ends with http.ErrServerClosed
	return nil
}

// close ends all watches and the server, and waits for that.
func (a *api) close() error {
	close(a.closed)
	if a.server == nil {
		return nil
	}
	err := a.server.Close()
	a.serves.Wait()
	return err
}

// placeholder4 and placeholder6 stand for the cluster IPs of Services that have none yet, as in manifests
// (RFC 5737, RFC 3849).
var (
	placeholder4 = netip.AddrFrom4([4]byte{192, 0, 2, 255})
	placeholder6 = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 0xff})
)

// ServeHTTP answers LIST and WATCH of what the plugin reads.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, a.secret)
	if !ok || r.Method != http.MethodGet {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "this API server is for one reader")
		return
	}
	query := r.URL.Query()
	if query.Get("watch") == "true" {
		if query.Get("sendInitialEvents") == "true" {
			// The client then lists, which takes one message in place of one for each object.
			refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is not offered")
			return
		}
		a.watch(w, r)
		return
	}
	body, kind, err := a.list(path, query.Get("labelSelector"))
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	case body == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the snapshot has no "+path)
	default:
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the reader has gone
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, msg string) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // the reader has gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: msg,
	})
}

// watch answers with a stream in which nothing happens until one side ends it.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	select {
	case <-r.Context().Done():
	case <-a.closed:
	}
}

// list returns the encoded list of a path and its content type; nil if the snapshot does not know the kind.
func (a *api) list(path, selector string) (body []byte, contentType string, err error) {
	selects := labels.Everything()
	if selector != "" {
		if selects, err = labels.Parse(selector); err != nil {
			return nil, "", err
		}
	}
	if strings.HasSuffix(path, "/serviceimports") {
		body = []byte(`{"kind":"ServiceImportList","apiVersion":"multicluster.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[]}`)
		return body, runtime.ContentTypeJSON, nil
	}
	key := path + "?" + selector
	a.mu.Lock()
	defer a.mu.Unlock()
	if body, ok := a.lists[key]; ok {
		return body, runtime.ContentTypeProtobuf, nil
	}
	meta := metav1.ListMeta{ResourceVersion: "1"}
	keep := func(o metav1.Object) bool { return selects.Matches(labels.Set(o.GetLabels())) }
	switch path {
	case "/api/v1/namespaces":
		body, err = encode("v1", "NamespaceList", &corev1.NamespaceList{ListMeta: meta, Items: a.namespaces(keep)})
	case "/api/v1/services":
		body, err = encode("v1", "ServiceList", &corev1.ServiceList{ListMeta: meta, Items: a.services(keep)})
	case "/api/v1/pods":
		body, err = encode("v1", "PodList", &corev1.PodList{ListMeta: meta, Items: a.pods(keep)})
	case "/apis/discovery.k8s.io/v1/endpointslices":
		items := make([]discoveryv1.EndpointSlice, 0, len(a.snapshot.EndpointSlices))
		for _, e := range a.snapshot.EndpointSlices {
			if keep(e) {
				items = append(items, *e)
			}
		}
		body, err = encode("discovery.k8s.io/v1", "EndpointSliceList", &discoveryv1.EndpointSliceList{ListMeta: meta, Items: items})
	default:
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	a.lists[key] = body
	return body, runtime.ContentTypeProtobuf, nil
}

// namespaces include those that were not read and are known from the objects in them.
func (a *api) namespaces(keep func(metav1.Object) bool) []corev1.Namespace {
	names := a.index.NamespaceNames()
	items := make([]corev1.Namespace, 0, len(names))
	for _, name := range names {
		n := a.index.Namespace(name)
		if n == nil {
			n = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		if keep(n) {
			items = append(items, *n)
		}
	}
	return items
}

// services get a placeholder for a cluster IP that they do not have yet, since a Service without one answers all the
// same. The API server has default/kubernetes in every cluster.
func (a *api) services(keep func(metav1.Object) bool) []corev1.Service {
	items := make([]corev1.Service, 0, len(a.snapshot.Services)+1)
	add := func(svc corev1.Service) {
		if svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.ClusterIP == "" && len(svc.Spec.ClusterIPs) == 0 {
			for _, family := range svc.Spec.IPFamilies {
				if family == corev1.IPv6Protocol {
					svc.Spec.ClusterIPs = append(slices.Clip(svc.Spec.ClusterIPs), placeholder6.String())
				} else {
					svc.Spec.ClusterIPs = append(slices.Clip(svc.Spec.ClusterIPs), placeholder4.String())
				}
			}
			if len(svc.Spec.ClusterIPs) == 0 {
				svc.Spec.ClusterIPs = []string{placeholder4.String()}
			}
			svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
		}
		items = append(items, svc)
	}
	for _, svc := range a.snapshot.Services {
		if keep(svc) {
			add(*svc)
		}
	}
	if a.snapshot.Partial && a.index.Service(metav1.NamespaceDefault, "kubernetes") == nil {
		svc := corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes",
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		}}
		svc.Spec.Ports = []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443}}
		if keep(&svc) {
			add(svc)
		}
	}
	return items
}

// pods leaves out what the plugin asks to be left out (plugin/kubernetes/controller.go, podListFunc).
func (a *api) pods(keep func(metav1.Object) bool) []corev1.Pod {
	items := make([]corev1.Pod, 0, len(a.snapshot.Pods))
	for _, p := range a.snapshot.Pods {
		switch p.Phase {
		case corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown:
			continue
		}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: maps.Clone(p.Labels)}}
		pod.Status.Phase = p.Phase
		for _, ip := range p.IPs {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		if len(p.IPs) > 0 {
			pod.Status.PodIP = p.IPs[0]
		}
		if keep(&pod) {
			items = append(items, pod)
		}
	}
	return items
}

// encode writes a list as the API server does in protobuf: four bytes that mark the format, then the type and the
// message (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
func encode(version, kind string, list interface{ Marshal() ([]byte, error) }) ([]byte, error) {
	raw, err := list.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kind, err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}
	body, err := u.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kind, err)
	}
	return append([]byte{'k', '8', 's', 0}, body...), nil
}

// uncertain says why the snapshot cannot tell whether a name under zone exists; empty where it can.
func (a *api) uncertain(name, zone string) string {
	for _, r := range []cluster.Resource{cluster.Namespaces, cluster.Services} {
		if why, absent := a.snapshot.Absent[r]; absent {
			return fmt.Sprintf("%s were not read: %s", r, why)
		}
	}
	m, ok := resolve.Shape(name, zone)
	if !ok || m.Service == "" {
		return ""
	}
	svc := a.index.Service(m.Namespace, m.Service)
	if svc == nil || svc.Spec.ClusterIP != corev1.ClusterIPNone && m.Node != resolve.EndpointNode {
		return ""
	}
	if _, known := a.index.Endpoints(m.Namespace, m.Service); !known {
		return fmt.Sprintf("the EndpointSlices of Service %s/%s are not in the snapshot", m.Namespace, m.Service)
	}
	return ""
}
