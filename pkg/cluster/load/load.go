// Package load fills a cluster.Snapshot from a live cluster or from files, and writes snapshots to files.
//
// Both ways feed one pipeline, the builder: an object is decoded, reduced to what checks read (see the Reduce functions)
// and added. A snapshot that was written and is read again therefore gives the findings that the cluster gave.
//
// A Secret is never read: live it is never asked for, in files its content is dropped before it is decoded.
package load

import (
	"errors"
	"fmt"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// Options says how to read a cluster. The zero value reads everything with the default limits.
type Options struct {
	// Name is what the snapshot is called: the kubeconfig context. For files, empty stands for their paths.
	Name string
	// Namespace is the namespace to which live lists fall back where listing the whole cluster is forbidden, and the
	// namespace of manifests that name none ("default" if empty). It does not otherwise limit what is read.
	Namespace string
	// Progress is called with what was read so far, from several goroutines but never from two at once. It may be nil.
	Progress func(Progress)
	// PageSize is the number of objects that one request of a live list asks for; 0 is DefaultPageSize.
	PageSize int
	// Limits bound what files may make us read; zero fields stand for the defaults.
	Limits Limits
}

// Progress tells how far one list is.
type Progress struct {
	Resource cluster.Resource
	// Count is how many objects of the resource were read so far.
	Count int
	// Done tells that the list is complete.
	Done bool
}

// Limits bound the reading of files, in bytes unless said otherwise.
type Limits struct {
	// Object bounds one object, or one YAML document that is not a list.
	Object int64
	// Total bounds everything that one call reads, after decompression.
	Total int64
	// YAML bounds the YAML among it, which takes ten times as long to read as JSON.
	YAML int64
	// Objects bounds the number of Kubernetes objects.
	Objects int
	// Files bounds the number of files that one call looks at.
	Files int
	// ConfigMaps bounds the data of ConfigMaps that are held until it is known whether a pod uses them.
	ConfigMaps int64
}

// Result is a snapshot and what is worth telling about how it was read.
type Result struct {
	Snapshot *cluster.Snapshot
	// Skipped counts the objects that were not read, by kind, Secrets among them.
	Skipped map[string]int
	// Ignored counts the files in directories that hold nothing that is read, such as a README.
	Ignored int
	// Notes are clauses for the user, in a stable order: objects that came twice, inputs read for one namespace only.
	Notes []string
}

// ErrUnauthorized is what errors match when the API server does not accept the credentials (401), as when a token has
// expired.
var ErrUnauthorized = errors.New("the API server does not accept the credentials")

// ErrUnreachable is what errors match when the API server does not answer at all.
var ErrUnreachable = errors.New("the API server cannot be reached")

// ErrNothing is what errors match when files hold nothing that is read.
var ErrNothing = errors.New("nothing that is read")

// ErrForeign is what errors match when a file holds values that are no Kubernetes objects.
var ErrForeign = errors.New("this is no Kubernetes object: it has no kind; nor is it a Corefile or a resolv.conf")

// ErrLimit is what errors match when an input is larger than a limit allows.
var ErrLimit = errors.New("input exceeds a limit")

// FileError is a fault of one file. Errors of Files join one of them for each broken place.
type FileError struct {
	// Source is the path as the user gave it, with the path inside it for a directory; "-" is standard input.
	Source string
	// Line counts from 1; 0 is unknown.
	Line int
	Err  error
}

// Error returns source:line: text.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.Source, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Source, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }
