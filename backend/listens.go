package backend

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file finds out what a client listens to, where its next transaction is on another
// server. Its LISTEN and UNLISTEN are carried out as they are, so that the rules of
// transactions and savepoints are those of Postgres, and at the end of the transaction
// Postgres is asked for the channels of the session. The ReadyForQuery is held meanwhile: the
// client is told that it listens when it does.
//
// A session in which only LISTEN was run has a part of what the client listens to. For an
// UNLISTEN to mean anything it must have all: the session is made equal to the client ahead of
// it, in the same transaction, where that is noted in the parameter equalNote.

// equalNote is the run-time parameter that says that the session listens to all that its
// client does. It comes and goes with the transaction, as LISTEN does.
const equalNote = "pgebb.listening"

// MayListen notes that the server is about to be sent what may change what its client listens
// to.
func (s *Server) MayListen() {
	s.mayListen = true
	s.touched.flags |= verdict.Listen
}

const encodingParameter = "client_encoding"

// Encoding is the client_encoding of the session.
func (s *Server) Encoding() string {
	if v, ok := s.params.Get(encodingParameter); ok {
		return v
	}
	v, _ := s.Greeting.base.Get(encodingParameter)
	return v
}

// Following reports whether the client must not send more before it is answered, because what
// it has sent may change what it listens to.
func (s *Server) Following() bool {
	return s.mayListen && s.BetweenBatches() && s.Working()
}

// HoldsReady reports whether the ReadyForQuery of a transaction that may have changed what the
// client listens to was kept from it. The client is to be given it after [Server.Followed].
func (s *Server) HoldsReady() bool { return s.readyHeld }

// Followed says that what the client listens to is known.
func (s *Server) Followed() { s.mayListen, s.readyHeld = false, false }

// holdReady decides that for a ReadyForQuery that was just taken in.
func (s *Server) holdReady() bool {
	s.readyHeld = s.mayListen && s.phase == phaseHeld && s.doubtful == 0 && s.status == wire.Idle && s.BetweenBatches() &&
		s.ops.len() == 0 && !s.lost && !s.copyBoth
	return s.readyHeld
}

// listened follows the tag of a LISTEN or a DISCARD ALL.
func (s *Server) listened(tag string) {
	if tag == "DISCARD ALL" {
		s.equal = true // neither listens to anything
		return
	}
	s.listening = true
	s.remains |= verdict.Listen
	s.mayListen = s.mayListen || s.recovery.Listens
}

// Equalize appends to b what makes the session listen to the channels of its client if it does
// not listen to all of them yet.
func (s *Server) Equalize(b []byte, channels []string) []byte {
	if s.equal {
		return b
	}
	s.noted = true
	sql := equalizeSQL(channels)
	if s.Complete() {
		s.record(opOurQuery, record{equalizes: true})
		return wire.AppendQuery(b, sql)
	}
	return s.carry(b, sql, record{equalizes: true})
}

// equalizeSQL does nothing the second time in a transaction, unless the first was rolled back.
func equalizeSQL(channels []string) string {
	var b strings.Builder
	b.WriteString("BEGIN IF pg_catalog.concat(pg_catalog.current_setting('" + equalNote + "', true)) OPERATOR(pg_catalog.<>) 'on' THEN" +
		" PERFORM pg_catalog.set_config('" + equalNote + "', 'on', false);")
	for _, name := range channels {
		b.WriteString(" " + ListenSQL(name) + ";")
	}
	b.WriteString(" END IF; END")
	return "DO LANGUAGE plpgsql " + quote(b.String())
}

// ListenSQL and UnlistenSQL are the statements for a channel.
func ListenSQL(channel string) string   { return "LISTEN " + quoteName(channel) }
func UnlistenSQL(channel string) string { return "UNLISTEN " + quoteName(channel) }

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// maxChannels is how many channels of a session are read: more than a client may listen to.
const maxChannels = 1 << 10

// channelsSQL has the channels as the bytes that notifications name them with.
var channelsSQL = `SELECT pg_catalog.current_setting('` + equalNote + `', true)` +
	`; SELECT pg_catalog.encode(pg_catalog.textsend(c), 'hex') FROM pg_catalog.pg_listening_channels() AS c LIMIT ` + strconv.Itoa(maxChannels)

// errChannels says that the answer to channelsSQL is none.
var errChannels = errors.New("the channels of the session cannot be read")

// Channels asks Postgres what the session listens to. done is called with that, and with
// whether it is all that the client listens to; otherwise the client listens to these besides
// the others.
func (s *Server) Channels(done func(channels []string, all bool, err error)) error {
	return s.AskRows(channelsSQL, func(rows [][]string, err error) {
		if err == nil && (len(rows) == 0 || len(rows[0]) != 1) {
			err = errChannels
		}
		if err != nil {
			done(nil, false, err)
			return
		}
		var channels []string
		for _, row := range rows[1:] {
			if name, err := hex.DecodeString(row[0]); err == nil && len(name) > 0 {
				channels = append(channels, string(name))
			}
		}
		done(channels, s.equal || rows[0][0] == "on", nil)
	})
}

// Mark sends a notification of ours, which the session listens to from then on: it divides
// what others have notified into what came before and after.
func (s *Server) Mark(channel, payload string, done func(error)) error {
	return s.Ask([]string{ListenSQL(channel), "SELECT pg_catalog.pg_notify(" + quote(channel) + ", " + quote(payload) + ")"}, func(failures []Failure) {
		if len(failures) > 0 {
			done(failures[0])
			return
		}
		done(nil)
	})
}

// hears decides whether a notification is for the client who holds the server.
func (s *Server) hears(body []byte) bool {
	if s.phase != phaseHeld || !s.listening {
		return false
	}
	if !s.recovery.Listens {
		return true
	}
	n, ok := wire.ParseNotification(body)
	return ok && s.client.Hears(n)
}

// endListening is called when the session has been cleaned.
func (s *Server) endListening() {
	s.listening, s.mayListen, s.equal, s.noted = false, false, false, false
}
