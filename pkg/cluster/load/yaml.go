package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// streamThreshold is the size from which a YAML document that is a list is read item by item, in bytes. Below it a
	// document is parsed as a whole, so that anchors hold from one item to the next.
	streamThreshold = 1 << 20
	// maxYAMLDepth bounds the nesting of a YAML document after aliases are put in.
	maxYAMLDepth = 256
	// maxBeside bounds what stands beside the items of a list that is read item by item, in bytes.
	maxBeside = 1 << 20
)

// Marks of the logs that stand between the objects of `kubectl cluster-info dump`
// (k8s.io/kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go).
const (
	logStart = "==== START logs for container "
	logEnd   = "==== END logs for container "
)

const renderHint = "render it first, for example with helm template"

// boundary tells whether the next line ends a YAML document.
func (j *jsonReader) boundary() (bool, error) {
	b, err := j.r.Peek(len(logStart))
	if len(b) == 0 {
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		return false, err
	}
	return isMarker(b, "---") || isMarker(b, "...") || string(b) == logStart, nil
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// text appends the next line with its end to dst; at the end of the input nothing.
func (j *jsonReader) text(dst []byte) ([]byte, error) {
	for {
		b, err := j.r.ReadSlice('\n')
		if int64(len(dst)+len(b)) > j.limit {
			return dst, fmt.Errorf("%w: one document is larger than %d bytes", ErrLimit, j.limit)
		}
		dst = append(dst, b...)
		switch {
		case err == nil:
			j.line++
			return dst, nil
		case errors.Is(err, io.EOF):
			return dst, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return dst, err
		}
	}
}

// documents reads everything that a stream holds: JSON values, one after the other, and YAML documents. What is broken
// inside one object or document is recorded, and the next one is read; an error ends the stream.
func (d *decoder) documents(j *jsonReader) error {
	for {
		first, err := j.space()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return at(j.line, err)
		}
		head, err := j.r.Peek(len(logStart))
		if err != nil && !errors.Is(err, io.EOF) {
			return at(j.line, err)
		}
		start := j.line
		switch {
		case first == '{' && !bytes.HasPrefix(head, []byte("{{")):
			err = d.jsonObject(j, 0)
		case first == '[':
			err = j.items(func(raw []byte, line int) error { return d.object(raw, line, "", "", 0) })
			if err != nil {
				err = at(j.line, err)
			}
		case string(head) == logStart:
			err = skipLogs(j)
		case first == '%' || isMarker(head, "..."):
			_, err = j.text(nil)
		case isMarker(head, "---"):
			var text []byte
			if text, err = j.text(nil); err == nil {
				if rest := bytes.TrimSpace(text[3:]); len(rest) > 0 && rest[0] != '#' {
					err = d.yamlText(j, text, start)
				}
			}
		default:
			err = d.yamlText(j, bytes.Repeat([]byte{' '}, min(j.indent, maxYAMLDepth)), start)
		}
		if err != nil {
			return at(start, err)
		}
	}
}

// skipLogs takes the log of a container. The line that ends it names the container too, so that a log does not end
// itself by chance.
func skipLogs(j *jsonReader) error {
	first, err := j.text(nil)
	if err != nil {
		return err
	}
	end := append([]byte(logEnd), bytes.TrimRight(first[len(logStart):], "\r\n")...)
	for {
		b, err := j.r.Peek(len(end))
		if len(b) == 0 {
			return cutOff(err)
		}
		if bytes.Equal(b, end) {
			_, err := j.text(nil)
			return err
		}
		for {
			_, err := j.r.ReadSlice('\n')
			if err == nil {
				j.line++
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return cutOff(err)
			}
		}
	}
}

// yamlText reads a document up to its end. text is what was taken of it already: blanks, or one whole line. It starts on
// line start.
func (d *decoder) yamlText(j *jsonReader, text []byte, start int) error {
	whole := bytes.HasSuffix(text, []byte{'\n'})
	tried := false
	for {
		if whole {
			if end, err := j.boundary(); err != nil {
				return err
			} else if end {
				return d.yaml(text, start)
			}
		}
		var err error
		if text, err = j.text(text); err != nil {
			return err
		}
		whole = true
		if !tried && len(text) > streamThreshold {
			tried = true
			if i := firstItem(text); i >= 0 {
				return d.yamlList(j, text, i, start)
			}
		}
	}
}

// yaml reads one document that is in memory.
func (d *decoder) yaml(text []byte, start int) error {
	if err := d.countYAML(len(text)); err != nil {
		return err
	}
	root, err := parseYAML(text)
	if err != nil {
		line, err := yamlFault(start, text, err)
		if bytes.Contains(text, []byte("{{")) {
			err = fmt.Errorf("%w; if this is a template, %s", err, renderHint)
		}
		d.fail(line, err)
		return nil
	}
	if root == nil {
		return nil
	}
	return d.node(root, start, "", "", 0)
}

// countYAML bounds how much YAML is read. A file that is too large by itself is refused at its first document.
func (d *decoder) countYAML(n int) error {
	d.yamlRead += int64(n)
	if limit := d.o.Limits.YAML; d.yamlRead > limit || d.file.size > limit {
		return fmt.Errorf("%w: more than %d bytes of YAML; JSON, which kubectl writes with -o json, is read ten times as fast", ErrLimit, limit)
	}
	return nil
}

// parseYAML returns the root of a document; nil for an empty one.
func parseYAML(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// yamlFault takes the line out of an error of the YAML parser, which counts from the start of the document.
// It may count the line after the last one.
func yamlFault(start int, doc []byte, err error) (int, error) {
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			last := bytes.Count(bytes.TrimRight(doc, "\n"), []byte{'\n'})
			return start + min(n-1, last), errors.New("invalid YAML: " + text[len(m[0]):])
		}
	}
	return start, errors.New("invalid YAML: " + strings.TrimPrefix(text, "yaml: "))
}

// node reads an object or a list. start is the line where the text of n starts. Errors are as those of object.
func (d *decoder) node(n *yaml.Node, start int, listVersion, listKind string, depth int) error {
	line := start + n.Line - 1
	if n.Kind == yaml.MappingNode && depth <= maxListDepth {
		kind := field(n, "kind")
		if items := field(n, "items"); items != nil && items.Kind == yaml.SequenceNode && kind != nil && isList(kind.Value) {
			version := ""
			if v := field(n, "apiVersion"); v != nil {
				version = v.Value
			}
			for _, item := range items.Content {
				if err := d.node(item, start, version, kind.Value, depth+1); err != nil {
					return err
				}
			}
			return nil
		}
	}
	raw, err := d.toJSON(n)
	if err != nil {
		d.fail(line, err)
		return nil
	}
	return d.object(raw, line, listVersion, listKind, depth)
}

// toJSON writes n as JSON. The bytes are valid until it is called again.
func (d *decoder) toJSON(n *yaml.Node) ([]byte, error) {
	w := jsonWriter{buf: d.json[:0], limit: d.o.Limits.Object}
	err := w.node(n, 0)
	if d.json = w.buf; cap(d.json) > 1<<20 {
		d.json = nil
	}
	return w.buf, err
}

// field returns the value of a field of a mapping, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// itemsField finds the field items of a list in block style, as kubectl writes it.
var itemsField = regexp.MustCompile(`(?m)^items:[ \t]*(#.*)?\r?\n`)

// firstItem returns where the first item of a list starts, or -1.
func firstItem(text []byte) int {
	m := itemsField.FindIndex(text)
	if len(m) == 0 {
		return -1
	}
	first := bytes.TrimLeft(text[m[1]:], " ")
	if !isMarker(first, "-") {
		return -1
	}
	return m[1]
}

// yamlList reads a long list item by item. text is what was taken of it, from line start on; its first item is at text[i:].
//
// An item of a block sequence starts with "- " at the indentation of the first one, and nothing inside an item is
// indented less than that or starts so: it is enough to look at the start of each line.
func (d *decoder) yamlList(j *jsonReader, text []byte, i, start int) error {
	l := &yamlList{
		d:      d,
		beside: bytes.Clone(text[:bytes.LastIndex(text[:i], []byte("items:"))]),
		indent: len(text[i:]) - len(bytes.TrimLeft(text[i:], " ")),
		start:  start,
		line:   start + bytes.Count(text[:i], []byte{'\n'}),
	}
	l.readType()
	for line := range bytes.Lines(text[i:]) {
		if err := l.add(line); err != nil {
			return err
		}
	}
	var line []byte
	for {
		end, err := j.boundary()
		if err != nil {
			return err
		}
		if end {
			return l.close()
		}
		if line, err = j.text(line[:0]); err != nil {
			return err
		}
		if err := l.add(line); err != nil {
			return err
		}
	}
}

// yamlList is the state of yamlList.
type yamlList struct {
	d *decoder
	// beside is what stands before and after the items.
	beside []byte
	// apiVersion and kind are those of the list, as far as they are known.
	apiVersion, kind string
	indent           int
	// start is the line of the document, line that of the next line.
	start, line int
	// item is the item at hand and at the line where it starts.
	item []byte
	at   int
	// after tells that the items have ended.
	after bool
	// untyped are items without a type of their own that came before the kind of the list.
	untyped   [][]byte
	untypedAt []int
	size      int64
}

func (l *yamlList) add(line []byte) error {
	defer func() { l.line++ }()
	if l.after {
		return l.aside(line)
	}
	body := bytes.TrimLeft(line, " ")
	indent := len(line) - len(body)
	blank := len(bytes.TrimSpace(body)) == 0 || body[0] == '#'
	starts := indent == l.indent && isMarker(body, "-")
	if starts || (!blank && indent <= l.indent) {
		if err := l.emit(); err != nil {
			return err
		}
		l.at = l.line
		if !starts {
			l.after = true
			return l.aside(line)
		}
	}
	if limit := l.d.o.Limits.Object; int64(len(l.item)+len(line)) > limit {
		return fmt.Errorf("%w: one item is larger than %d bytes", ErrLimit, limit)
	}
	l.item = append(l.item, line...)
	return nil
}

func (l *yamlList) aside(line []byte) error {
	if len(l.beside)+len(line) > maxBeside {
		return fmt.Errorf("%w: more than %d bytes stand beside the items of a list", ErrLimit, maxBeside)
	}
	l.beside = append(l.beside, line...)
	return nil
}

// emit reads the item at hand.
func (l *yamlList) emit() error {
	if len(l.item) == 0 {
		return nil
	}
	text := l.item
	l.item = l.item[:0]
	if err := l.d.countYAML(len(text)); err != nil {
		return err
	}
	root, err := parseYAML(text)
	if err != nil {
		line, err := yamlFault(l.at, text, err)
		l.d.fail(line, err)
		return nil
	}
	if root == nil || root.Kind != yaml.SequenceNode {
		return nil
	}
	for _, n := range root.Content {
		if n.Kind == yaml.MappingNode && l.kind == "" && field(n, "kind") == nil {
			raw, err := l.d.toJSON(n)
			if err != nil {
				l.d.fail(l.at, err)
				continue
			}
			if l.size += int64(len(raw)); l.size > l.d.o.Limits.Object {
				return fmt.Errorf("%w: more than %d bytes of items come before the kind of the list", ErrLimit, l.d.o.Limits.Object)
			}
			l.untyped, l.untypedAt = append(l.untyped, bytes.Clone(raw)), append(l.untypedAt, l.at)
			continue
		}
		if err := l.d.node(n, l.at, l.apiVersion, l.kind, 1); err != nil {
			return err
		}
	}
	return nil
}

func (l *yamlList) readType() {
	root, err := parseYAML(l.beside)
	if err != nil {
		line, err := yamlFault(l.start, l.beside, err)
		l.d.fail(line, err)
		return
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return
	}
	if n := field(root, "kind"); n != nil {
		l.kind = n.Value
	}
	if n := field(root, "apiVersion"); n != nil {
		l.apiVersion = n.Value
	}
}

func (l *yamlList) close() error {
	if err := l.emit(); err != nil {
		return err
	}
	if l.after {
		l.readType()
	}
	for i, raw := range l.untyped {
		if err := l.d.object(raw, l.untypedAt[i], l.apiVersion, l.kind, 1); err != nil {
			return err
		}
	}
	return nil
}

// jsonWriter writes a YAML node as JSON as sigs.k8s.io/yaml would, without going through Go values. It bounds what
// aliases can make of a small document: the length of the text, and the number of nodes that are visited.
type jsonWriter struct {
	buf []byte
	// limit bounds the text, in bytes, and the number of nodes.
	limit, visits int64
}

// visit counts a node. Merged mappings may add nothing to the text, so they are counted apart from it.
func (w *jsonWriter) visit(depth int) error {
	if depth > maxYAMLDepth {
		return fmt.Errorf("%w: YAML is nested more than %d deep", ErrLimit, maxYAMLDepth)
	}
	if w.visits++; w.visits > w.limit || int64(len(w.buf)) > w.limit {
		return fmt.Errorf("%w: one object is larger than %d bytes, with its aliases put in", ErrLimit, w.limit)
	}
	return nil
}

func (w *jsonWriter) node(n *yaml.Node, depth int) error {
	if err := w.visit(depth); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.node(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.buf = append(w.buf, '[')
		for i, c := range n.Content {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			if err := w.node(c, depth+1); err != nil {
				return err
			}
		}
		w.buf = append(w.buf, ']')
		return nil
	case yaml.MappingNode:
		w.buf = append(w.buf, '{')
		if err := w.fields(n, depth); err != nil {
			return err
		}
		w.buf = append(w.buf, '}')
		return nil
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	return fmt.Errorf("invalid YAML: node of kind %d", n.Kind)
}

// fields writes the fields of a mapping. Fields merged by "<<" come first: of two fields of one name a reader of JSON
// takes the last.
func (w *jsonWriter) fields(n *yaml.Node, depth int) error {
	if err := w.visit(depth); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		sources := []*yaml.Node{n.Content[i+1]}
		if s := sources[0]; s.Kind == yaml.SequenceNode {
			sources = s.Content
		}
		// Of several sources the first one wins, so it is written last.
		for k := len(sources) - 1; k >= 0; k-- {
			s := sources[k]
			if s.Kind == yaml.AliasNode {
				s = s.Alias
			}
			if s.Kind != yaml.MappingNode {
				return errors.New("invalid YAML: only a mapping can be merged")
			}
			if err := w.fields(s, depth+1); err != nil {
				return err
			}
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			// "{{ .Values.x }}" is a mapping with a mapping for a name.
			return errors.New("invalid YAML: the name of a field is no text; if this is a template, " + renderHint)
		}
		if key.ShortTag() == "!!merge" {
			continue
		}
		if w.buf[len(w.buf)-1] != '{' {
			w.buf = append(w.buf, ',')
		}
		w.string(key.Value)
		w.buf = append(w.buf, ':')
		if err := w.node(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.buf = append(w.buf, "null"...)
		return nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return yamlTypeError(err)
		}
		w.buf = strconv.AppendBool(w.buf, b)
		return nil
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			w.buf = strconv.AppendInt(w.buf, i, 10)
			return nil
		}
		fallthrough
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil {
			return yamlTypeError(err)
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("invalid YAML: %s has no form in JSON", n.Value)
		}
		text, err := json.Marshal(f)
		w.buf = append(w.buf, text...)
		return err
	case "!!str":
		// kubectl reads YAML 1.1, in which these plain words are truth values too.
		if n.Style == 0 {
			switch n.Value {
			case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
				w.buf = append(w.buf, "true"...)
				return nil
			case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
				w.buf = append(w.buf, "false"...)
				return nil
			}
		}
	}
	w.string(n.Value)
	return nil
}

func yamlTypeError(err error) error {
	return errors.New("invalid YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
}

func (w *jsonWriter) string(s string) {
	// A Go string always has a form in JSON: what is no UTF-8 is replaced.
	text, _ := json.Marshal(s)
	w.buf = append(w.buf, text...)
}
