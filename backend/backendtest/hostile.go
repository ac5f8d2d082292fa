package backendtest

import "net"

// Answer makes the fake deal with what comes after a login as f says, which may write
// whatever it likes and reports whether the connection goes on; nil for the usual.
func (f *Fake) Answer(answer func(conn net.Conn, typ byte) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scripted = answer
}

// Greet makes the fake say these bytes in place of all that it says during a login, and
// close the connection unless stay; nil for the usual.
func (f *Fake) Greet(greeting []byte, stay bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.greeting, f.stay = greeting, stay
}

// Say sends bytes on all connections that are open.
func (f *Fake) Say(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_, _ = conn.Write(p) // to one that is closed meanwhile there is nothing to say
	}
}
