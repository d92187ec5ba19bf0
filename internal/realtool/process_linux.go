package realtool

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when we end, also when we end by a panic, a test time-out or SIGKILL. The
// process group of its own keeps an interrupt typed at the terminal away from it, so that the tests still have their
// servers while they clean up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
