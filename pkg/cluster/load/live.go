package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

const (
	// DefaultPageSize is the number of objects of one page. Pages are read item by item, so that a large one costs the
	// server memory and not us.
	DefaultPageSize = 1000
	// maxAttempts bounds how often a page is asked for that the server could not give, and how often a list is begun
	// anew.
	maxAttempts = 4
	// firstPause is the time before the second attempt; each later pause is twice as long.
	firstPause = 250 * time.Millisecond
	// maxItem bounds one object of a live list, in bytes. etcd takes 1.5 MiB by default.
	maxItem = 32 << 20
	// maxHeld bounds the data of ConfigMaps that are held until the pods are known, in bytes.
	maxHeld = 32 << 20
	// maxReason bounds the words of a server that say why something is absent, in bytes.
	maxReason = 400

	protobufType = "application/vnd.kubernetes.protobuf"
	metadataType = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Live reads a cluster through its API server: lists of namespaces, Services, EndpointSlices, pods, nodes and ConfigMaps
// side by side, page by page, in protobuf; of Jobs the metadata, where pods of Jobs were found; of Istio's
// ServiceEntries the hosts, where the cluster has them. Secrets are never asked for.
//
// What the credentials may not read, or the server does not give after some attempts, is recorded in Snapshot.Absent with
// the reason. Where only one namespace may be read, and it is o.Namespace, its objects are in the snapshot and the
// resource is absent all the same; pods alone are not, since each of them can be judged by itself.
//
// Errors: one that matches ErrUnauthorized or ErrUnreachable; credentials that cannot be had; a context that ended; a cluster of which
// nothing could be read.
func Live(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	res, err := live(ctx, config, o)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	return res, nil
}

func live(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	if o.PageSize <= 0 {
		o.PageSize = DefaultPageSize
	}
	l := &liveReader{client: client, o: o, absent: map[cluster.Resource]string{}, podsRead: make(chan struct{})}
	s := &cluster.Snapshot{Name: o.Name}

	group, ctx := errgroup.WithContext(ctx)
	var builders []*builder
	start := func(read func(b *builder) error) {
		b := newBuilder()
		builders = append(builders, b)
		group.Go(func() error { return read(b) })
	}
	list := func(r listed) { start(func(b *builder) error { return l.list(ctx, b, r) }) }
	list(listed{
		resource: cluster.Namespaces, name: "namespaces",
		add: item(func(b *builder, n *corev1.Namespace) error { b.addNamespace(n); return nil }),
	})
	list(listed{
		resource: cluster.Services, name: "services", namespaced: true,
		add: item(func(b *builder, v *corev1.Service) error { b.addService(v); return nil }),
	})
	list(listed{
		resource: cluster.EndpointSlices, group: discoveryv1.GroupName, version: "v1", name: "endpointslices", namespaced: true,
		add: item(func(b *builder, v *discoveryv1.EndpointSlice) error { b.addEndpointSlice(v); return nil }),
	})
	list(listed{
		resource: cluster.Nodes, name: "nodes",
		add: item(func(b *builder, n *corev1.Node) error { b.addNode(n); return nil }),
	})
	start(func(b *builder) error { return l.pods(ctx, b) })
	start(func(b *builder) error { return l.configMaps(ctx, b) })
	start(func(b *builder) error { return l.server(ctx, s, b) })
	if err := group.Wait(); err != nil {
		return nil, err
	}

	all := newBuilder()
	for _, b := range builders {
		all.merge(b)
	}
	all.finish(s)
	s.Absent = l.absent
	slices.Sort(l.notes)
	return &Result{Snapshot: s, Notes: l.notes}, l.nothing()
}

// liveReader is what the lists of one call share.
type liveReader struct {
	client *rest.RESTClient
	o      Options

	// podsRead is closed when it is known which ConfigMaps pods use; used holds them from then on.
	podsRead chan struct{}
	used     needs

	mu     sync.Mutex
	absent map[cluster.Resource]string
	notes  []string
}

// newClient returns a client without a limit on the rate of requests: there are a few dozen of them, and API Priority and
// Fairness protects the server.
func newClient(config *rest.Config) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.RateLimiter = nil
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.AcceptContentTypes, c.ContentType = "", runtime.ContentTypeJSON
	return rest.UnversionedRESTClientFor(c)
}

// listed is a list to read.
type listed struct {
	resource       cluster.Resource
	group, version string
	name           string
	namespaced     bool
	fieldSelector  string
	metadataOnly   bool
	jsonOnly       bool
	// add takes one item; proto tells its form.
	add func(b *builder, raw []byte, proto bool) error
}

func (r *listed) path(namespace string) string {
	p := "/api/v1/"
	if r.group != "" {
		p = "/apis/" + r.group + "/" + r.version + "/"
	}
	if namespace != "" {
		p += "namespaces/" + url.PathEscape(namespace) + "/"
	}
	return p + r.name
}

func (r *listed) accept() string {
	switch {
	case r.jsonOnly:
		return runtime.ContentTypeJSON
	case r.metadataOnly:
		return protobufType + metadataType + "," + runtime.ContentTypeJSON + metadataType
	}
	return protobufType + "," + runtime.ContentTypeJSON
}

// item returns the function that decodes an item and gives it to add.
func item[T any, P interface {
	*T
	message
}](add func(*builder, P) error,
) func(*builder, []byte, bool) error {
	return func(b *builder, raw []byte, proto bool) error {
		if !proto {
			v, err := decodeCanonical[T, P](raw)
			if err != nil {
				return err
			}
			return add(b, v)
		}
		v := P(new(T))
		if err := v.Unmarshal(raw); err != nil {
			return err
		}
		return add(b, v)
	}
}

// list reads a list into b. What the server refuses becomes absent; the error is one that ends the whole reading.
func (l *liveReader) list(ctx context.Context, b *builder, r listed) error {
	n, err := l.pages(ctx, b, r, "")
	if err != nil {
		forbidden := apierrors.IsForbidden(err)
		if err := l.miss(ctx, r.resource, r.name, err); err != nil {
			return err
		}
		if forbidden && r.namespaced && l.o.Namespace != "" {
			if n, err = l.pages(ctx, b, r, l.o.Namespace); err == nil {
				l.onlyNamespace(r)
			} else if err := l.miss(ctx, r.resource, r.name, err); err != nil {
				return err
			}
		}
	}
	l.progress(r.resource, n, true)
	return nil
}

// onlyNamespace records that a resource was read for one namespace.
func (l *liveReader) onlyNamespace(r listed) {
	if r.resource == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	reason := l.absent[r.resource]
	if r.resource == cluster.Pods || r.resource == cluster.ConfigMaps {
		delete(l.absent, r.resource)
	} else {
		l.absent[r.resource] = "only namespace " + l.o.Namespace + " was read: " + reason
	}
	l.notes = append(l.notes, r.name+" were read in namespace "+l.o.Namespace+" only: "+reason)
}

func (l *liveReader) progress(r cluster.Resource, n int, done bool) {
	if l.o.Progress == nil || r == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.o.Progress(Progress{Resource: r, Count: n, Done: done})
}

// miss records why a resource is absent. It returns the errors that concern more than the one resource.
func (l *liveReader) miss(ctx context.Context, r cluster.Resource, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var status apierrors.APIStatus
	var reason string
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: %w", ErrUnauthorized, err)
	case apierrors.IsForbidden(err):
		reason = message403(err, name)
	case apierrors.IsNotFound(err):
		reason = "the server does not serve " + name
	case errors.As(err, &status):
		reason = "the server answers " + strconv.Itoa(int(status.Status().Code)) + ": " + err.Error()
	case isAnswerFault(err):
		reason = err.Error()
	default:
		return noAnswer(err)
	}
	if r == "" {
		return nil
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.absent[r] = reason
	return nil
}

// noAnswer takes the address of the request out of an error: which of the lists fails first is chance, and the error should
// read the same each time. A plugin that gets the credentials fails at the same place as the network.
func noAnswer(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	if strings.Contains(u.Err.Error(), "getting credentials") {
		return u.Err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, u.Err)
}

// message403 keeps what the server says, which names the user and the right: `services is forbidden: User "x" cannot
// list resource "services" in API group "" at the cluster scope`.
func message403(err error, name string) string {
	text := err.Error()
	if _, detail, ok := strings.Cut(text, " is forbidden: "); ok {
		text = detail
	}
	return "listing " + name + " is forbidden: " + text
}

// nothing returns an error if not one of the lists could be read.
func (l *liveReader) nothing() error {
	var reasons []error
	for _, r := range []cluster.Resource{
		cluster.Namespaces, cluster.Services, cluster.EndpointSlices, cluster.Pods, cluster.Nodes, cluster.ConfigMaps,
	} {
		why, ok := l.absent[r]
		if !ok {
			return nil
		}
		reasons = append(reasons, fmt.Errorf("%s: %s", r, why))
	}
	return fmt.Errorf("nothing could be read: %w", errors.Join(reasons...))
}

// answerFault is an answer that is no complete list.
type answerFault struct{ err error }

func (e *answerFault) Error() string { return e.err.Error() }
func (e *answerFault) Unwrap() error { return e.err }

func isAnswerFault(err error) bool {
	var f *answerFault
	return errors.As(err, &f)
}

// pages reads all pages of a list into b, and returns how many objects were read.
//
// A page that the server could not give, or that ended early, is asked for again. When the token for the next page has
// expired (410), the list goes on with the token that the server offers in its place, which continues after the last key
// at a newer state; without one it begins anew, and what was read of it is dropped
// (k8s.io/apiserver/pkg/storage/etcd3/store.go, handleExpiredCompactedError).
func (l *liveReader) pages(ctx context.Context, b *builder, r listed, namespace string) (int, error) {
	begin := b.mark()
	token, count := "", 0
	failures, restarts := 0, 0
	for {
		page := b.mark()
		n := 0
		meta, err := l.page(ctx, r, namespace, token, func(raw []byte, proto bool) error {
			n++
			return r.add(b, raw, proto)
		})
		if err == nil {
			failures = 0
			count += n
			l.progress(r.resource, count, false)
			if meta.Continue == "" {
				return count, nil
			}
			if meta.Continue == token {
				return count, &answerFault{errors.New("the server repeats a page of the list")}
			}
			token = meta.Continue
			continue
		}
		b.reset(page)
		if ctx.Err() != nil {
			return count, err
		}
		if apierrors.IsResourceExpired(err) && restarts < maxAttempts {
			restarts++
			next := continueToken(err)
			if next == "" || next == token {
				b.reset(begin)
				next, count = "", 0
			}
			token = next
			continue
		}
		if failures++; !passes(err) || failures >= maxAttempts {
			b.reset(begin)
			return 0, err
		}
		select {
		case <-ctx.Done():
			return count, ctx.Err()
		case <-time.After(firstPause << (failures - 1)):
		}
	}
}

// continueToken returns the token that an answer 410 offers.
func continueToken(err error) string {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return ""
	}
	return s.Status().Continue
}

// passes tells whether the next attempt may succeed. Where the server tells how long to wait, the client has waited and
// tried again already.
func passes(err error) bool {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		code := s.Status().Code
		if _, told := apierrors.SuggestsClientDelay(err); told {
			return false
		}
		return code == http.StatusTooManyRequests || code >= 500
	}
	if isAnswerFault(err) {
		return !errors.Is(err, errNoList)
	}
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// errNoList is what an answer gives that is something else than a list, such as the page of a proxy.
var errNoList = errors.New("the answer is no list of Kubernetes objects")

// page reads one page and calls f with every item.
func (l *liveReader) page(
	ctx context.Context, r listed, namespace, token string, f func(raw []byte, proto bool) error,
) (metav1.ListMeta, error) {
	req := l.client.Get().AbsPath(r.path(namespace)).
		SetHeader("Accept", r.accept()).
		MaxRetries(maxAttempts-1).
		Param("limit", strconv.Itoa(l.o.PageSize))
	if token != "" {
		req.Param("continue", token)
	}
	if r.fieldSelector != "" {
		req.Param("fieldSelector", r.fieldSelector)
	}
	body, err := req.Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	in := bufio.NewReaderSize(body, 64<<10)
	first, err := in.Peek(1)
	if err != nil {
		return metav1.ListMeta{}, &answerFault{cutOff(err)}
	}
	var meta metav1.ListMeta
	switch first[0] {
	case protoMagic[0]:
		meta, err = protoList(in, maxItem, func(raw []byte) error { return f(raw, true) })
	case '{':
		meta, err = jsonList(in, func(raw []byte) error { return f(raw, false) })
	default:
		err = errNoList
	}
	if err != nil {
		return meta, &answerFault{fmt.Errorf("reading the list of %s: %w", r.name, err)}
	}
	return meta, nil
}

// jsonList reads a list in JSON.
func jsonList(in *bufio.Reader, f func(raw []byte) error) (meta metav1.ListMeta, err error) {
	j := &jsonReader{r: in, line: 1, limit: maxItem}
	kind := ""
	items := false
	err = j.fields(func(key string) error {
		if c, err := j.space(); key == "items" && err == nil && c == '[' {
			items = true
			return j.items(func(raw []byte, _ int) error { return f(raw) })
		}
		raw, err := j.value(nil)
		if err != nil {
			return err
		}
		switch key {
		case "kind":
			return json.Unmarshal(raw, &kind)
		case "metadata":
			return json.Unmarshal(raw, &meta)
		}
		return nil
	})
	if err == nil && !items && !isList(kind) {
		err = errNoList
	}
	return meta, err
}

// pods reads the pods, and the Jobs if pods belong to some; then it tells which ConfigMaps are used.
func (l *liveReader) pods(ctx context.Context, b *builder) error {
	err := l.list(ctx, b, listed{
		resource: cluster.Pods, name: "pods", namespaced: true,
		add: item(func(b *builder, p *corev1.Pod) error { b.addPod(p); return nil }),
	})
	if err == nil {
		l.used = needsOf(b.pods, nil)
	}
	close(l.podsRead)
	if err != nil || len(b.ofJobs) == 0 {
		return err
	}
	// Without them the CronJob is judged by the name of the Job: no reason to call anything absent.
	return l.list(ctx, b, listed{
		group: batchv1.GroupName, version: "v1", name: "jobs", namespaced: true, metadataOnly: true,
		add: item(func(b *builder, m *metav1.PartialObjectMetadata) error {
			name := ""
			if owner := controller(&m.ObjectMeta); owner != nil && owner.Kind == kindCronJob {
				name = owner.Name
			}
			b.addJob(m.Namespace, m.Name, name)
			return nil
		}),
	})
}

// configMaps reads the ConfigMaps that pods use and those that tell how DNS is served. It runs beside the list of the pods
// and holds what it cannot judge yet, up to a bound; there it waits for the pods.
func (l *liveReader) configMaps(ctx context.Context, b *builder) error {
	var held int64
	selector := make([]string, len(implicitConfigMaps))
	for i, name := range implicitConfigMaps {
		selector[i] = "metadata.name!=" + name
	}
	return l.list(ctx, b, listed{
		resource: cluster.ConfigMaps, name: "configmaps", namespaced: true, fieldSelector: strings.Join(selector, ","),
		add: item(func(b *builder, c *corev1.ConfigMap) error {
			if !isDNSConfigMap(c) {
				if held += dataSize(c); held > maxHeld {
					select {
					case <-l.podsRead:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				select {
				case <-l.podsRead:
					if !l.used.keep(c) {
						return nil
					}
				default:
				}
			}
			b.addConfigMap(c)
			return nil
		}),
	})
}

// server reads the version and the API groups, which every authenticated user may, and what depends on them.
func (l *liveReader) server(ctx context.Context, s *cluster.Snapshot, b *builder) error {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := l.get(ctx, "/version", &version); err != nil {
		return err
	}
	s.ServerVersion = version.GitVersion
	var groups *metav1.APIGroupList
	if err := l.get(ctx, "/apis", &groups); err != nil || groups == nil {
		return err
	}
	s.APIGroups = []string{}
	istio := ""
	for _, g := range groups.Groups {
		s.APIGroups = append(s.APIGroups, g.Name)
		if g.Name == istioGroup {
			istio = g.PreferredVersion.Version
		}
	}
	slices.Sort(s.APIGroups)
	if istio == "" {
		return nil
	}
	return l.serviceEntries(ctx, b, istio)
}

func (l *liveReader) serviceEntries(ctx context.Context, b *builder, version string) error {
	n, err := l.pages(ctx, b, listed{
		resource: cluster.ServiceEntries, group: istioGroup, version: version, name: "serviceentries", jsonOnly: true,
		add: func(b *builder, raw []byte, _ bool) error {
			e, err := decode[serviceEntry](raw)
			if err != nil {
				return err
			}
			b.addMeshHosts(e.Spec.Hosts)
			return nil
		},
	}, "")
	if apierrors.IsNotFound(err) {
		// The group is served without this resource: there are no ServiceEntries.
		return nil
	}
	if err != nil {
		return l.miss(ctx, cluster.ServiceEntries, "serviceentries", err)
	}
	l.progress(cluster.ServiceEntries, n, true)
	return nil
}

// get reads a small JSON document. What the server refuses leaves v as it is.
func (l *liveReader) get(ctx context.Context, path string, v any) error {
	raw, err := l.client.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
	if err == nil {
		if err = json.Unmarshal(raw, v); err != nil {
			err = &answerFault{err}
		}
	}
	if err != nil {
		return l.miss(ctx, "", path, err)
	}
	return nil
}
