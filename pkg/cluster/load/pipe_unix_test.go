//go:build unix

package load

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A named pipe in a directory is passed over: opening it would wait for a writer.
func TestDirectoryWithPipe(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.yaml": "kind: Namespace\nmetadata: {name: a}\n"})
	if err := syscall.Mkfifo(filepath.Join(dir, "b.yaml"), 0o600); err != nil {
		t.Skipf("making a pipe: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := Files(ctx, []string{dir}, nil, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		if len(r.Snapshot.Namespaces) != 1 || r.Ignored != 1 {
			t.Errorf("%d namespaces and %d files ignored, want 1 and 1", len(r.Snapshot.Namespaces), r.Ignored)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("reading waits for somebody to write to the pipe")
	}
}
