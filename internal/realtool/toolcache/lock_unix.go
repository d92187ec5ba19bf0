//go:build unix

package toolcache

import (
	"os"
	"syscall"
)

// lock waits until no other process holds the lock file, and takes it. The kernel gives it back when the process ends,
// however it ends; the file itself stays, since removing it would let two processes hold locks of the same name.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR { //nolint:errorlint // a bare errno
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
