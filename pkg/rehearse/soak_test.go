//go:build soak

package rehearse

import "testing"

// TestSoakRehearsals is the whole form of TestRepeat: go test -race -tags soak.
func TestSoakRehearsals(t *testing.T) { repeat(t, 200) }
