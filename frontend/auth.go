package frontend

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// maxPassword is the longest password or SASL message in bytes that is read
// (PG_MAX_SASL_MESSAGE_LENGTH, PG_MAX_AUTH_TOKEN_LENGTH in Postgres are of this
// order).
const maxPassword = 8 << 10

// Authentication requests, see the protocol's message formats.
const (
	requestOK           = 0
	requestCleartext    = 3
	requestMD5          = 5
	requestSASL         = 10
	requestSASLContinue = 11
	requestSASLFinal    = 12
)

// Authenticator logs clients in. It is safe for concurrent use.
type Authenticator struct {
	secret  [32]byte // makes the salts of users who do not exist; constant
	current atomic.Pointer[authConfig]
}

// authConfig is a configuration and what was derived from its passwords; both go at
// a reload.
type authConfig struct {
	cfg *config.Config

	mu        sync.Mutex
	verifiers map[string]func() ([]*scram.Verifier, error) // by credential; guarded by mu
}

// NewAuthenticator makes one that goes by a configuration.
func NewAuthenticator(cfg *config.Config) *Authenticator {
	a := &Authenticator{}
	_, _ = rand.Read(a.secret[:]) // never fails
	a.Update(cfg)
	return a
}

// Update makes it go by another configuration.
func (a *Authenticator) Update(cfg *config.Config) {
	a.current.Store(&authConfig{cfg: cfg, verifiers: make(map[string]func() ([]*scram.Verifier, error))})
}

// Authenticate asks the client for its password, in the way that auth_type says, and
// ends with AuthenticationOk. An *Error is to be told to the client. Whether the user
// exists makes no difference to what is said and done, but for the first SCRAM login of
// a user since the configuration was read: its verifier is made then.
func (a *Authenticator) Authenticate(conn net.Conn, st *startup) error {
	current := a.current.Load()
	cred, known := current.cfg.Login(st.User, st.Database)
	method := current.cfg.General.AuthType
	if current.cfg.IsConsole(st.Database) {
		cred, known = current.cfg.ConsoleLogin(st.User)
		if method == config.AuthTrust {
			method = config.AuthScram // the console is never open to everybody
		}
	}
	l := login{conn: conn, user: st.User}
	if st.shield != nil {
		l.endPoint = st.shield.endPoint
	}
	var err error
	switch method {
	case config.AuthTrust:
		if !known {
			return errAuthFailed(st.User)
		}
	case config.AuthPlain:
		err = l.plain(cred, known, a.mock(st.User))
	case config.AuthMD5:
		err = l.md5(cred, known)
	default:
		var verifiers []*scram.Verifier
		if verifiers, err = a.scramVerifiers(current, st.User, cred, known); err == nil {
			err = l.scram(verifiers, known)
		}
	}
	if err != nil {
		return err
	}
	return l.request(requestOK, nil)
}

// scramVerifiers returns what the client's proof is held to. Those of several
// passwords, and of a hash beside them, share one salt, since the client is told only
// one. They are made once; meanwhile other users do not wait.
func (a *Authenticator) scramVerifiers(current *authConfig, user string, cred config.Credential, known bool) ([]*scram.Verifier, error) {
	if !known {
		return []*scram.Verifier{a.mock(user)}, nil
	}
	key := strings.Join(append([]string{user, cred.PasswordHash}, cred.Passwords...), "\x00")
	current.mu.Lock()
	derive := current.verifiers[key]
	if derive == nil {
		derive = sync.OnceValues(func() ([]*scram.Verifier, error) { return a.derive(user, cred) })
		current.verifiers[key] = derive
	}
	current.mu.Unlock()
	return derive()
}

func (a *Authenticator) derive(user string, cred config.Credential) ([]*scram.Verifier, error) {
	var verifiers []*scram.Verifier
	salt, iterations := a.salt(user), scram.Iterations
	// Another kind of hash cannot be used for SCRAM; configcheck says so.
	if v, err := scram.Parse(cred.PasswordHash); err == nil {
		verifiers = append(verifiers, v)
		salt, iterations = v.Salt, v.Iterations
	}
	for _, p := range cred.Passwords {
		v, err := scram.Derive(p, salt, iterations)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, v)
	}
	if len(verifiers) == 0 {
		verifiers = append(verifiers, a.mock(user))
	}
	return verifiers, nil
}

// salt is the salt that a user is told, the same each time, whether or not the user
// exists.
func (a *Authenticator) salt(user string) []byte {
	mac := hmac.New(sha256.New, a.secret[:])
	mac.Write([]byte(user))
	return mac.Sum(nil)[:16]
}

// mock is a verifier that nobody knows the password of.
func (a *Authenticator) mock(user string) *scram.Verifier {
	keys := make([]byte, 2*sha256.Size)
	_, _ = rand.Read(keys) // never fails
	return &scram.Verifier{Iterations: scram.Iterations, Salt: a.salt(user), StoredKey: keys[:32], ServerKey: keys[32:]}
}

// login is the exchange with one client.
type login struct {
	conn     net.Conn
	user     string
	endPoint []byte // channel binding data of its connection, nil if it has none
}

// request sends an authentication request.
func (l *login) request(code uint32, data []byte) error {
	body := append(binary.BigEndian.AppendUint32(nil, code), data...)
	if _, err := l.conn.Write(wire.AppendRaw(nil, wire.Authentication, body)); err != nil {
		return fmt.Errorf("sending an authentication request: %w", err)
	}
	return nil
}

// response reads the body of a password message, and not a byte more. What it is to hold
// is a password or SASL.
func (l *login) response(what string) ([]byte, error) {
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(l.conn, header[:]); err != nil {
		return nil, fmt.Errorf("waiting for the password: %w", err)
	}
	typ, size := wire.Header(header[:])
	if typ != wire.Password {
		return nil, errProtocol("expected %s response, got message type %d", what, typ)
	}
	if size < wire.HeaderSize || size > maxPassword {
		return nil, errProtocol("invalid password packet size")
	}
	body := make([]byte, size-wire.HeaderSize)
	if _, err := io.ReadFull(l.conn, body); err != nil {
		return nil, fmt.Errorf("waiting for the password: %w", err)
	}
	return body, nil
}

// password reads a password message that holds one string, which as with Postgres is
// never empty.
func (l *login) password() (string, error) {
	body, err := l.response("password")
	if err != nil {
		return "", err
	}
	s, rest, ok := wire.CString(body)
	switch {
	case !ok || len(rest) > 0:
		return "", errProtocol("invalid password packet size")
	case len(s) == 0:
		return "", errEmptyPassword()
	}
	return string(s), nil
}

func (l *login) plain(cred config.Credential, known bool, mock *scram.Verifier) error {
	if err := l.request(requestCleartext, nil); err != nil {
		return err
	}
	given, err := l.password()
	if err != nil {
		return err
	}
	ok := false
	for _, p := range cred.Passwords {
		ok = hmac.Equal([]byte(given), []byte(p)) || ok
	}
	ok = isMD5(cred.PasswordHash) && hmac.Equal([]byte(backend.MD5Hash(l.user, given)), []byte(cred.PasswordHash)) || ok
	// A verifier takes time, so without one there is one that nobody has the password of.
	v, err := scram.Parse(cred.PasswordHash)
	if err != nil {
		v = mock
	}
	d, err := scram.Derive(given, v.Salt, v.Iterations)
	if err != nil {
		return err
	}
	ok = hmac.Equal(d.StoredKey, v.StoredKey) || ok
	if !known || !ok {
		return errAuthFailed(l.user)
	}
	return nil
}

func isMD5(hash string) bool { return len(hash) == len("md5")+32 && strings.HasPrefix(hash, "md5") }

func (l *login) md5(cred config.Credential, known bool) error {
	var salt [4]byte
	_, _ = rand.Read(salt[:]) // never fails
	if err := l.request(requestMD5, salt[:]); err != nil {
		return err
	}
	given, err := l.password()
	if err != nil {
		return err
	}
	ok := false
	for _, p := range cred.Passwords {
		ok = hmac.Equal([]byte(given), []byte(backend.MD5Response(l.user, p, salt))) || ok
	}
	if isMD5(cred.PasswordHash) {
		ok = hmac.Equal([]byte(given), []byte(backend.MD5Salted(cred.PasswordHash, salt))) || ok
	}
	if !known || !ok {
		return errAuthFailed(l.user)
	}
	return nil
}
