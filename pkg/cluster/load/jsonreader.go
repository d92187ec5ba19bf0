package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonReader cuts JSON values out of a stream without decoding them, so that of a list of any length only one item is in
// memory. It checks no more of the grammar than it needs to find where a value ends; decoding the value does the rest.
type jsonReader struct {
	r *bufio.Reader
	// line is the line of the next byte, from 1.
	line int
	// indent is how many blanks the last call of space skipped after the last line feed.
	indent int
	// limit bounds the length of one value, in bytes.
	limit int64
}

// space skips white space and returns the next byte without taking it. The error is io.EOF at the end of the input.
func (j *jsonReader) space() (byte, error) {
	j.indent = 0
	for {
		c, err := j.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			j.line++
			j.indent = 0
		case ' ', '\t', '\r':
			j.indent++
		default:
			return c, j.r.UnreadByte()
		}
	}
}

// take skips white space and takes the next byte, which must be one of those wanted.
func (j *jsonReader) take(wanted string) (byte, error) {
	c, err := j.space()
	if err != nil {
		return 0, cutOff(err)
	}
	if bytes.IndexByte([]byte(wanted), c) < 0 {
		return 0, fmt.Errorf("invalid JSON: found %q where one of %q must stand", c, wanted)
	}
	_, err = j.r.ReadByte()
	return c, err
}

// errCutOff is what an input that ends in the middle of a value gives.
var errCutOff = errors.New("the input ends in the middle of a value: it is cut off")

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}

// value appends the next value, without white space around it, to dst.
func (j *jsonReader) value(dst []byte) ([]byte, error) {
	first, err := j.space()
	if err != nil {
		return dst, cutOff(err)
	}
	start := len(dst)
	scalar := first != '{' && first != '[' && first != '"'
	depth, quoted, escaped := 0, false, false
	for {
		if _, err := j.r.Peek(1); err != nil {
			if scalar && errors.Is(err, io.EOF) {
				return dst, nil
			}
			return dst, cutOff(err)
		}
		chunk, err := j.r.Peek(j.r.Buffered())
		if err != nil {
			return dst, err
		}
		for i, c := range chunk {
			if c == '\n' {
				j.line++
			}
			end := false
			switch {
			case escaped:
				escaped = false
			case quoted:
				if c == '\\' {
					escaped = true
				} else if c == '"' {
					quoted = false
					end = depth == 0
				}
			case c == '"':
				quoted = true
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				if depth--; depth < 0 {
					return j.finish(dst, chunk[:i], start)
				}
				end = depth == 0
			case scalar && (c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'):
				if c == '\n' {
					j.line--
				}
				return j.finish(dst, chunk[:i], start)
			}
			if end {
				return j.finish(dst, chunk[:i+1], start)
			}
		}
		if dst, err = j.finish(dst, chunk, start); err != nil {
			return dst, err
		}
	}
}

// finish takes chunk, which the reader holds, and appends it to dst.
func (j *jsonReader) finish(dst, chunk []byte, start int) ([]byte, error) {
	if int64(len(dst)-start+len(chunk)) > j.limit {
		return dst, fmt.Errorf("%w: one object is larger than %d bytes", ErrLimit, j.limit)
	}
	dst = append(dst, chunk...)
	_, err := j.r.Discard(len(chunk))
	return dst, err
}

// maxKey bounds the name of a field of an object that is read field by field, in bytes.
const maxKey = 4 << 10

// fields calls f for every field of the object that comes next. f has to take the value. It stops at the first error.
func (j *jsonReader) fields(f func(key string) error) error {
	if _, err := j.take("{"); err != nil {
		return err
	}
	c, err := j.space()
	if err != nil {
		return cutOff(err)
	}
	if c == '}' {
		_, err := j.r.ReadByte()
		return err
	}
	limit := j.limit
	for {
		if c, err := j.space(); err != nil || c != '"' {
			if err != nil {
				return cutOff(err)
			}
			return fmt.Errorf("invalid JSON: found %q where the name of a field must stand", c)
		}
		j.limit = maxKey
		raw, err := j.value(nil)
		j.limit = limit
		if err != nil {
			return err
		}
		var key string
		if err := json.Unmarshal(raw, &key); err != nil {
			return fmt.Errorf("invalid JSON: %w", err)
		}
		if _, err := j.take(":"); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		if c, err = j.take(",}"); err != nil || c == '}' {
			return err
		}
	}
}

// items calls f with every value of the array that comes next, and the line where the value starts. The bytes are valid
// until f returns.
func (j *jsonReader) items(f func(raw []byte, line int) error) error {
	if _, err := j.take("["); err != nil {
		return err
	}
	var buf []byte
	for first := true; ; first = false {
		c, err := j.space()
		if err != nil {
			return cutOff(err)
		}
		if first && c == ']' {
			_, err := j.r.ReadByte()
			return err
		}
		line := j.line
		if buf, err = j.value(buf[:0]); err != nil {
			return err
		}
		if err := f(buf, line); err != nil {
			return err
		}
		if cap(buf) > 1<<20 {
			buf = nil
		}
		if c, err = j.take(",]"); err != nil || c == ']' {
			return err
		}
	}
}

// readJSON returns a reader of one JSON text that is in memory.
func readJSON(raw []byte, line int) *jsonReader {
	return &jsonReader{r: bufio.NewReaderSize(bytes.NewReader(raw), 512), line: line, limit: int64(len(raw)) + 1}
}

// typeOf reads apiVersion and kind of an object without decoding the rest of it.
func typeOf(raw []byte) (apiVersion, kind string, err error) {
	const found = errStop("both found")
	var skip []byte
	j := readJSON(raw, 1)
	err = j.fields(func(key string) error {
		if key == "apiVersion" || key == "kind" {
			v, err := j.value(nil)
			if err != nil {
				return err
			}
			var s string
			if json.Unmarshal(v, &s) != nil {
				return fmt.Errorf("%s is no text", key)
			}
			if key == "kind" {
				kind = s
			} else {
				apiVersion = s
			}
			if kind != "" && apiVersion != "" {
				return found
			}
			return nil
		}
		skip, err = j.value(skip[:0])
		return err
	})
	if errors.Is(err, found) {
		err = nil
	}
	return apiVersion, kind, err
}

// errStop ends a walk early; it never reaches a caller.
type errStop string

func (e errStop) Error() string { return string(e) }
