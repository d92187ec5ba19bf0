package corefile

import (
	"os"
	"path/filepath"
	"testing"
)

// fixtures returns the Corefiles of testdata by file name.
func fixtures(tb testing.TB) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/corefile/*")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no fixtures: %v", err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}
	return files
}
