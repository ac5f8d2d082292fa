package admin

import "time"

// bouncerSocketColumns are those of SHOW SOCKETS and SHOW ACTIVE_SOCKETS.
func bouncerSocketColumns() []Column {
	return concat(bouncerSockets(), integer("recv_pos", "pkt_pos", "pkt_remain", "send_pos", "send_remain", "pkt_avail", "send_avail"))
}

// bouncerAllSockets is SHOW CLIENTS and SHOW SERVERS in one, with what waits to be sent.
// PgBouncer's other positions are those in its buffers; a connection has none here, so they are 0.
func bouncerAllSockets(active bool) func(*request) ([][]*string, error) {
	return func(r *request) (rows [][]*string, _ error) {
		now := time.Now()
		add := func(pending int, line []*string) {
			if !active || pending > 0 {
				rows = append(rows, append(line, row(0, 0, 0, 0, pending, 0, 0)...))
			}
		}
		for _, c := range r.src.Clients.Clients() {
			state := "cl_active"
			if c.State == "waiting" {
				state = "cl_waiting"
			}
			add(c.Socket.Pending, c.bouncerLine(state, now))
		}
		for _, s := range r.src.Servers.Servers() {
			state := "sv_active"
			if s.State == "idle" {
				state = "sv_idle"
			}
			add(s.Socket.Pending, s.bouncerLine(state))
		}
		return rows, nil
	}
}

func bouncerClients(r *request) (rows [][]*string, _ error) {
	now := time.Now()
	for _, c := range r.src.Clients.Clients() {
		state := "active"
		if c.State == "idle" || c.State == "waiting" {
			state = c.State
		}
		rows = append(rows, c.bouncerLine(state, now))
	}
	return rows, nil
}

// bouncerLine is the client in the columns of bouncerSockets.
func (c *ClientRow) bouncerLine(state string, now time.Time) []*string {
	wait := time.Duration(0)
	if c.State == "waiting" {
		wait = now.Sub(c.LastRequest)
	}
	return row("C", c.User, c.Database, "none", state, c.Addr, c.Port, c.Socket.LocalAddr, c.Socket.LocalPort, bouncerTime(c.Connected),
		bouncerTime(c.LastRequest), int(wait/time.Second), int(wait%time.Second/time.Microsecond), 0, "", "", 0, c.Socket.TLS, c.ApplicationName,
		c.PreparedStatements, c.ID)
}

func bouncerServers(r *request) (rows [][]*string, _ error) {
	for _, s := range r.src.Servers.Servers() {
		state := "active"
		if s.State == "idle" {
			state = s.State
		}
		rows = append(rows, s.bouncerLine(state))
	}
	return rows, nil
}

// bouncerLine is the server in the columns of bouncerSockets.
func (s *ServerRow) bouncerLine(state string) []*string {
	return row("S", s.User, s.Database, "none", state, s.Addr, s.Port, s.Socket.LocalAddr, s.Socket.LocalPort, bouncerTime(s.Connected),
		bouncerTime(s.Request), 0, 0, bit(s.CloseNeeded), "", "", uint64(s.PID), s.Socket.TLS, s.ApplicationName, s.PreparedStatements, s.ClientID)
}
