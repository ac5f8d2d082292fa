package frontendtest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/wire"
)

// longValue is the length from which a value is shown by its length and its hash.
const longValue = 100

func quoted(b []byte) string {
	if len(b) > longValue {
		return fmt.Sprintf("<%d bytes, sha256 %x>", len(b), sha256.Sum256(b))[:40] + ">"
	}
	return fmt.Sprintf("%q", b)
}

// Show is a message as a line of text. What differs from server to server without
// meaning anything is left out: keys, and where in its source Postgres made an error.
func (m Message) Show() string {
	switch m.Type {
	case wire.RowDescription:
		var d pgproto3.RowDescription
		if d.Decode(m.Body) != nil {
			break
		}
		var cols []string
		for _, f := range d.Fields {
			cols = append(cols, fmt.Sprintf("%s:%d/%d", f.Name, f.DataTypeOID, f.Format))
		}
		return "RowDescription " + strings.Join(cols, " ")
	case wire.DataRow:
		var d pgproto3.DataRow
		if d.Decode(m.Body) != nil {
			break
		}
		var vals []string
		for _, v := range d.Values {
			if v == nil {
				vals = append(vals, "NULL")
				continue
			}
			vals = append(vals, quoted(v))
		}
		return "DataRow " + strings.Join(vals, " ")
	case wire.ErrorResponse, wire.NoticeResponse:
		return showFields(m)
	case wire.ReadyForQuery:
		return "ReadyForQuery " + string(m.Body)
	case wire.CommandComplete:
		return fmt.Sprintf("CommandComplete %q", strings.TrimSuffix(string(m.Body), "\x00"))
	case wire.ParameterStatus:
		return fmt.Sprintf("ParameterStatus %q", strings.Split(strings.TrimSuffix(string(m.Body), "\x00"), "\x00"))
	case wire.NotificationResponse:
		return fmt.Sprintf("NotificationResponse %q", m.Body[4:])
	case wire.ParameterDescription:
		var oids []string
		for b := m.Body[2:]; len(b) >= 4; b = b[4:] {
			oids = append(oids, fmt.Sprint(binary.BigEndian.Uint32(b)))
		}
		return strings.TrimSpace("ParameterDescription " + strings.Join(oids, " "))
	case wire.BackendKeyData:
		return fmt.Sprintf("BackendKeyData (a secret of %d bytes)", len(m.Body)-4)
	}
	name := map[byte]string{
		'1': "ParseComplete", '2': "BindComplete", '3': "CloseComplete", 'n': "NoData", 'I': "EmptyQueryResponse", 's': "PortalSuspended",
		'G': "CopyInResponse", 'H': "CopyOutResponse", 'W': "CopyBothResponse", 'd': "CopyData", 'c': "CopyDone", 'V': "FunctionCallResponse",
		'v': "NegotiateProtocolVersion", 'R': "Authentication",
	}[m.Type]
	if name == "" {
		name = fmt.Sprintf("%q", m.Type)
	}
	if len(m.Body) > 0 {
		name += " " + quoted(m.Body)
	}
	return name
}

func showFields(m Message) string {
	name := "ErrorResponse"
	if m.Type == wire.NoticeResponse {
		name = "NoticeResponse"
	}
	var parts []string
	for b := m.Body; len(b) > 1; {
		value, rest, ok := wire.CString(b[1:])
		if !ok {
			break
		}
		switch b[0] {
		case 'F', 'L', 'R', 'S':
		default:
			parts = append(parts, fmt.Sprintf("%c=%q", b[0], value))
		}
		b = rest
	}
	return name + " " + strings.Join(parts, " ")
}
