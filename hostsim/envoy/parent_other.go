//go:build !linux

package envoy

import "os/exec"

// dieWithParent does nothing where the kernel has no such signal.
func dieWithParent(*exec.Cmd) {}
