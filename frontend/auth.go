package frontend

import (
	"crypto/hmac"
	"crypto/rand"
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
	outside outside  // who knows users that are in no file; nil if nobody does
	current atomic.Pointer[authConfig]
	derived atomic.Uint64  // derivations of verifiers so far
	working sync.WaitGroup // goroutines that derive verifiers
}

// outside knows what is in no file.
type outside interface {
	// lookUp asks Postgres for the credential of a user; nil if there is none that is good.
	lookUp(cfg *config.Config, user, database string) (*config.Credential, error)
	// forget has the next lookUp ask again, after a login that has failed.
	forget(cfg *config.Config, user, database string)
	// learned is the password that Postgres has let a user in with.
	learned(user, database string) (password string, ok bool)
	// judge has Postgres decide on a password.
	judge(cfg *config.Config, user, database, password string) (bool, error)
	// learn makes a user one that has a pool, with a password if that is known.
	learn(config.Learned) error
	// fromVault is the password that Vault has for the clients of a user. rejected is to be
	// called when a client has another.
	fromVault(cfg *config.Config, user string, cred config.Credential) (password string, rejected func(), err error)
	// trust has servers for a user log in with what the user's own login has left.
	trust(user, database string, keys *scram.Keys)
}

// NewAuthenticator makes one that goes by a configuration, and by what somebody knows who
// may be nil.
func NewAuthenticator(cfg *config.Config, o outside) *Authenticator {
	a := &Authenticator{outside: o}
	_, _ = rand.Read(a.secret[:]) // never fails
	a.Update(cfg)
	return a
}

// Update makes it go by another configuration. A goroutine derives the verifiers of its
// passwords; it ends with that, or soon after the next Update.
func (a *Authenticator) Update(cfg *config.Config) {
	c := a.newAuthConfig(cfg, a.current.Load())
	a.current.Store(c)
	a.working.Go(func() { a.prepare(c) })
}

// claim is who a client says that it is, and what it is held to.
type claim struct {
	cred      config.Credential
	known     bool   // there is such a user
	console   bool   // it wants the console
	lookedUp  bool   // Postgres was asked for the credential
	certified bool   // its certificate has proved it
	rejected  func() // called when the password is another than Vault's; nil if that has none
	method    config.AuthType
}

// Authenticate asks the client for its password, in the way that auth_type says, and
// ends with AuthenticationOk. An *Error is to be told to the client. Whether the user
// exists makes no difference to what is said and done. judging is called once the client has
// answered, at most once, and before anything is known of whether the answer is right; it
// may wait, and its error ends the login.
func (a *Authenticator) Authenticate(conn net.Conn, st *startup, judging func() error) error {
	current := a.current.Load()
	c, err := a.claimOf(current.cfg, conn, st)
	if err != nil {
		return err
	}
	if err := a.fetch(current.cfg, st, &c); err != nil {
		return err
	}
	l := login{conn: conn, user: st.User, judging: judging}
	if st.shield != nil {
		l.endPoint = st.shield.endPoint
	}
	switch {
	case c.certified:
	case a.passes(current.cfg, conn, st, c):
		err = a.passThrough(&l, current, st, c)
	default:
		err = a.check(&l, current, st, c)
	}
	if err != nil {
		l.flush()
		return err
	}
	return l.request(requestOK, nil)
}

// isQuick reports whether a login waits for nothing but its client: nobody is asked about
// the user, and nothing is derived.
func (a *Authenticator) isQuick(conn net.Conn, st *startup) bool {
	current := a.current.Load()
	method := current.cfg.General.AuthType
	if method == config.AuthPlain || method == config.AuthScram && !current.ready.Load() || a.passes(current.cfg, conn, st, claim{}) {
		return false
	}
	cred, known := current.cfg.Login(st.User, st.Database)
	if cred.VaultPath != "" {
		return false
	}
	return known || a.outside == nil || current.cfg.General.AuthUser == ""
}

// claimOf finds out what a client is held to.
func (a *Authenticator) claimOf(cfg *config.Config, conn net.Conn, st *startup) (c claim, err error) {
	c.method = cfg.General.AuthType
	if cfg.IsConsole(st.Database) {
		c.console = true
		c.cred, c.known = cfg.ConsoleLogin(st.User)
		if c.method == config.AuthTrust {
			c.method = config.AuthScram // the console is never open to everybody
		}
		return c, nil
	}
	c.cred, c.known = cfg.Login(st.User, st.Database)
	if err := c.checkCertificate(cfg, conn, st); err != nil || c.certified {
		return c, err
	}
	if !c.known && a.outside != nil && cfg.General.AuthUser != "" && !a.passes(cfg, conn, st, c) {
		c.lookedUp = true
		found, err := a.outside.lookUp(cfg, st.User, st.Database)
		if err != nil {
			return c, err
		}
		if found != nil {
			c.cred, c.known = *found, true
		}
	}
	return c, nil
}

// fetch gets the password of a client from Vault, if it is there and is needed.
func (a *Authenticator) fetch(cfg *config.Config, st *startup, c *claim) error {
	if !c.known || c.cred.VaultPath == "" || c.certified || c.method == config.AuthTrust || a.outside == nil {
		return nil
	}
	password, rejected, err := a.outside.fromVault(cfg, st.User, c.cred)
	if err != nil {
		return errVault(err)
	}
	c.cred.Passwords, c.rejected = []string{password}, rejected
	return nil
}

// checkCertificate lets in who has the certificate of its user, and keeps out who lacks one.
func (c *claim) checkCertificate(cfg *config.Config, conn net.Conn, st *startup) error {
	if cfg.ClientTLS.Authorities == nil || isUnix(conn) {
		return nil
	}
	if st.shield == nil || st.shield.certificate == nil {
		if !c.known || c.cred.Certificate {
			return errNoCertificate()
		}
		return nil
	}
	if c.known && c.cred.Identity != "" {
		c.certified = st.shield.certificate.Subject.CommonName == c.cred.Identity
		if !c.certified {
			c.known, c.cred = false, config.Credential{} // it goes on as somebody who is not known
		}
	}
	return nil
}

// check asks for a password as auth_type says, and makes a user that was looked up one with
// a pool.
func (a *Authenticator) check(l *login, current *authConfig, st *startup, c claim) (err error) {
	var keys *scram.Keys
	switch c.method {
	case config.AuthTrust:
		if !c.known {
			err = l.refused(false)
		}
	case config.AuthPlain:
		err = l.plain(c.cred, c.known, a.mock(st.User))
	case config.AuthMD5:
		err = l.md5(c.cred, c.known)
	default:
		var verifiers []*scram.Verifier
		if verifiers, err = a.scramVerifiers(current, st.User, c.cred, c.known); err == nil {
			keys, err = l.scram(verifiers, c.known)
		}
	}
	if c.rejected != nil && err != nil {
		c.rejected()
	}
	if c.lookedUp && err != nil {
		a.outside.forget(current.cfg, st.User, st.Database)
	}
	if err != nil || a.outside == nil || c.console {
		return err
	}
	if c.lookedUp {
		learned := config.Learned{User: st.User, Database: st.Database, Password: strings.Join(c.cred.Passwords, "")}
		if config.IsMD5(c.cred.PasswordHash) {
			learned.Hash = c.cred.PasswordHash
		}
		if err := a.outside.learn(learned); err != nil {
			return err
		}
	}
	if keys != nil && len(c.cred.Passwords) == 0 {
		a.outside.trust(st.User, st.Database, keys)
	}
	return nil
}

// login is the exchange with one client.
type login struct {
	conn     net.Conn
	user     string
	endPoint []byte // channel binding data of its connection, nil if it has none
	unsent   []byte // goes out with the next request
	judging  func() error
}

// refused is the error of a login that has failed. Only the log tells why.
func (l *login) refused(known bool) *Error {
	if !known {
		return errAuthFailed(l.user, "no [[users]] entry pairs this user with this database, and neither a look-up nor a certificate made one")
	}
	return errAuthFailed(l.user, "wrong password")
}

// request sends an authentication request.
func (l *login) request(code uint32, data []byte) error {
	l.say(code, data)
	if _, err := l.conn.Write(l.unsent); err != nil {
		return fmt.Errorf("sending an authentication request: %w", err)
	}
	l.unsent = nil
	return nil
}

// say sends with the next request what needs no answer.
func (l *login) say(code uint32, data []byte) {
	body := append(binary.BigEndian.AppendUint32(nil, code), data...)
	l.unsent = wire.AppendRaw(l.unsent, wire.Authentication, body)
}

// flush sends what is not sent, before an error. Whether it gets through does not matter.
func (l *login) flush() {
	if len(l.unsent) > 0 {
		_, _ = l.conn.Write(l.unsent)
	}
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

// answer reads the response that the login depends on, and waits until it may be judged.
func (l *login) answer(what string) ([]byte, error) {
	body, err := l.response(what)
	if err != nil {
		return nil, err
	}
	if err := l.judging(); err != nil {
		return nil, fmt.Errorf("waiting for the password to be judged: %w", err)
	}
	return body, nil
}

// password reads a password message that holds one string, which as with Postgres is
// never empty.
func (l *login) password() (string, error) {
	body, err := l.answer("password")
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
	ok, err := l.isPassword(cred, given, mock)
	if err == nil && (!known || !ok) {
		err = l.refused(known)
	}
	return err
}

// isPassword compares a password with all that a credential has, which takes the same time
// whether or not it has anything.
func (l *login) isPassword(cred config.Credential, given string, mock *scram.Verifier) (bool, error) {
	ok := false
	for _, p := range cred.Passwords {
		ok = hmac.Equal([]byte(given), []byte(p)) || ok
	}
	ok = config.IsMD5(cred.PasswordHash) && hmac.Equal([]byte(backend.MD5Hash(l.user, given)), []byte(cred.PasswordHash)) || ok
	// A verifier takes time, so without one there is one that nobody has the password of.
	v, err := scram.Parse(cred.PasswordHash)
	if err != nil {
		v = mock
	}
	d, err := scram.Derive(given, v.Salt, v.Iterations)
	if err != nil {
		return false, err
	}
	return hmac.Equal(d.StoredKey, v.StoredKey) || ok, nil
}

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
	if config.IsMD5(cred.PasswordHash) {
		ok = hmac.Equal([]byte(given), []byte(backend.MD5Salted(cred.PasswordHash, salt))) || ok
	}
	if !known || !ok {
		return l.refused(known)
	}
	return nil
}
