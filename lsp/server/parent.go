package server

import (
	"errors"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// parentPeriod is how often the editor's process is looked at. Everything has to
// be gone 2 s after it.
const parentPeriod = 500 * time.Millisecond

// watchParent ends the connection when the process that started us is gone
// (LSP 3.18, InitializeParams.processId). One that cannot be seen from the start
// lives on another machine or in another container; then only the end of the
// input counts.
func (s *Server) watchParent(pid int) {
	if pid <= 0 {
		return
	}
	p, err := os.FindProcess(pid)
	if err != nil || !alive(p) {
		s.log.Info("the editor's process is not visible", zap.Int("pid", pid))
		return
	}
	s.spawn(func() {
		tick := time.NewTicker(parentPeriod)
		defer tick.Stop()
		defer func() {
			if err := p.Release(); err != nil {
				s.log.Debug("releasing the editor's process", zap.Error(err))
			}
		}()
		for {
			select {
			case <-tick.C:
				if !alive(p) {
					s.end(errParentGone)
					return
				}
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// alive sends no signal, it only asks whether one could be delivered.
func alive(p *os.Process) bool {
	err := p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
