package main

import (
	"fmt"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// What the service manager is told, see sd_notify(3).
const (
	ready    = daemon.SdNotifyReady
	stopping = daemon.SdNotifyStopping
)

// notify tells the service manager, if there is one, what pgebb is doing.
func (p *pooler) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("the service manager cannot be told", "state", state, "error", err)
	}
}

// reloadingState is for Type=notify-reload, which wants to know when.
func reloadingState() string {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}
