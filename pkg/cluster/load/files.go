package load

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// The default limits. The largest object that etcd takes by default is 1.5 MiB; a list of 20,000 pods is about 200 MB of
// YAML.
const (
	defaultObjectLimit    = 16 << 20
	defaultTotalLimit     = 4 << 30
	defaultYAMLLimit      = 512 << 20
	defaultObjectsLimit   = 1_000_000
	defaultFilesLimit     = 100_000
	defaultConfigMapLimit = 512 << 20
	// maxText bounds a Corefile or a resolv.conf, in bytes.
	maxText = 1 << 20
	// maxRatio is the compression, in bytes of text for each byte read, above which a gzipped file of more than
	// ratioFrom bytes is refused. JSON of Kubernetes objects reaches about 40.
	maxRatio  = 300
	ratioFrom = 64 << 20
)

func (l *Limits) setDefaults() {
	l.Object = cmp.Or(l.Object, defaultObjectLimit)
	l.Total = cmp.Or(l.Total, defaultTotalLimit)
	l.YAML = cmp.Or(l.YAML, defaultYAMLLimit)
	l.Objects = cmp.Or(l.Objects, defaultObjectsLimit)
	l.Files = cmp.Or(l.Files, defaultFilesLimit)
	l.ConfigMaps = cmp.Or(l.ConfigMaps, defaultConfigMapLimit)
}

// Files reads files and directories: YAML and JSON as kubectl writes it, manifests, `kubectl cluster-info dump`,
// snapshots of ours, Corefiles and resolv.conf files, each of them gzipped or not. The path "-" stands for stdin.
//
// In a directory, files with other names are ignored, and so is what starts with a dot; links may not lead out of it. A
// file that is named itself must hold something that is read.
//
// Where the input is no snapshot of ours, a kind of which it holds no object is absent: the input may be a selection. That
// does not hold for ServiceEntries and texts, which most clusters and inputs do not have.
//
// Errors are joined *FileError values, one for each broken place; or match ErrNothing.
func Files(ctx context.Context, paths []string, stdin io.Reader, o Options) (*Result, error) {
	o.Limits.setDefaults()
	d := &decoder{ctx: ctx, o: o, b: newBuilder(), counts: map[cluster.Resource]int{}, skipped: map[string]int{}, left: o.Limits.Total}
	for _, p := range paths {
		if err := d.path(p, stdin); err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("reading %s: %w", p, ctx.Err())
			}
			d.fail(0, err)
		}
	}
	if d.unlisted > 0 {
		d.errs = append(d.errs, fmt.Errorf("and %d more", d.unlisted))
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return d.result(paths)
}

// path reads one argument.
func (d *decoder) path(p string, stdin io.Reader) error {
	d.file = fileState{source: p}
	if p == "-" {
		if stdin == nil {
			return errors.New("there is no standard input")
		}
		return d.explicit(p, stdin)
	}
	info, err := os.Stat(p)
	if err != nil {
		return withoutPath(err)
	}
	if info.IsDir() {
		return d.directory(p)
	}
	f, err := os.Open(p)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		d.file.size = info.Size()
	}
	return d.explicit(p, f)
}

// withoutPath takes the path out of an error of package os: a FileError names it already.
func withoutPath(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// explicit reads a file that the user named: it must hold something that is read.
func (d *decoder) explicit(name string, r io.Reader) error {
	before := len(d.errs)
	text, err := d.read(name, r, true)
	if err != nil || text || len(d.errs) > before {
		return err
	}
	if d.file.foreign > 0 {
		return at(d.file.foreign, ErrForeign)
	}
	if d.file.objects == 0 && d.file.header == nil {
		return fmt.Errorf("the file holds %w", ErrNothing)
	}
	return nil
}

// directory reads the files below p, in the order of their names.
func (d *decoder) directory(p string) error {
	root, err := os.OpenRoot(p)
	if err != nil {
		return withoutPath(err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		d.file = fileState{source: filepath.Join(p, filepath.FromSlash(name))}
		switch {
		case d.ctx.Err() != nil:
			return d.ctx.Err()
		case err != nil:
			d.fail(0, withoutPath(err))
			return nil
		case name != "." && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		}
		if d.files++; d.files > d.o.Limits.Files {
			d.file.source = p
			return fmt.Errorf("%w: the directory holds more than %d files", ErrLimit, d.o.Limits.Files)
		}
		_, text := textKind(name)
		if !text && !isObjectFile(name) {
			d.ignored++
			return nil
		}
		// Asked before it is opened: opening a named pipe waits for somebody to write to it.
		info, err := root.Stat(name)
		if err != nil {
			d.fail(0, withoutPath(err))
			return nil
		}
		if !info.Mode().IsRegular() {
			d.ignored++
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			d.fail(0, withoutPath(err))
			return nil
		}
		defer f.Close()
		before := len(d.errs)
		text, err = d.read(name, f, false)
		if err != nil {
			d.fail(0, err)
		}
		if !text && len(d.errs) == before && d.file.objects == 0 && d.file.header == nil {
			d.ignored++
		}
		return nil
	})
}

// isObjectFile tells whether a file of a directory may hold objects.
func isObjectFile(name string) bool {
	switch strings.ToLower(path.Ext(trimGzip(name))) {
	case ".yaml", ".yml", ".json", ".ndjson":
		return true
	}
	return false
}

func trimGzip(name string) string {
	if strings.EqualFold(path.Ext(name), ".gz") {
		return name[:len(name)-3]
	}
	return name
}

// textKind tells by its name which kind of text a file is.
func textKind(name string) (cluster.TextKind, bool) {
	if isObjectFile(name) {
		return "", false
	}
	base := trimGzip(path.Base(filepath.ToSlash(name)))
	lower := strings.ToLower(base)
	switch {
	case base == "Corefile", strings.HasSuffix(lower, ".corefile"), strings.HasPrefix(base, "Corefile."):
		if strings.Contains(lower, "upstream") {
			return cluster.TextUpstreamCorefile, true
		}
		return cluster.TextCorefile, true
	case strings.HasSuffix(lower, "resolv.conf"):
		if strings.Contains(lower, "node") {
			return cluster.TextNodeResolvConf, true
		}
		return cluster.TextPodResolvConf, true
	}
	return "", false
}

// sniffText tells by its first line which kind of text a file is that holds no objects: resolv.conf(5) starts with one of
// its keywords, a Corefile with the keys of a server block, a snippet or an import.
func sniffText(head []byte) (cluster.TextKind, bool) {
	for line := range strings.Lines(string(head)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], ";") {
			continue
		}
		switch words[0] {
		case "nameserver", "search", "domain", "options", "sortlist":
			if len(words) > 1 {
				return cluster.TextPodResolvConf, true
			}
			return "", false
		case "import":
			return cluster.TextCorefile, len(words) > 1
		}
		last := len(words) - 1
		for i, w := range words {
			if strings.HasPrefix(w, "#") {
				last = i - 1
				break
			}
		}
		if last > 0 && words[last] == "{" && !strings.HasSuffix(words[last-1], ":") {
			return cluster.TextCorefile, true
		}
		return "", false
	}
	return "", false
}

// read reads one file; named tells that the user named it. It reports whether the file is a text.
func (d *decoder) read(name string, raw io.Reader, named bool) (text bool, err error) {
	r, err := d.open(raw)
	if err != nil {
		return false, err
	}
	head, err := r.Peek(4 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	kind, text := textKind(name)
	if !text && named && !isObjectFile(name) {
		kind, text = sniffText(head)
	}
	if what := binaryKind(head); what != "" {
		return false, errors.New(what)
	}
	if text {
		data, err := io.ReadAll(io.LimitReader(r, maxText+1))
		if err != nil {
			return true, err
		}
		if len(data) > maxText {
			return true, fmt.Errorf("%w: a %s of more than %d bytes", ErrLimit, kind, maxText)
		}
		d.texts = append(d.texts, &cluster.Text{Kind: kind, Name: d.file.source, Data: strings.ToValidUTF8(string(data), "\uFFFD")})
		return true, nil
	}
	d.b.saved = false
	if err := d.documents(&jsonReader{r: r, line: 1, limit: d.o.Limits.Object}); err != nil {
		return false, err
	}
	if h := d.file.header; h != nil && h.Objects != d.file.objects {
		return false, fmt.Errorf("the snapshot holds %d of its %d objects: it is cut off or was changed", d.file.objects, h.Objects)
	}
	return false, nil
}

// open returns the text of a file: unpacked where it is gzipped, as UTF-8 where it is UTF-16 (which PowerShell writes),
// without a byte order mark.
func (d *decoder) open(raw io.Reader) (*bufio.Reader, error) {
	const size = 64 << 10
	packed := &counter{r: raw, left: &d.left, total: d.o.Limits.Total}
	r := bufio.NewReaderSize(packed, size)
	head, err := r.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("unpacking gzip: %w", err)
		}
		r = bufio.NewReaderSize(&counter{r: z, left: &d.left, total: d.o.Limits.Total, packed: packed}, size)
	}
	head, err = r.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		decoder := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
		r = bufio.NewReaderSize(&counter{r: transform.NewReader(r, decoder), left: &d.left, total: d.o.Limits.Total}, size)
	case bytes.Equal(head, []byte{0xef, 0xbb, 0xbf}):
		if _, err := r.Discard(3); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// counter bounds how much is read.
type counter struct {
	r io.Reader
	// left is how many bytes all files may still give; total is what it started with.
	left  *int64
	total int64
	n     int64
	// packed counts the compressed bytes that r reads; nil where r does not unpack.
	packed *counter
}

func (c *counter) Read(p []byte) (int, error) {
	if *c.left <= 0 {
		return 0, fmt.Errorf("%w: the files hold more than %d bytes", ErrLimit, c.total)
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	*c.left -= int64(n)
	if c.packed != nil {
		if c.n > ratioFrom && c.n/maxRatio > c.packed.n {
			return n, fmt.Errorf("%w: the file unpacks to more than %d times its size", ErrLimit, maxRatio)
		}
		err = unpackError(err)
	}
	return n, err
}

func unpackError(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("unpacking gzip: the file is cut off")
	}
	return fmt.Errorf("unpacking gzip: %w", err)
}

// binaryKind says what a file is that is no text; "" for a text.
func binaryKind(head []byte) string {
	for magic, what := range map[string]string{
		"PK\x03\x04": "zip", "\x28\xb5\x2f\xfd": "zstd", "\xfd7zXZ": "xz", "BZh": "bzip2",
	} {
		if strings.HasPrefix(string(head), magic) {
			return "this is a " + what + " archive: unpack it first"
		}
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return "this is a tar archive: unpack it first"
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return "this is a binary file, neither YAML nor JSON"
	}
	return ""
}

// result makes the snapshot of what was read.
func (d *decoder) result(paths []string) (*Result, error) {
	s := &cluster.Snapshot{Name: d.o.Name, Absent: map[cluster.Resource]string{}}
	if d.header != nil {
		d.header.fill(s)
	}
	if s.Name == "" {
		s.Name = strings.Join(paths, ", ")
	}
	d.b.meshHosts = append(d.b.meshHosts, s.MeshHosts...)
	res := &Result{Snapshot: s, Skipped: d.skipped, Ignored: d.ignored}
	for _, o := range d.b.finish(s) {
		res.Notes = append(res.Notes, repeatedNote(o))
	}
	s.Texts = append(s.Texts, d.texts...)
	slices.SortStableFunc(s.Texts, func(a, b *cluster.Text) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if n := d.skipped["Secret"]; n > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d Secrets are in the input and were not read", n))
	}
	read := len(s.Texts)
	for _, n := range d.counts {
		read += n
	}
	if read == 0 && d.header == nil {
		return nil, fmt.Errorf("reading %s: it holds %w%s", strings.Join(paths, ", "), ErrNothing, d.skippedText())
	}
	if d.header == nil {
		s.Partial = !looksComplete(s)
		for r, kind := range kinds {
			if d.counts[r] == 0 {
				s.Absent[r] = "no " + kind + " in the input"
			}
		}
	}
	for r, n := range d.counts {
		d.progress(r, n, true)
	}
	return res, nil
}

// kinds are the inputs that are absent from files that hold none of them.
var kinds = map[cluster.Resource]string{
	cluster.Namespaces:     "Namespace object",
	cluster.Services:       "Service",
	cluster.EndpointSlices: "EndpointSlice",
	cluster.Pods:           "Pod and no controller with a pod template",
	cluster.ConfigMaps:     "ConfigMap",
	cluster.Nodes:          "Node",
}

func (d *decoder) skippedText() string {
	if len(d.skipped) == 0 {
		return ""
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(d.skipped)) {
		parts = append(parts, fmt.Sprintf("%d %s", d.skipped[kind], kind))
		if len(parts) == 5 {
			parts = append(parts, "…")
			break
		}
	}
	return ", only " + strings.Join(parts, ", ")
}

// looksComplete tells whether the objects are those of a whole cluster: every cluster has the namespace kube-system with
// something in it, and the Service default/kubernetes.
func looksComplete(s *cluster.Snapshot) bool {
	system := slices.ContainsFunc(s.Namespaces, func(n *corev1.Namespace) bool { return n.Name == "kube-system" })
	api, inSystem := false, slices.ContainsFunc(s.Pods, func(p *cluster.Pod) bool { return p.Namespace == "kube-system" })
	for _, v := range s.Services {
		api = api || v.Namespace == "default" && v.Name == "kubernetes"
		inSystem = inSystem || v.Namespace == "kube-system"
	}
	return system && api && inSystem && len(s.Pods) > 0
}
