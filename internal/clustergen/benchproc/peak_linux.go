package main

import (
	"os"
	"syscall"
)

// peak returns the largest resident set of a process that has ended, in bytes (getrusage(2) counts KiB on Linux).
func peak(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
