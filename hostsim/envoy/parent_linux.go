package envoy

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent makes the kernel kill the process when the calling thread ends, and pins the
// goroutine to that thread.
func dieWithParent(cmd *exec.Cmd) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
