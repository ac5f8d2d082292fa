package frontend

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/wire"
)

const (
	// maxStartup is the longest start-up packet in bytes. Postgres takes 10,000
	// (MAX_STARTUP_PACKET_LENGTH); there is no harm in a client that is wordier.
	maxStartup = 64 << 10

	// maxMinor is the newest 3.x that is spoken.
	maxMinor = 2

	// maxParams is how many run-time parameters a client may name, each of which a
	// server is asked about; Postgres has some 400.
	maxParams = 1000
)

// startup is what a client says first.
type startup struct {
	Minor          uint16 // of the protocol version 3.x that is spoken from now on
	User, Database string
	// Params are the run-time parameters in the order in which Postgres sets them: first
	// those in "options", then the others. Of several with the same name only the last
	// is there.
	Params []backend.Param
	Cancel *cancelRequest // if that is what it is; all else is empty then

	shield *shield // nil if the connection is not encrypted
}

// cancelRequest is the key in a CancelRequest.
type cancelRequest struct {
	PID    uint32
	Secret []byte // 4 to 256 bytes
}

// errNoStartup is for a client that leaves, or says what nothing can be answered to.
var errNoStartup = errors.New("no start-up packet")

// reception is the first part of a client's connection, up to its StartupMessage. It
// belongs to the goroutine of the login.
type reception struct {
	conn       net.Conn    // another one once it is encrypted
	encryption *encryption // nil if there is none
	shield     *shield     // nil as long as the connection is not encrypted
}

// readStartup reads up to and including the StartupMessage, answers requests for
// encryption, and negotiates the protocol version. It reads not a byte more, since
// an event loop goes on reading after the login. An *Error is to be told to the
// client; after any other error it is closed without a word, as Postgres does.
func (r *reception) readStartup() (*startup, error) {
	var ssl, gss bool
	for first := true; ; first = false {
		var head [4]byte
		if _, err := io.ReadFull(r.conn, head[:]); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoStartup, err)
		}
		if first && startsWithTLS(head[:]) {
			if err := r.direct(head[:]); err != nil {
				return nil, err
			}
			ssl, gss = true, true
			continue
		}
		code, body, err := readStartupPacket(r.conn, binary.BigEndian.Uint32(head[:]))
		if err != nil {
			return nil, err
		}
		switch {
		case code == wire.CancelRequestCode:
			return readCancel(body)
		case code == wire.SSLRequestCode && !ssl:
			ssl = true
			err = r.answerSSLRequest()
			gss = gss || r.shield != nil // as with Postgres, not inside of TLS
		case code == wire.GSSENCRequestCode && !gss:
			gss = true
			err = r.say('N')
		default:
			return parseStartup(r.conn, code, body)
		}
		if err != nil {
			return nil, err
		}
	}
}

// readStartupPacket reads what follows the length of a packet.
func readStartupPacket(conn net.Conn, size uint32) (code uint32, body []byte, err error) {
	if size < 8 || size > maxStartup {
		return 0, nil, fmt.Errorf("%w: a length of %d bytes", errNoStartup, size)
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errNoStartup, err)
	}
	// The memory grows with what comes, not with what is announced.
	rest := int(size) - 8
	body, err = io.ReadAll(io.LimitReader(conn, int64(rest)))
	if err == nil && len(body) < rest {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errNoStartup, err)
	}
	return binary.BigEndian.Uint32(head[:]), body, nil
}

func readCancel(body []byte) (*startup, error) {
	if len(body) < 4+4 || len(body) > 4+256 {
		return nil, fmt.Errorf("%w: a cancel request of %d bytes", errNoStartup, len(body))
	}
	return &startup{Cancel: &cancelRequest{binary.BigEndian.Uint32(body), body[4:]}}, nil
}

// parseStartup reads the pairs of a StartupMessage.
func parseStartup(conn net.Conn, version uint32, body []byte) (*startup, error) {
	major, minor := uint16(version>>16), uint16(version)
	if major != 3 {
		return nil, errProtocolVersion(major, minor)
	}
	st := &startup{Minor: min(minor, maxMinor)}
	if st.Minor == 1 {
		st.Minor = 0 // there has never been a 3.1
	}
	unknown, err := st.read(body)
	if err != nil {
		return st, err
	}
	if minor > st.Minor || len(unknown) > 0 {
		if _, err := conn.Write(negotiate(st.Minor, unknown)); err != nil {
			return st, fmt.Errorf("negotiating the protocol version: %w", err)
		}
	}
	if st.User == "" {
		return st, errNoUser()
	}
	if st.Database == "" {
		st.Database = st.User
	}
	return st, nil
}

// read takes what the pairs say, and returns the protocol options, none of which is
// known.
func (st *startup) read(body []byte) (unknown []string, err error) {
	var options string
	var explicit []backend.Param
	for {
		name, rest, ok := wire.CString(body)
		if !ok || len(name) == 0 && len(rest) > 0 {
			return nil, errProtocol("invalid startup packet layout: expected terminator as last byte")
		}
		if len(name) == 0 {
			break
		}
		var value []byte
		if value, body, ok = wire.CString(rest); !ok {
			return nil, errProtocol("invalid startup packet layout: expected terminator as last byte")
		}
		switch name, value := string(name), string(value); {
		case strings.HasPrefix(name, "_pq_."):
			unknown = append(unknown, name)
		case name == "user":
			st.User = value
		case name == "database":
			st.Database = value
		case name == "options":
			options = value
		case name == "replication":
			if !isFalse(value) {
				return nil, errReplication()
			}
		default:
			explicit = append(explicit, backend.Param{Name: name, Value: value})
		}
	}
	params, err := parseOptions(options)
	if err != nil {
		return nil, err
	}
	if st.Params = lastOfEach(append(params, explicit...)); len(st.Params) > maxParams {
		return nil, errTooManyParameters(len(st.Params))
	}
	return unknown, nil
}

// lastOfEach drops all but the last parameter of each name.
func lastOfEach(params []backend.Param) []backend.Param {
	seen := make(map[string]bool, len(params))
	kept := len(params)
	for i := len(params) - 1; i >= 0; i-- {
		if name := strings.ToLower(params[i].Name); !seen[name] {
			seen[name] = true
			kept--
			params[kept] = params[i]
		}
	}
	return params[kept:]
}

// negotiate makes a NegotiateProtocolVersion: the newest version that is spoken, and
// the options that are not known.
func negotiate(minor uint16, unknown []string) []byte {
	body := binary.BigEndian.AppendUint32(nil, wire.Version30|uint32(minor))
	body = binary.BigEndian.AppendUint32(body, uint32(len(unknown)))
	for _, name := range unknown {
		body = append(append(body, name...), 0)
	}
	return wire.AppendRaw(nil, 'v', body)
}

func isFalse(value string) bool {
	switch strings.ToLower(value) {
	case "false", "off", "no", "0", "f", "n":
		return true
	}
	return false
}

// parseOptions reads command-line arguments for the server process: "-c name=value"
// and "--name=value", which are all that makes sense through a pooler.
func parseOptions(options string) ([]backend.Param, error) {
	var params []backend.Param
	args := splitOptions(options)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		var flag, setting string
		switch {
		case arg == "-c" && i+1 < len(args):
			i++
			flag, setting = "-c ", args[i]
		case strings.HasPrefix(arg, "-c") && len(arg) > 2:
			flag, setting = "-c ", arg[2:]
		case strings.HasPrefix(arg, "--") && len(arg) > 2:
			flag, setting = "--", arg[2:]
		default:
			return nil, errOption(arg)
		}
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, errOptionValue(flag + setting)
		}
		// As Postgres does in ParseLongOption.
		params = append(params, backend.Param{Name: strings.ReplaceAll(name, "-", "_"), Value: value})
	}
	return params, nil
}

// splitOptions splits at white space; a backslash makes the next character an
// ordinary one (pg_split_opts in Postgres).
func splitOptions(s string) []string {
	var args []string
	var arg strings.Builder
	in, escaped := false, false
	for _, r := range []byte(s) {
		switch {
		case escaped:
			arg.WriteByte(r)
			escaped = false
		case r == '\\':
			in, escaped = true, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\v' || r == '\f':
			if in {
				args = append(args, arg.String())
				arg.Reset()
				in = false
			}
		default:
			in = true
			arg.WriteByte(r)
		}
	}
	if in {
		args = append(args, arg.String())
	}
	return args
}
