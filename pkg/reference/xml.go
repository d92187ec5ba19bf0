package reference

import "strings"

// xml reads attributes and the text of elements. The value of an attribute or element "value" stands under the name that
// "name" gives beside it: <property name="url" value="…"/>, <name>fs.defaultFS</name><value>…</value>.
func (s *scanner) xml(text string, first int) {
	base := len(s.path)
	line, named := first+1, ""
	element := ""
	for i := 0; i < len(text) && !s.full(); {
		rest := text[i:]
		if rest[0] != '<' {
			end := strings.IndexByte(rest, '<')
			if end < 0 {
				end = len(rest)
			}
			content := rest[:end]
			if trimmed := strings.TrimSpace(content); trimmed != "" && element != "" {
				lead := strings.Index(content, trimmed)
				s.at(line + strings.Count(content[:lead], "\n"))
				key := element
				switch element {
				case "name", "key":
					named = trimmed
				case "value":
					if named != "" {
						key = named
					}
				}
				s.path = append(s.path[:base], key)
				if strings.IndexByte(trimmed, '\n') >= 0 {
					s.textLines(classify(key), trimmed)
				} else {
					s.value(classify(key), trimmed)
				}
			}
			line += strings.Count(content, "\n")
			i += end
			continue
		}
		end := markupEnd(rest)
		tag := rest[:end]
		switch {
		case strings.HasPrefix(tag, "<![CDATA["):
			s.at(line)
			if element != "" {
				s.path = append(s.path[:base], element)
				s.textLines(classify(element), strings.TrimSuffix(tag[len("<![CDATA["):], "]]>"))
			}
		case strings.HasPrefix(tag, "<!") || strings.HasPrefix(tag, "<?"):
		case strings.HasPrefix(tag, "</"):
			element = ""
		default:
			element = s.tag(tag, line, base, &named)
		}
		line += strings.Count(tag, "\n")
		i += end
	}
	s.path = s.path[:base]
}

// textLines reads a text of several lines that stands under one key.
func (s *scanner) textLines(c class, text string) {
	first := s.line
	l := lines{text: text}
	for l.next() && !s.full() {
		s.at(first + l.n - 1)
		if c > silent {
			s.free(l.line)
		}
	}
}

// markupEnd returns the length of the tag, comment, CDATA section or declaration at the start of v.
func markupEnd(v string) int {
	for _, m := range [][2]string{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}} {
		if strings.HasPrefix(v, m[0]) {
			if i := strings.Index(v, m[1]); i >= 0 {
				return i + len(m[1])
			}
			return len(v)
		}
	}
	var quote byte
	for i := 1; i < len(v); i++ {
		switch c := v[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return len(v)
}

// tag reads the attributes of a start tag and returns its name, empty where the element closes itself.
func (s *scanner) tag(tag string, line, base int, named *string) string {
	body := strings.TrimSuffix(strings.TrimPrefix(tag, "<"), ">")
	closed := strings.HasSuffix(body, "/")
	body = strings.TrimSuffix(body, "/")
	n := strings.IndexAny(body, " \t\r\n")
	if n < 0 {
		if closed {
			return ""
		}
		return localName(body)
	}
	element := localName(body[:n])
	attributeName := ""
	for i := n; i < len(body); {
		eq := strings.IndexByte(body[i:], '=')
		if eq < 0 {
			break
		}
		key := strings.TrimSpace(body[i : i+eq])
		line += strings.Count(body[i:i+eq], "\n")
		i += eq + 1
		for i < len(body) && (body[i] == ' ' || body[i] == '\n') {
			i++
		}
		if i >= len(body) || body[i] != '"' && body[i] != '\'' {
			break
		}
		end := strings.IndexByte(body[i+1:], body[i])
		if end < 0 {
			break
		}
		value := body[i+1 : i+1+end]
		i += end + 2
		switch {
		case strings.HasPrefix(key, "xmlns"), strings.HasPrefix(key, "xsi:"), strings.HasSuffix(key, "chemaLocation"):
		default:
			switch key {
			case "name", "key", "id":
				if key != "id" {
					attributeName = value
				}
			case "value":
				if attributeName != "" {
					key = attributeName
				}
			}
			s.at(line)
			s.path = append(s.path[:base], element, key)
			if strings.IndexByte(value, '\n') < 0 {
				s.value(classify(key), value)
			}
		}
		line += strings.Count(value, "\n")
	}
	if attributeName != "" && element != "" {
		*named = attributeName
		if !closed && (element == "property" || element == "Set" || element == "entry" || element == "Property" || element == "str") {
			return attributeName // <property name="url">…</property>
		}
	}
	if closed {
		return ""
	}
	return element
}

func localName(name string) string {
	return name[strings.LastIndexByte(name, ':')+1:]
}
