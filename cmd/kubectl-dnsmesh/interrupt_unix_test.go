//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Reading a pipe that nobody writes to cannot be called off; another signal ends the process all the same.
func TestInterruptTwice(t *testing.T) {
	cmd := pluginCommand(t, "doctor", "-f", "pipe")
	pipe := filepath.Join(cmd.Dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("making a pipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait() //nolint:errcheck // that it ends is what counts
	}()
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
	})
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var writer *os.File
	for {
		select {
		case <-ended:
			if writer == nil {
				t.Fatal("it ended before it read")
			}
			return
		case <-deadline:
			t.Fatal("it did not end")
		case <-tick.C:
		}
		if writer == nil {
			// Without a reader this fails with ENXIO; held open, it keeps the reader waiting.
			f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				continue
			}
			t.Cleanup(func() { f.Close() })
			writer = f
		}
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
	}
}
