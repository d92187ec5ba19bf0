//go:build !linux

package realtool

import "os/exec"

// dieWithParent does nothing: only Linux has a parent-death signal. Elsewhere a test binary that is killed leaves its
// servers behind.
func dieWithParent(*exec.Cmd) {}
