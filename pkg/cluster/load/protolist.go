package load

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protoMagic starts every Kubernetes object in protobuf
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go).
var protoMagic = [4]byte{'k', '8', 's', 0}

// Field numbers of the messages around the items of a list, and the wire types of their fields
// (k8s.io/apimachinery/pkg/runtime/generated.proto, message Unknown; every …List of k8s.io/api).
const (
	unknownRaw   = 2
	listMetadata = 1
	listItems    = 2

	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// protoReader reads the fields of one protobuf message from a stream.
type protoReader struct {
	r *bufio.Reader
	// left is how many bytes of the message are left; negative when it ends with the stream.
	left int64
}

// next returns the number of the next field and the length of its value in bytes; for other wire types than bytes it
// takes the value and returns a length of -1. The error is io.EOF after the last field.
func (p *protoReader) next() (field int, length int64, err error) {
	for {
		if p.left == 0 {
			return 0, 0, io.EOF
		}
		if p.left < 0 {
			if _, err := p.r.Peek(1); err != nil {
				return 0, 0, err
			}
		}
		tag, err := p.varint()
		if err != nil {
			return 0, 0, err
		}
		switch tag & 7 {
		case wireVarint:
			_, err = p.varint()
		case wireFixed8:
			err = p.discard(8)
		case wireFixed4:
			err = p.discard(4)
		case wireBytes:
			n, err := p.varint()
			if err != nil {
				return 0, 0, err
			}
			if n > 1<<40 || (p.left >= 0 && int64(n) > p.left) {
				return 0, 0, fmt.Errorf("invalid protobuf: a field of %d bytes is longer than its message", n)
			}
			return int(tag >> 3), int64(n), nil
		default:
			return 0, 0, fmt.Errorf("invalid protobuf: wire type %d", tag&7)
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// ReadByte makes the reader an io.ByteReader that counts.
func (p *protoReader) ReadByte() (byte, error) {
	if p.left == 0 {
		return 0, errCutOff
	}
	c, err := p.r.ReadByte()
	if err != nil {
		return 0, cutOff(err)
	}
	if p.left > 0 {
		p.left--
	}
	return c, nil
}

func (p *protoReader) varint() (uint64, error) { return binary.ReadUvarint(p) }

func (p *protoReader) discard(n int64) error {
	if p.left >= 0 {
		if n > p.left {
			return errCutOff
		}
		p.left -= n
	}
	for n > 0 {
		d, err := p.r.Discard(int(min(n, 1<<30)))
		if err != nil {
			return cutOff(err)
		}
		n -= int64(d)
	}
	return nil
}

// bytes reads n bytes into buf, which it may replace.
func (p *protoReader) bytes(buf []byte, n, limit int64) ([]byte, error) {
	if n > limit {
		return buf, fmt.Errorf("%w: one object is larger than %d bytes", ErrLimit, limit)
	}
	if p.left >= 0 {
		p.left -= n
	}
	// Room is made as bytes arrive: a length that lies costs nothing.
	buf = buf[:0]
	for int64(len(buf)) < n {
		step := int(min(n-int64(len(buf)), 1<<20))
		at := len(buf)
		buf = slices.Grow(buf, step)[:at+step]
		if _, err := io.ReadFull(p.r, buf[at:]); err != nil {
			return buf, cutOff(err)
		}
	}
	return buf, nil
}

// protoList reads a list in protobuf from r, calls f with every item, and returns the metadata of the list. The bytes are
// valid until f returns. What stands in memory is one item, never the list.
func protoList(r *bufio.Reader, limit int64, f func(raw []byte) error) (metav1.ListMeta, error) {
	var meta metav1.ListMeta
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return meta, cutOff(err)
	}
	if magic != protoMagic {
		return meta, errors.New("the answer is no Kubernetes object in protobuf")
	}
	complete := false
	envelope := &protoReader{r: r, left: -1}
	for {
		field, n, err := envelope.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return meta, err
		}
		if field != unknownRaw {
			if err := envelope.discard(n); err != nil {
				return meta, err
			}
			continue
		}
		if meta, err = protoItems(&protoReader{r: r, left: n}, limit, f); err != nil {
			return meta, err
		}
		complete = true
	}
	if !complete {
		return meta, errCutOff
	}
	return meta, nil
}

func protoItems(list *protoReader, limit int64, f func(raw []byte) error) (meta metav1.ListMeta, err error) {
	var buf []byte
	for {
		field, n, err := list.next()
		if errors.Is(err, io.EOF) {
			return meta, nil
		}
		if err != nil {
			return meta, err
		}
		if field != listMetadata && field != listItems {
			if err := list.discard(n); err != nil {
				return meta, err
			}
			continue
		}
		if buf, err = list.bytes(buf, n, limit); err != nil {
			return meta, err
		}
		if field == listMetadata {
			err = meta.Unmarshal(buf)
		} else {
			err = f(buf)
		}
		if err != nil {
			return meta, err
		}
	}
}
