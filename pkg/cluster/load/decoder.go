package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

const (
	// maxListDepth bounds lists in lists.
	maxListDepth = 4
	// maxErrors bounds how many broken places are listed.
	maxErrors = 50
	// maxKinds bounds how many kinds of objects that are not read are counted apart.
	maxKinds = 200
)

// decoder feeds objects from files into a builder.
type decoder struct {
	ctx context.Context
	o   Options
	b   *builder
	// header is that of a snapshot of ours, if one was read.
	header *header
	// counts holds how many objects of each resource were read.
	counts  map[cluster.Resource]int
	skipped map[string]int
	texts   []*cluster.Text
	ignored int
	files   int
	// left is how many bytes may still be read.
	left int64
	// yamlRead is how many bytes of YAML were read, objects how many objects.
	yamlRead int64
	objects  int
	// held is the size of the ConfigMaps that were read.
	held int64
	errs []error
	// unlisted is how many errors were not kept.
	unlisted int
	json     []byte

	// file is what is being read.
	file fileState
}

// fileState is what is known of one file while it is read.
type fileState struct {
	source string
	// size is that of a regular file in bytes, as far as it is known.
	size int64
	// objects counts the Kubernetes objects, those that are not read included.
	objects int
	// foreign is the line of the first value that is no Kubernetes object; 0 where there is none.
	foreign int
	header  *header
}

// fail records a fault of the file at hand. A FileError keeps its own line.
func (d *decoder) fail(line int, err error) {
	var at *FileError
	if errors.As(err, &at) && at.Source == "" {
		line, err = at.Line, at.Err
	}
	if len(d.errs) >= maxErrors {
		d.unlisted++
		return
	}
	d.errs = append(d.errs, &FileError{Source: d.file.source, Line: line, Err: err})
}

// at gives an error a line of the file at hand, unless it has one.
func at(line int, err error) error {
	var f *FileError
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &FileError{Line: line, Err: err}
}

// object reads one JSON object. listVersion and listKind are those of the list it stands in; an item of a list such as
// PodList has no type of its own. What is wrong inside the object is recorded; the error is one that ends the stream.
func (d *decoder) object(raw []byte, line int, listVersion, listKind string, depth int) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	if len(raw) == 0 || raw[0] != '{' {
		d.foreign(line)
		return nil
	}
	apiVersion, kind, err := typeOf(raw)
	if err != nil {
		d.fail(line, err)
		return nil
	}
	if kind == "" {
		if kind, _ = strings.CutSuffix(listKind, "List"); kind == "" {
			d.foreign(line)
			return nil
		}
		if apiVersion == "" {
			apiVersion = listVersion
		}
	}
	if isList(kind) {
		if depth >= maxListDepth {
			d.fail(line, fmt.Errorf("lists are nested more than %d deep", maxListDepth))
			return nil
		}
		return d.jsonObject(readJSON(raw, line), depth+1)
	}
	group, _, versioned := strings.Cut(apiVersion, "/")
	if !versioned {
		group = ""
	}
	if group == snapshotGroup {
		return at(line, d.readHeader(apiVersion, kind, raw))
	}
	d.file.objects++
	if d.objects++; d.objects > d.o.Limits.Objects {
		return at(line, fmt.Errorf("%w: the files hold more than %d objects", ErrLimit, d.o.Limits.Objects))
	}
	add, ok := readers(kind)
	if !ok || (apiVersion != "" && !slices.Contains(add.groups, group)) {
		d.skip(kind)
		return nil
	}
	if err := add.read(d, kind, raw); err != nil {
		if errors.Is(err, ErrLimit) {
			return at(line, err)
		}
		d.fail(line+errorLine(raw, err), fmt.Errorf("decoding %s: %w", kind, err))
		return nil
	}
	d.counts[add.resource]++
	if n := d.counts[add.resource]; n%512 == 0 {
		d.progress(add.resource, n, false)
	}
	return nil
}

func (d *decoder) progress(r cluster.Resource, n int, done bool) {
	if d.o.Progress != nil {
		d.o.Progress(Progress{Resource: r, Count: n, Done: done})
	}
}

// errorLine returns how many lines into raw an error of the decoder is.
func errorLine(raw []byte, err error) int {
	var offset int64
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typed):
		offset = typed.Offset
	}
	return bytes.Count(raw[:min(max(offset, 0), int64(len(raw)))], []byte{'\n'})
}

func (d *decoder) skip(kind string) {
	if _, ok := d.skipped[kind]; !ok && len(d.skipped) >= maxKinds {
		kind = "other kinds"
	}
	d.skipped[kind]++
}

func (d *decoder) foreign(line int) {
	if d.file.foreign == 0 {
		d.file.foreign = line
	}
}

func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// jsonObject reads the object that comes next. Of a list it never holds more than one item, except where items without a
// type of their own come before the kind of the list.
func (d *decoder) jsonObject(j *jsonReader, depth int) error {
	start := j.line
	var apiVersion, kind string
	var whole, untyped []byte
	var untypedAt []int
	items := false
	// lines is the line up to which whole has as many lines as the input, so that errors find theirs.
	lines := start
	err := j.fields(func(key string) (err error) {
		first, err := j.space()
		if err != nil {
			return cutOff(err)
		}
		if key == "items" && first == '[' && (kind == "" || isList(kind)) {
			items = true
			return j.items(func(raw []byte, line int) error {
				if kind == "" {
					if _, own, err := typeOf(raw); err == nil && own == "" {
						if int64(len(untyped)+len(raw)) > d.o.Limits.Object {
							return fmt.Errorf("%w: more than %d bytes of items come before the kind of the list", ErrLimit, d.o.Limits.Object)
						}
						untyped = append(append(untyped, raw...), '\n')
						untypedAt = append(untypedAt, line)
						return nil
					}
				}
				return d.object(raw, line, apiVersion, kind, depth)
			})
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		if int64(len(whole)+j.line-lines) > d.o.Limits.Object {
			return fmt.Errorf("%w: one object is larger than %d bytes", ErrLimit, d.o.Limits.Object)
		}
		whole = append(append(append(whole, ','), name...), ':')
		for ; lines < j.line; lines++ {
			whole = append(whole, '\n')
		}
		at := len(whole)
		if whole, err = j.value(whole); err != nil {
			return err
		}
		lines = j.line
		switch key {
		case "kind":
			err = json.Unmarshal(whole[at:], &kind)
		case "apiVersion":
			err = json.Unmarshal(whole[at:], &apiVersion)
		}
		if err != nil {
			return fmt.Errorf("%s is no text", key)
		}
		return nil
	})
	if err != nil {
		return at(j.line, err)
	}
	if !items {
		if isList(kind) {
			return nil
		}
		if len(whole) == 0 {
			d.foreign(start)
			return nil
		}
		whole[0] = '{'
		return d.object(append(whole, '}'), start, "", "", depth)
	}
	if kind == "" && len(untypedAt) > 0 {
		d.foreign(start)
		return nil
	}
	rest := readJSON(untyped, start)
	for _, line := range untypedAt {
		raw, err := rest.value(nil)
		if err != nil {
			return at(line, err)
		}
		if err := d.object(raw, line, apiVersion, kind, depth); err != nil {
			return err
		}
	}
	return nil
}

// reader takes objects of one kind into the builder.
type reader struct {
	// groups are the API groups that the kind is read from.
	groups   []string
	resource cluster.Resource
	read     func(d *decoder, kind string, raw []byte) error
}

// readers says how a kind that files may hold is read, if it is. Secrets are not: their bytes are let go undecoded.
func readers(kind string) (reader, bool) {
	core, apps := []string{""}, []string{"apps", "extensions"}
	switch kind {
	case "Namespace":
		return reader{core, cluster.Namespaces, take(false, (*builder).addNamespace)}, true
	case "Service":
		return reader{core, cluster.Services, take(true, (*builder).addService)}, true
	case "EndpointSlice":
		return reader{[]string{discoveryv1.GroupName}, cluster.EndpointSlices, take(true, (*builder).addEndpointSlice)}, true
	case "Endpoints":
		return reader{core, cluster.EndpointSlices, take(true, (*builder).addEndpoints)}, true
	case "Pod":
		return reader{core, cluster.Pods, readPod}, true
	case "Node":
		return reader{core, cluster.Nodes, take(false, (*builder).addNode)}, true
	case "ConfigMap":
		return reader{core, cluster.ConfigMaps, readConfigMap}, true
	case "ServiceEntry":
		return reader{[]string{istioGroup}, cluster.ServiceEntries, readServiceEntry}, true
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		return reader{apps, cluster.Pods, readController}, true
	case "ReplicationController":
		return reader{core, cluster.Pods, readController}, true
	case "DeploymentConfig":
		return reader{[]string{"", "apps.openshift.io"}, cluster.Pods, readController}, true
	case "Rollout":
		return reader{[]string{"argoproj.io"}, cluster.Pods, readController}, true
	case kindJob:
		return reader{[]string{batchv1.GroupName}, cluster.Pods, readController}, true
	case kindCronJob:
		return reader{[]string{batchv1.GroupName}, cluster.Pods, readCronJob}, true
	}
	return reader{}, false
}

const istioGroup = "networking.istio.io"

// serviceEntry is the part of Istio's ServiceEntry that is read.
type serviceEntry struct {
	Spec struct {
		Hosts []string `json:"hosts"`
	} `json:"spec"`
}

// decode reads an object as the API server reads JSON: names of fields are matched with their case, unknown ones left.
func decode[T any](raw []byte) (*T, error) {
	v := new(T)
	if err := utiljson.Unmarshal(raw, v); err != nil {
		return nil, err
	}
	return v, nil
}

// message is a Kubernetes object that can be written as protobuf.
type message interface {
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// take returns the function that decodes a kind and gives it to add.
func take[T any, P interface {
	*T
	message
}](namespaced bool, add func(*builder, P),
) func(*decoder, string, []byte) error {
	return func(d *decoder, _ string, raw []byte) error {
		v, err := decodeCanonical[T, P](raw)
		if err != nil {
			return err
		}
		if namespaced && P(v).GetNamespace() == "" {
			P(v).SetNamespace(d.namespace())
		}
		add(d.b, v)
		return nil
	}
}

// decodeCanonical decodes JSON into what protobuf gives for the same object: JSON tells an empty list from none, which
// checks must not see.
func decodeCanonical[T any, P interface {
	*T
	message
}](raw []byte,
) (*T, error) {
	v, err := decode[T](raw)
	if err != nil {
		return nil, err
	}
	P(v).SetManagedFields(nil)
	b, err := P(v).Marshal()
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, P(out).Unmarshal(b)
}

func (d *decoder) namespace() string {
	if d.o.Namespace == "" {
		return corev1.NamespaceDefault
	}
	return d.o.Namespace
}

func (d *decoder) inNamespace(m *metav1.ObjectMeta) *metav1.ObjectMeta {
	if m.Namespace == "" {
		m.Namespace = d.namespace()
	}
	return m
}

// readPod decodes without the detour of decodeCanonical: addPod takes a pod apart, and the specification goes through
// protobuf there.
func readPod(d *decoder, _ string, raw []byte) error {
	p, err := decode[corev1.Pod](raw)
	if err != nil {
		return err
	}
	d.inNamespace(&p.ObjectMeta)
	d.b.addPod(p)
	return nil
}

func readConfigMap(d *decoder, _ string, raw []byte) error {
	c, err := decodeCanonical[corev1.ConfigMap](raw)
	if err != nil {
		return err
	}
	d.inNamespace(&c.ObjectMeta)
	d.b.addConfigMap(c)
	if d.held += dataSize(c); d.held > d.o.Limits.ConfigMaps {
		return fmt.Errorf("%w: ConfigMaps hold more than %d bytes", ErrLimit, d.o.Limits.ConfigMaps)
	}
	return nil
}

// withTemplate is the shape that controllers with a pod template have in common. Their status differs.
type withTemplate struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// readController reads any controller with a pod template at spec.template. One that refers to the template of another
// object, as a Rollout may, has none.
func readController(d *decoder, kind string, raw []byte) error {
	c, err := decode[withTemplate](raw)
	if err != nil {
		return err
	}
	d.b.addController(kind, d.inNamespace(&c.ObjectMeta), &c.Spec.Template)
	return nil
}

func readCronJob(d *decoder, kind string, raw []byte) error {
	c, err := decode[batchv1.CronJob](raw)
	if err != nil {
		return err
	}
	d.b.addController(kind, d.inNamespace(&c.ObjectMeta), &c.Spec.JobTemplate.Spec.Template)
	return nil
}

func readServiceEntry(d *decoder, _ string, raw []byte) error {
	e, err := decode[serviceEntry](raw)
	if err != nil {
		return err
	}
	d.b.addMeshHosts(e.Spec.Hosts)
	return nil
}

// repeatedNote says that an object came more than once.
func repeatedNote(o finding.Object) string {
	return o.String() + " is given more than once: the last one counts"
}
