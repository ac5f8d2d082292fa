package backend

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

const (
	// maxLoginMessage is the longest message in bytes that is accepted of a server
	// during its login, maxLoginBytes how many there may be in all, and maxLoginMessages
	// how many messages: a hostile one must not take memory, or time.
	maxLoginMessage  = 1 << 20
	maxLoginBytes    = 4 << 20
	maxLoginMessages = 10_000

	// maxOldError is the longest text in bytes that is read of an error that has no
	// length.
	maxOldError = 1000

	minSecret, maxSecret = 4, 256 // of a BackendKeyData, in bytes
)

// Authentication requests of a server.
const (
	authOK           = 0
	authCleartext    = 3
	authMD5          = 5
	authSASL         = 10
	authSASLContinue = 11
	authSASLFinal    = 12
)

// logIn sends the StartupMessage and answers what the server asks until it is ready
// for queries.
func logIn(conn net.Conn, t Target, password string) (*Session, error) {
	pairs := []string{"user", t.User, "database", t.Database}
	for _, p := range t.Params {
		pairs = append(pairs, p.Name, p.Value)
	}
	if _, err := conn.Write(wire.AppendStartup(nil, wire.Version30, pairs...)); err != nil {
		return nil, fmt.Errorf("sending the StartupMessage: %w", err)
	}
	s := &Session{Conn: conn}
	a := authentication{conn: conn, user: t.User, password: password, keys: t.Keys}
	if _, encrypted := conn.(*loop.TLS); t.Sealed && !encrypted && t.Network != "unix" {
		a.sealed = true
	}
	total := 0
	for range maxLoginMessages {
		typ, body, err := readMessage(conn)
		if err != nil {
			return nil, err
		}
		if total += len(body); total > maxLoginBytes {
			return nil, fmt.Errorf("the server sends more than %d bytes during the login", maxLoginBytes)
		}
		switch typ {
		case wire.ErrorResponse:
			return nil, &ServerError{body}
		case wire.NoticeResponse:
		case wire.Authentication:
			if err := a.answer(body); err != nil {
				return nil, fmt.Errorf("authenticating as %q: %w", t.User, err)
			}
		case wire.ParameterStatus, wire.BackendKeyData, wire.ReadyForQuery:
			if !a.done {
				return nil, fmt.Errorf("the server sends message %q before authentication is done", typ)
			}
			ready, err := s.note(typ, body)
			if ready || err != nil {
				return s, err
			}
		default:
			return nil, fmt.Errorf("the server sends message %q during the login", typ)
		}
	}
	return nil, fmt.Errorf("the server sends more than %d messages during the login", maxLoginMessages)
}

// note keeps what the server says about the session.
func (s *Session) note(typ byte, body []byte) (ready bool, err error) {
	switch typ {
	case wire.ReadyForQuery:
		if len(body) != 1 || body[0] != wire.Idle {
			return false, fmt.Errorf("the server is ready for queries with a transaction status of %q", body)
		}
		return true, nil
	case wire.BackendKeyData:
		if len(body) < 4+minSecret || len(body) > 4+maxSecret {
			return false, fmt.Errorf("a BackendKeyData of %d bytes", len(body))
		}
		s.PID, s.Secret = binary.BigEndian.Uint32(body), body[4:]
	case wire.ParameterStatus:
		name, rest, ok1 := wire.CString(body)
		value, _, ok2 := wire.CString(rest)
		if !ok1 || !ok2 {
			return false, errors.New("a malformed ParameterStatus")
		}
		s.Params = append(s.Params, Param{string(name), string(value)})
	}
	return false, nil
}

// readMessage reads one message and not a byte more, since an event loop goes on
// reading after the login.
func readMessage(conn net.Conn) (typ byte, body []byte, err error) {
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return 0, nil, readError(err)
	}
	typ, size := wire.Header(header[:])
	if typ == wire.ErrorResponse && size > maxLoginMessage {
		return 0, nil, readOldError(conn, header[1:])
	}
	if size < wire.HeaderSize || size > maxLoginMessage {
		return 0, nil, fmt.Errorf("the server sends message %q with a length of %d bytes during the login", typ, size-1)
	}
	body = make([]byte, size-wire.HeaderSize)
	if _, err := io.ReadFull(conn, body); err != nil {
		return 0, nil, readError(err)
	}
	return typ, body, nil
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server closed the connection during the login: %w", err)
	}
	return fmt.Errorf("reading the server's login messages: %w", err)
}

// readOldError reads an error in the form of protocol 2, which is a text up to a NUL.
// Postgres still says so that it could not start a process (report_fork_failure_to_client).
// start is what was taken for a length.
func readOldError(conn net.Conn, start []byte) error {
	rest, err := io.ReadAll(io.LimitReader(conn, maxOldError))
	text, _, ok := wire.CString(append(start, rest...))
	if !ok && err != nil {
		return readError(err)
	}
	return fmt.Errorf("the server says: %s", strings.ToValidUTF8(strings.TrimSpace(string(text)), "?"))
}

// ErrCredentials is wrapped when there is nothing to log in with in the way that the server
// asks for.
var ErrCredentials = errors.New("pgebb cannot log in")

// authentication answers the requests of one login.
type authentication struct {
	conn           net.Conn
	user, password string
	keys           *Keys         // where there is no password; nil if there are none
	method         uint32        // that the server has asked for, 0 if none
	scram          *scram.Client // of that method
	sealed         bool          // the password must not be sent as it is
	verified       bool          // the server has proved that it knows the password
	done           bool
}

func (a *authentication) answer(body []byte) error {
	if len(body) < 4 {
		return errors.New("a malformed authentication request")
	}
	request, data := binary.BigEndian.Uint32(body), body[4:]
	switch {
	case a.done:
		return errors.New("the server asks for more after it has let us in")
	case request == authOK:
		if a.scram != nil && !a.verified {
			return errors.New("the server skips its part of SCRAM")
		}
		a.done = true
		return nil
	case request == authSASLContinue || request == authSASLFinal:
		return a.goOn(request, data)
	case request != authCleartext && request != authMD5 && request != authSASL:
		return fmt.Errorf("the server asks for authentication method %d, which is not supported", request)
	case a.method != 0:
		// As one who could not finish SCRAM would, to be told the password in clear text.
		return errors.New("the server asks for a password a second time")
	case a.password == "" && a.keys == nil:
		return fmt.Errorf("%w: the server asks for a password and none is configured (users.toml: password or server_password)", ErrCredentials)
	case request != authMD5 && config.IsMD5(a.password):
		return fmt.Errorf("%w: the server asks for a password not by MD5, and there is only an MD5 hash (users.toml: password or server_password)", ErrCredentials)
	case a.password == "" && request != authSASL:
		return fmt.Errorf("%w: the server asks for a password not by SCRAM, and there is only what a client's SCRAM login has left (users.toml: password or server_password)", ErrCredentials)
	case request == authCleartext && a.sealed:
		return fmt.Errorf("%w: the server asks for the password in clear text, and the connection is not encrypted", ErrCredentials)
	}
	a.method = request
	switch request {
	case authCleartext:
		return a.send(append([]byte(a.password), 0))
	case authMD5:
		if len(data) != 4 {
			return errors.New("an MD5 salt of the wrong length")
		}
		hash := a.password
		if !config.IsMD5(hash) {
			hash = MD5Hash(a.user, a.password)
		}
		return a.send(append([]byte(MD5Salted(hash, [4]byte(data))), 0))
	default:
		return a.startSASL(data)
	}
}

// goOn answers the second and the third message of SASL.
func (a *authentication) goOn(request uint32, data []byte) error {
	if a.scram == nil {
		return errors.New("the server goes on with SASL before it has begun")
	}
	if request == authSASLContinue {
		final, err := a.scram.Final(data)
		if errors.Is(err, scram.ErrOtherVerifier) {
			return fmt.Errorf("%w: %w (users.toml: password_hash, password or server_password)", ErrCredentials, err)
		}
		if err != nil {
			return err
		}
		return a.send(final)
	}
	if err := a.scram.Verify(data); err != nil {
		return err
	}
	a.verified = true
	return nil
}

func (a *authentication) startSASL(mechanisms []byte) error {
	var plain, plus bool
	for len(mechanisms) > 0 {
		name, rest, ok := wire.CString(mechanisms)
		if !ok || len(name) == 0 {
			break
		}
		plain = plain || string(name) == scram.Mechanism
		plus = plus || string(name) == scram.MechanismPlus
		mechanisms = rest
	}
	data, binds := endPoint(a.conn)
	chosen := scram.Mechanism
	switch {
	case plus && binds:
		chosen = scram.MechanismPlus
	case !plain:
		return errors.New("the server offers no SASL mechanism that is supported (" + scram.Mechanism + ")")
	}
	if a.password != "" {
		a.scram = scram.NewClient(a.password)
	} else {
		a.scram = scram.NewClientFromKeys(a.keys)
	}
	if binds {
		a.scram.Bind(data, plus)
	}
	first := a.scram.First()
	body := append([]byte(chosen), 0)
	body = binary.BigEndian.AppendUint32(body, uint32(len(first)))
	return a.send(append(body, first...))
}

func (a *authentication) send(body []byte) error {
	if _, err := a.conn.Write(wire.AppendRaw(nil, wire.Password, body)); err != nil {
		return fmt.Errorf("sending the password message: %w", err)
	}
	return nil
}

// MD5Hash is a password as PostgreSQL stores it with password_encryption = md5.
func MD5Hash(user, password string) string {
	sum := md5.Sum([]byte(password + user))
	return "md5" + hex.EncodeToString(sum[:])
}

// MD5Response is the answer to an MD5 authentication request.
func MD5Response(user, password string, salt [4]byte) string {
	return MD5Salted(MD5Hash(user, password), salt)
}

// MD5Salted is the answer of somebody who knows the stored hash, "md5" and all.
func MD5Salted(hash string, salt [4]byte) string {
	sum := md5.Sum(append([]byte(hash[len("md5"):]), salt[:]...))
	return "md5" + hex.EncodeToString(sum[:])
}

// Cancel sends a cancel request to a server and waits until the server has closed
// the connection, which is when it has dealt with it.
func Cancel(ctx context.Context, t Target, pid uint32, secret []byte) error {
	conn, err := dial(ctx, t)
	if err != nil {
		return fmt.Errorf("dialling for a cancel request: %w", err)
	}
	defer conn.Close() // of the socket
	socket := conn
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if conn, err = secure(ctx, conn, t); err != nil {
		return fmt.Errorf("dialling for a cancel request: %w", err)
	}
	if _, err := conn.Write(wire.AppendCancelRequest(nil, pid, secret)); err != nil {
		return fmt.Errorf("sending a cancel request: %w", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !isReset(err) {
		return fmt.Errorf("waiting for a cancel request to be dealt with: %w", err)
	}
	return nil
}

// isReset reports whether the peer closed the connection without reading all.
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
