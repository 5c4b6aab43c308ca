//go:build !windows

package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// claimStdout takes standard output for the protocol: the returned file is what
// fd 1 was, and fd 1 becomes a copy of standard error, so that a stray print,
// also one of a C library, cannot break the framing.
func claimStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate standard output: %w", err)
	}
	if err := unix.Dup2(int(os.Stderr.Fd()), int(os.Stdout.Fd())); err != nil {
		return nil, fmt.Errorf("redirect standard output: %w", err)
	}
	return os.NewFile(uintptr(fd), "protocol"), nil
}
