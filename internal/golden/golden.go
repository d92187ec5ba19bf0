// Package golden compares output with files that are kept beside a test, and writes them again under -update.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every test binary that imports this package gets the flag, and "make update" finds those packages by the import.
var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Update tells whether golden files are to be written. It is for tests whose golden files another library writes.
func Update() bool { return *update }

// Compare fails the test unless the file at path holds exactly got. With -update it writes the file, and its folder
// where that is missing, and compares nothing.
func Compare(t testing.TB, path string, got []byte) {
	t.Helper()
	compare(t, path, got, *update)
}

func compare(t testing.TB, path string, got []byte, write bool) {
	t.Helper()
	if write {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("writing golden file: %v", err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatalf("writing golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading golden file (run the test with -update to write it): %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if the change is meant, run the test with -update (-want +got):\n%s", path, diff)
	}
}
