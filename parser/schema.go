package parser

import (
	"sync"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// message is what is known of one kind of node of a tree: enough to walk through the bytes
// of it without making Go values of them, which take sixteen times the memory.
type message struct {
	name   string
	fields []field // by number
}

// field is one field of a message.
type field struct {
	name  string
	child *message // nil if it is no message
}

// schema is the message that a whole tree is.
var schema = sync.OnceValue(func() *message {
	known := map[protoreflect.FullName]*message{}
	return describe(pgquery.File_pg_query_proto.Messages().ByName("ParseResult"), known)
})

func describe(d protoreflect.MessageDescriptor, known map[protoreflect.FullName]*message) *message {
	if m := known[d.FullName()]; m != nil {
		return m
	}
	m := &message{name: string(d.Name())}
	known[d.FullName()] = m
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		n := int(f.Number())
		if n >= len(m.fields) {
			m.fields = append(m.fields, make([]field, n+1-len(m.fields))...)
		}
		m.fields[n].name = string(f.Name())
		if f.Kind() == protoreflect.MessageKind {
			m.fields[n].child = describe(f.Message(), known)
		}
	}
	return m
}
