package reference

import "strings"

// level is one key of block style YAML that encloses the current line.
type level struct {
	indent int
	key    string
	// muted is true below keys whose values are never hosts.
	muted bool
}

// mutes tells whether nothing below a key is a host that the workload looks up.
func mutes(key string) bool {
	switch strings.ToLower(key) {
	case "labels", "annotations", "cors", "links", "license", "contact", "externaldocs", "headers", "httpheaders", "matchlabels", "commonlabels", "tags",
		"servernames", "server_names", "static_labels", "external_labels", "global_tags":
		return true
	}
	return false
}

// mutesBelow does what mutes does for a key that another one encloses.
func mutesBelow(parent, key string) bool {
	return mutes(key) || parent == "dubbo" && (key == "protocol" || key == "protocols") // the own address
}

// yaml reads block style YAML line by line: no more of it than tells keys, values and comments apart, so that texts
// which are nearly YAML (templates) are read too.
func (s *scanner) yaml(text string, first int) {
	base := len(s.path)
	var levels []level
	name := level{indent: -1}   // the last "name:" of a mapping, for "value:" beside it
	target := level{indent: -1} // the last "target_label:", for "replacement:" beside it
	l := lines{text: text}
	// A manifest of an object in the cluster says what other pods use, if anything; a description of an API, how the
	// workload is called.
	foreign := isManifest(text)
	for l.next() && !s.full() {
		line := l.line
		if strings.HasPrefix(line, "---") {
			levels, name, target = levels[:0], level{indent: -1}, level{indent: -1}
			foreign = isManifest(text[l.after:])
			continue
		}
		if foreign {
			continue
		}
		content := strings.TrimLeft(line, " \t")
		if content == "" || content[0] == '#' {
			continue
		}
		indent := len(line) - len(content)
		s.at(first + l.n)
		if strings.HasPrefix(content, "{{") || strings.HasPrefix(content, "<%") {
			content = strings.TrimLeft(blank(content), "\x00 ")
			if content == "" {
				continue
			}
		}
		dash := false
		for content == "-" || strings.HasPrefix(content, "- ") {
			for len(levels) > 0 && levels[len(levels)-1].indent > indent {
				levels = levels[:len(levels)-1]
			}
			dash = true
			name.indent, target.indent = -1, -1
			rest := strings.TrimLeft(content[1:], " ")
			indent += len(content) - len(rest)
			content = rest
		}
		if content == "" {
			continue
		}
		key, value, ok := yamlPair(content)
		if !ok {
			s.setPath(base, levels)
			parent := ""
			if len(levels) > 0 {
				parent = levels[len(levels)-1].key
				if levels[len(levels)-1].muted {
					continue
				}
			}
			switch {
			case opensCollection(content):
				s.flow(blank(l.collection(content)), classify(parent))
			case isBlockScalar(content):
				s.block(&l, parent, indent-1, first)
			case dash:
				s.value(classify(parent), uncomment(content, "#"))
			default:
				if classify(parent) > silent {
					s.free(uncomment(content, "#"))
				}
			}
			continue
		}
		for len(levels) > 0 && levels[len(levels)-1].indent >= indent {
			levels = levels[:len(levels)-1]
		}
		if indent < target.indent {
			target.indent = -1
		}
		muted := len(levels) > 0 && levels[len(levels)-1].muted
		value = yamlValue(value)
		if value == "" || isBlockScalar(value) || opensCollection(value) {
			parent := ""
			if len(levels) > 0 {
				parent = levels[len(levels)-1].key
			}
			if len(levels) < maxPath {
				levels = append(levels, level{indent, key, muted || mutesBelow(parent, key)})
			}
			if value == "" {
				continue
			}
		}
		if key == "name" {
			name = level{indent: indent, key: unquote(value)}
		}
		if isTargetLabel(key) {
			target = level{indent: indent, key: unquote(value)}
		}
		if value[0] != '|' && value[0] != '>' && !opensCollection(value) && hostless(value) {
			continue
		}
		if muted || mutes(key) {
			if isBlockScalar(value) {
				skipBlock(&l, indent)
			} else if opensCollection(value) {
				l.collection(value)
			}
			continue
		}
		c := classify(key)
		if key == "value" && name.indent == indent {
			c = classify(name.key)
		}
		if key == "replacement" {
			label := target.key
			if target.indent != indent {
				label = targetLabelAhead(l, indent)
			}
			if label != "" && label != addressLabel {
				continue
			}
		}
		s.setPath(base, levels)
		switch {
		case isBlockScalar(value):
			if c == silent {
				skipBlock(&l, indent)
			} else {
				s.block(&l, key, indent, first)
			}
		case opensCollection(value):
			whole := l.collection(value)
			if c > silent {
				s.flow(blank(whole), c)
			}
		case c == silent:
		default:
			if len(s.path) < maxPath {
				s.path = append(s.path, key)
			}
			s.value(c, value)
		}
	}
	s.path = s.path[:base]
}

// addressLabel is the label that Prometheus connects to; a replacement for another label is a text
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config).
const addressLabel = "__address__"

// isTargetLabel knows the key of the label that a relabelling sets, as Prometheus and its operator write it.
func isTargetLabel(key string) bool { return key == "target_label" || key == "targetLabel" }

// maxRelabel is how many bytes behind a replacement in brackets are searched for the target label.
const maxRelabel = 512

// targetLabelAhead returns the target label in the rest of the mapping at the given indent, empty where there is none.
func targetLabelAhead(l lines, indent int) string {
	for range 16 {
		if !l.next() {
			break
		}
		content := strings.TrimLeft(l.line, " ")
		if content == "" || content[0] == '#' {
			continue
		}
		if len(l.line)-len(content) != indent {
			if len(l.line)-len(content) < indent {
				break
			}
			continue
		}
		if key, value, ok := yamlPair(content); ok && isTargetLabel(key) {
			return yamlValue(value)
		}
	}
	return ""
}

// flowTargetLabel does the same for a map in brackets whose rest is v.
func flowTargetLabel(v string) string {
	v = v[:min(len(v), maxRelabel)]
	if i := strings.IndexByte(v, '}'); i >= 0 {
		v = v[:i]
	}
	for pair := range strings.SplitSeq(v, ",") {
		key, value, ok := strings.Cut(pair, ":")
		if ok && isTargetLabel(strings.Trim(key, " \t\r\n\"'")) {
			return strings.Trim(value, " \t\r\n\"'")
		}
	}
	return ""
}

func (s *scanner) setPath(base int, levels []level) {
	s.path = s.path[:base]
	for _, v := range levels {
		s.path = append(s.path, v.key)
	}
}

// block reads the block scalar that starts in the next line and belongs to a key at the given indent.
func (s *scanner) block(l *lines, key string, indent, first int) {
	line, start := l.n, l.after
	end := skipBlock(l, indent)
	if end <= start {
		return
	}
	saved := s.line
	s.at(first + line)
	s.document(key, l.text[start:end])
	if !s.inline {
		s.line = saved
	}
}

// skipBlock goes to the last line of a block scalar and returns where it ends.
func skipBlock(l *lines, indent int) int {
	end := l.after
	for l.after < len(l.text) {
		ahead := *l
		ahead.next()
		content := strings.TrimLeft(ahead.line, " ")
		if content != "" && len(ahead.line)-len(content) <= indent {
			break
		}
		*l = ahead
		end = l.after
	}
	return end
}

// isBlockScalar tells whether a value is the header of a block scalar (YAML 1.2.2 section 8.1.1).
func isBlockScalar(v string) bool {
	if v == "" || v[0] != '|' && v[0] != '>' {
		return false
	}
	for i := 1; i < len(v); i++ {
		switch c := v[i]; {
		case c == '+' || c == '-' || isDigit(c):
		case c == ' ':
			rest := strings.TrimLeft(v[i:], " ")
			return rest == "" || rest[0] == '#'
		default:
			return false
		}
	}
	return true
}

// yamlPair splits "key: value" and "key:".
func yamlPair(content string) (key, value string, ok bool) {
	if q := content[0]; q == '"' || q == '\'' {
		i := strings.IndexByte(content[1:], q)
		if i < 0 {
			return "", "", false
		}
		rest := content[i+2:]
		if rest == ":" || strings.HasPrefix(rest, ": ") {
			return content[1 : i+1], strings.TrimSpace(rest[1:]), true
		}
		return "", "", false
	}
	if content[0] == '{' || content[0] == '[' {
		return "", "", false
	}
	for off := 0; ; {
		i := strings.IndexByte(content[off:], ':')
		if i < 0 {
			return "", "", false
		}
		i += off
		if i+1 == len(content) || content[i+1] == ' ' || content[i+1] == '\t' {
			key = content[:i]
			if i == 0 || !isKey(key) {
				return "", "", false
			}
			return key, strings.TrimSpace(content[i+1:]), true
		}
		off = i + 1
	}
}

// isKey tells whether a plain scalar in front of a colon is more likely a key than a piece of a sentence.
func isKey(key string) bool {
	blanks := 0
	for i := range len(key) {
		switch key[i] {
		case ' ':
			if blanks++; blanks > 3 || i+1 < len(key) && key[i+1] == '#' {
				return false
			}
		case '"', '\'', '`', '(', ')', '{', '}', '<', '>', ',', ';':
			return false
		}
	}
	return true
}

// yamlValue takes comment, anchor, tag and quotes off a value.
func yamlValue(v string) string {
	for v != "" && (v[0] == '&' || v[0] == '!') {
		i := strings.IndexByte(v, ' ')
		if i < 0 {
			return ""
		}
		v = strings.TrimLeft(v[i:], " ")
	}
	if v == "" || v[0] == '#' || v[0] == '*' {
		return ""
	}
	if q := v[0]; q == '"' || q == '\'' {
		if i := strings.IndexByte(v[1:], q); i >= 0 {
			return v[1 : i+1]
		}
		return v[1:]
	}
	if opensCollection(v) {
		return v
	}
	return uncomment(v, "#")
}

// isManifest tells whether the YAML document at the start of text is a description of an API, or a Kubernetes object
// other than the configuration of a program, whose kinds end in Config or Configuration by convention.
func isManifest(text string) bool {
	version, kind := false, ""
	l := lines{text: text}
	for l.next() && !strings.HasPrefix(l.line, "---") {
		switch {
		case strings.HasPrefix(l.line, "apiVersion: "):
			version = true
		case strings.HasPrefix(l.line, "kind: "):
			kind = unquote(uncomment(l.line[len("kind: "):], "#"))
		case isDescription(l.line):
			return true
		}
	}
	return version && kind != "" && !strings.HasSuffix(kind, "Config") && !strings.HasSuffix(kind, "Configuration")
}

// descriptions are the keys whose value is the version of the language that an API is described in.
func descriptions() [3]string { return [...]string{"openapi", "swagger", "asyncapi"} }

// isDescription tells whether a line without indent makes the document a description of an API: "openapi: 3.1.0". A
// program may have settings under the same key, which are no version.
func isDescription(line string) bool {
	for _, d := range descriptions() {
		value, ok := strings.CutPrefix(line, d)
		if !ok || value == "" || value[0] != ':' {
			continue
		}
		value = strings.TrimLeft(value[1:], " \"'")
		return value != "" && isDigit(value[0])
	}
	return false
}

// frame is a list or map in brackets that encloses the current place.
type frame struct {
	object bool
	key    string
	// named is the value of the key "name" in the same object.
	named string
	// target is the value of the key "target_label" there.
	target string
	class  class
	muted  bool
	hasKey bool
	// pushed is true where key stands in the path of the scanner.
	pushed bool
}

// flow reads JSON, and lists and maps in brackets of YAML and TOML. Items of an outer list have the class c.
func (s *scanner) flow(v string, c class) {
	base := len(s.path)
	line := s.line
	defer func() { s.path = s.path[:base] }()
	if strings.HasPrefix(v, "{") && manifestJSON(v) {
		return
	}
	frames := make([]frame, 0, 8)
	top := frame{class: c}
	for i := 0; i < len(v) && !s.full(); {
		switch b := v[i]; {
		case b == '\n':
			line++
			s.at(line)
			i++
		case b <= ' ':
			i++
		case b == ',':
			s.endPair(&top)
			i++
		case b == ':' && top.object:
			i++
		case b == '{' || b == '[':
			if len(frames) >= maxPath {
				return
			}
			frames = append(frames, top)
			top = frame{object: b == '{', class: top.class, muted: top.muted || top.object && mutes(top.key)}
			if b == '{' {
				top.class = plain
			}
			i++
		case b == '}' || b == ']':
			s.endPair(&top)
			if len(frames) == 0 {
				return
			}
			top = frames[len(frames)-1]
			frames = frames[:len(frames)-1]
			i++
		case b == '#' || b == '/' && i+1 < len(v) && v[i+1] == '/':
			for i < len(v) && v[i] != '\n' {
				i++
			}
		case b == '/' && i+1 < len(v) && v[i+1] == '*':
			end := strings.Index(v[i:], "*/")
			if end < 0 {
				return
			}
			line += strings.Count(v[i:i+end], "\n")
			s.at(line)
			i += end + 2
		default:
			text, n := flowScalar(v[i:], top.object && !top.hasKey)
			if top.object && top.hasKey && top.key == "replacement" {
				label := top.target
				if label == "" {
					label = flowTargetLabel(v[i+n:])
				}
				if label != "" && label != addressLabel {
					top.class = silent
				}
			}
			if top.object && !top.hasKey {
				s.flowItem(&top, text)
			} else {
				at := line
				for part := range strings.SplitSeq(text, "\n") { // each host in the line where it stands
					s.at(at)
					s.flowItem(&top, part)
					at++
				}
			}
			if nl := strings.Count(v[i:i+n], "\n"); nl > 0 {
				line += nl
				s.at(line)
			}
			i += n
		}
	}
}

func (s *scanner) endPair(f *frame) {
	if f.pushed {
		s.path = s.path[:len(s.path)-1]
	}
	f.hasKey, f.pushed = false, false
	if f.object {
		f.class = plain
	}
}

// flowItem takes a key or a value.
func (s *scanner) flowItem(f *frame, text string) {
	if f.object && !f.hasKey {
		f.key, f.hasKey = text, true
		f.class = classify(text)
		if len(s.path) < maxPath+8 && strings.IndexByte(text, hole) < 0 {
			s.path = append(s.path, text)
			f.pushed = true
		}
		return
	}
	if f.muted || f.object && mutes(f.key) {
		return
	}
	c := f.class
	if f.object {
		switch f.key {
		case "target_label", "targetLabel":
			f.target = text
		case "name":
			f.named = text
		case "value":
			if f.named != "" {
				c = classify(f.named)
			}
		}
	}
	if c == silent {
		return
	}
	if strings.IndexByte(text, '\\') >= 0 {
		text = unescape(text)
		if strings.IndexByte(text, '\n') >= 0 {
			name := f.key
			saved := s.inline
			s.inline = true
			s.document(name, text)
			s.inline = saved
			return
		}
	}
	s.value(c, text)
}

// flowScalar returns the scalar at the start of v without its quotes, and how many bytes it takes. A key ends at its
// colon.
func flowScalar(v string, key bool) (text string, n int) {
	if q := v[0]; q == '"' || q == '\'' {
		for i := 1; i < len(v); i++ {
			switch {
			case v[i] == '\\' && q == '"':
				i++
			case v[i] == q:
				return v[1:i], i + 1
			}
		}
		return v[1:], len(v)
	}
	i := 0
	for i < len(v) {
		switch b := v[i]; {
		case b == ',' || b == '{' || b == '}' || b == '[' || b == ']' || b == '\n':
			return strings.TrimSpace(v[:i]), max(i, 1)
		case b == ':' && (key || i+1 < len(v) && v[i+1] == ' '):
			return strings.TrimSpace(v[:i]), max(i, 1)
		case b == '#' && i > 0 && v[i-1] == ' ':
			return strings.TrimSpace(v[:i]), i
		}
		i++
	}
	return strings.TrimSpace(v), len(v)
}

// unescape resolves the escapes of JSON that matter here. One of \u becomes a hole: what it spells is in no host name
// that somebody typed.
func unescape(v string) string {
	var b strings.Builder
	b.Grow(len(v))
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b.WriteByte(v[i])
			continue
		}
		i++
		switch v[i] {
		case 'n', 'r':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '"', '/', '\'':
			b.WriteByte(v[i])
		case 'u':
			b.WriteByte(hole)
			i = min(i+4, len(v)-1)
		default:
			b.WriteByte('\\')
			b.WriteByte(v[i])
		}
	}
	return b.String()
}

// manifestJSON tells whether a JSON text is a Kubernetes object, as isManifest does for YAML.
func manifestJSON(v string) bool {
	for _, d := range descriptions() {
		before, after, ok := strings.Cut(v, `"`+d+`"`)
		after = strings.TrimLeft(after, ": \t\r\n\"")
		if ok && after != "" && isDigit(after[0]) && strings.Count(before, "{")-strings.Count(before, "}") == 1 {
			return true
		}
	}
	head := v[:min(len(v), 1024)]
	if !strings.Contains(head, `"apiVersion"`) {
		return false
	}
	_, rest, ok := strings.Cut(head, `"kind"`)
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, ": \t\n\"")
	kind, _, _ := strings.Cut(rest, `"`)
	return kind != "" && !strings.HasSuffix(kind, "Config") && !strings.HasSuffix(kind, "Configuration")
}
