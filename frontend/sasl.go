package frontend

import (
	"encoding/binary"
	"errors"

	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// scram is the exchange of SASL messages, with channel binding if the client wants it and
// its connection has it. What it leaves is good for logins to whoever has the same
// verifier.
func (l *login) scram(verifiers []*scram.Verifier, known bool) (*scram.Keys, error) {
	offer := scram.Mechanism + "\x00\x00"
	if l.endPoint != nil {
		offer = scram.MechanismPlus + "\x00" + offer
	}
	if err := l.request(requestSASL, []byte(offer)); err != nil {
		return nil, err
	}
	mechanism, initial, err := l.initial()
	if err != nil {
		return nil, err
	}
	server := scram.NewServer(verifiers...)
	server.Bind(l.endPoint, mechanism == scram.MechanismPlus)
	first, err := server.First(initial)
	if err != nil {
		return nil, saslError(err)
	}
	if err := l.request(requestSASLContinue, first); err != nil {
		return nil, err
	}
	body, err := l.answer("SASL") // the first message says nothing of the password
	if err != nil {
		return nil, err
	}
	final, err := server.Final(body)
	if err = saslError(err); err != nil && !errors.Is(err, scram.ErrPassword) {
		return nil, err
	}
	if err != nil || !known {
		return nil, l.refused(known)
	}
	l.say(requestSASLFinal, final)
	return server.Keys(), nil
}

// saslError is what the client is told of an error other than a wrong password.
func saslError(err error) error {
	switch {
	case errors.Is(err, scram.ErrMalformed):
		return errSASL(err)
	case errors.Is(err, scram.ErrBinding):
		return errChannelBinding(err)
	}
	return err
}

// initial reads the first SASL message, which says what mechanism the client has chosen.
func (l *login) initial() (mechanism string, initial []byte, err error) {
	body, err := l.response("SASL")
	if err != nil {
		return "", nil, err
	}
	name, rest, ok := wire.CString(body)
	mechanism = string(name)
	switch {
	case !ok:
		return "", nil, errProtocol("invalid string in message")
	case mechanism != scram.Mechanism && (mechanism != scram.MechanismPlus || l.endPoint == nil):
		return "", nil, errProtocol("client selected an invalid SASL authentication mechanism")
	case len(rest) < 4:
		return "", nil, errProtocol("insufficient data left in message")
	}
	initial = rest[4:]
	switch size := int64(int32(binary.BigEndian.Uint32(rest))); {
	case size == -1 && len(initial) == 0:
		// It says with its first answer what others say at once.
		if err := l.request(requestSASLContinue, nil); err != nil {
			return "", nil, err
		}
		initial, err = l.response("SASL")
	case size < -1 || size > int64(len(initial)):
		err = errProtocol("insufficient data left in message")
	case size < int64(len(initial)):
		err = errProtocol("invalid message format")
	}
	return mechanism, initial, err
}
