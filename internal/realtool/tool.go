// Package realtool gives tests and benchmarks real programs to run against: pinned tools by name, and a control plane
// of a real etcd and a real kube-apiserver on loopback ports.
//
// Where a program has not been built, the test is skipped with the command that builds it; with
// DNSMESH_REQUIRE_TOOLS=1, as in CI, it fails instead.
package realtool

import (
	"errors"
	"os"
	"testing"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool/toolcache"
)

// Tool returns the path of a pinned tool, such as kubectl. It skips or fails the test where the tool is not built.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := toolcache.Lookup(name)
	if err != nil {
		Missing(t, err)
	}
	return path
}

// Missing ends a test that lacks something real: it skips the test if err is a *toolcache.MissingError and nothing
// requires the tools, and fails it in every other case. It is exported for tests that look for programs of their own,
// such as a name server from the system's packages; those wrap their error in Optional.
func Missing(t testing.TB, err error) {
	t.Helper()
	if skippable(err, os.Getenv("DNSMESH_REQUIRE_TOOLS")) {
		t.Skip(err)
	}
	t.Fatal(err)
}

// Optional marks err as the absence of something that a laptop may lack and CI may not.
func Optional(err error) error { return &optionalError{err} }

type optionalError struct{ err error }

func (e *optionalError) Error() string { return e.err.Error() }
func (e *optionalError) Unwrap() error { return e.err }

// skippable reports whether err is the absence of a tool and the value of DNSMESH_REQUIRE_TOOLS does not ask for it.
func skippable(err error, require string) bool {
	if require == "1" {
		return false
	}
	var missing *toolcache.MissingError
	var optional *optionalError
	return errors.As(err, &missing) || errors.As(err, &optional)
}
