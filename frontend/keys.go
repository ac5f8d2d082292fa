package frontend

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync"

	"github.com/pgebb/pgebb/cache"
)

// Layout of the process id in a BackendKeyData: the sign bit is 0, then peerBits
// for the pgebb that the client is connected to, so that several behind a load
// balancer can tell whose a cancel request is (0 as long as there is one), then
// the client's number.
const (
	peerBits   = 10
	numberBits = 31 - peerBits
)

// maxClients is how many clients can have a key at the same time.
const maxClients = 1<<numberBits - 1

// keys are the cancel keys of all clients. A secret is computed from the client's
// number and its id, which is never used twice, so none is stored. It is safe for
// concurrent use.
type keys struct {
	seed [32]byte // constant

	mu      sync.Mutex
	clients cache.Table[Client, *Client] // by process id; guarded by mu
	next    uint32                       // guarded by mu
}

func newKeys() *keys {
	k := &keys{}
	_, _ = rand.Read(k.seed[:]) // never fails
	return k
}

// add gives a client its process id; false if there are too many clients.
func (k *keys) add(c *Client) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clients.Len() >= maxClients {
		return false
	}
	for {
		k.next = k.next%maxClients + 1
		if k.get(k.next) == nil {
			break
		}
	}
	c.key = k.next
	k.clients.Insert(c)
	return true
}

// get is the client with a process id, nil if there is none; mu must be held.
func (k *keys) get(pid uint32) *Client {
	c := k.clients.First(uint64(pid))
	for c != nil && c.key != pid {
		c = c.keyed
	}
	return c
}

// Link implements [cache.Element].
func (c *Client) Link() **Client { return &c.keyed }

// Hash implements [cache.Element]: numbers that are given in turn need none.
func (c *Client) Hash() uint64 { return uint64(c.key) }

// remove forgets a client.
func (k *keys) remove(c *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients.Remove(c)
}

// secret is the secret part of a client's key: 4 bytes in protocol 3.0, where
// nothing else fits, and 32 from 3.2 on.
func (k *keys) secret(pid uint32, id uint64, minor uint8) []byte {
	mac := hmac.New(sha256.New, k.seed[:])
	var b [12]byte
	binary.BigEndian.PutUint32(b[:], pid)
	binary.BigEndian.PutUint64(b[4:], id)
	mac.Write(b[:])
	secret := mac.Sum(nil)
	if minor < 2 {
		return secret[:4]
	}
	return secret
}

// find returns the client that a key belongs to, nil if it is nobody's.
func (k *keys) find(pid uint32, secret []byte) *Client {
	k.mu.Lock()
	c := k.get(pid)
	k.mu.Unlock()
	if c == nil || subtle.ConstantTimeCompare(secret, k.secret(pid, c.id, c.minor)) == 0 {
		return nil
	}
	return c
}

// count is the number of clients.
func (k *keys) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clients.Len()
}

// bytes is what the table of clients takes.
func (k *keys) bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clients.Bytes()
}

// cancel cancels what the client with a key is doing, and returns when the request
// has been dealt with. Without such a client, or when it is doing nothing, nothing
// happens.
func (f *Frontend) cancel(pid uint32, secret []byte) {
	c := f.keys.find(pid, secret)
	if c == nil {
		if f.console != nil {
			f.console.Cancel(pid, secret)
		}
		return
	}
	l := c.Loop()
	if l == nil {
		return
	}
	done := make(chan struct{})
	l.Post(func() {
		if c.Loop() == l {
			c.cancelled(func() { close(done) })
			return
		}
		close(done)
	})
	<-done
}

// cancelled acts on a cancel request for the client. done is called when the
// server, if one is concerned, has been told.
func (c *Client) cancelled(done func()) {
	switch {
	case c.state == stateActive && c.server.Working():
		c.server.Cancel(done)
		return
	case c.state == stateWaiting && c.start == nil && c.held != nil && !c.begun && c.pool.Leave(&c.waiter):
		c.rejectHeld(errCancelled())
	}
	done()
}
