package golden

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// recorder is a test that notes whether it failed. FailNow ends the goroutine, as that of testing.T does.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(_ string, _ ...any) { r.failed = true }
func (r *recorder) Fatalf(_ string, _ ...any) { r.failed = true; runtime.Goexit() }

func failed(path, got string, write bool) bool {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		compare(r, path, []byte(got), write)
	}()
	<-done
	return r.failed
}

func TestCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file.golden")
	if !failed(path, "text\n", false) {
		t.Error("a missing file is taken for equal")
	}
	if failed(path, "text\n", true) {
		t.Error("writing the file fails")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "text\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if failed(path, "text\n", false) {
		t.Error("equal bytes are taken for different")
	}
	if !failed(path, "text", false) {
		t.Error("different bytes are taken for equal")
	}
	if !failed(filepath.Join(path, "below"), "text\n", true) {
		t.Error("a file that cannot be written goes unnoticed")
	}
}
