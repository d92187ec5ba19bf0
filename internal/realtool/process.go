package realtool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// process is a server that we started.
type process struct {
	name string
	log  string // path of the file that holds what it printed
	pid  int
	// done is closed when the process has ended and has been waited for; err then says how it ended.
	done chan struct{}
	err  error
	proc *os.Process
}

// startProcess starts a program with its output in the file log.
//
// The goroutine that starts it stays on its thread until the program has ended: the kernel's parent-death signal (see
// dieWithParent) is sent when the *thread* that started the child ends, and the Go runtime may end threads that are idle.
func startProcess(name, log, path string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	dieWithParent(cmd)
	p := &process{name: name, log: log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer out.Close()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.proc, p.pid = cmd.Process, cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// stop kills the process and waits until it is gone. The servers' data is thrown away with them, so that there is nothing
// that a gentle end would save; an API server waits for its open watches before one. It may be called twice.
func (p *process) stop() error {
	if err := p.proc.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// ended returns an error with the end of the log if the process has ended by itself, and nil while it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
		state := "with status 0"
		if p.err != nil {
			state = p.err.Error()
		}
		return fmt.Errorf("%s ended: %s:\n%s", p.name, state, tail(p.log))
	default:
		return nil
	}
}

// tail returns the last lines of a file, at most 4 KiB, for the output of a failed test.
func tail(path string) string {
	const most = 4 << 10
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(0, info.Size()-most)
	text := make([]byte, info.Size()-from)
	n, err := f.ReadAt(text, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	s := string(text[:n])
	if from > 0 {
		_, s, _ = strings.Cut(s, "\n")
	}
	return s
}
