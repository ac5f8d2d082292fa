package config

import "reflect"

// Table describes a table of the files for the reference.
type Table struct {
	Name, File, Doc string
	List            bool // there can be several
	Refused         bool // it must not be there
	Keys            []Key
}

// Key describes a key of a [Table].
type Key struct {
	Name, Alias, Type, Unit, Doc string
	Default                      string   // "none" if there is no value
	Env                          string   // empty if it has no variable
	Status                       string   // implemented, ignored or refused
	Values                       []string // those it may have; nil for any
	Harmless                     []string // those that are as good as the default
	Planned, Own, Restart        bool
}

// Reference describes every table and key.
func Reference() []Table {
	var out []Table
	for _, t := range tables {
		ref := Table{Name: t.name, File: t.file, Doc: t.doc, List: t.list, Refused: t.refused}
		for _, k := range keysOf(t.typ) {
			ft := t.typ.Field(k.index).Type
			ref.Keys = append(ref.Keys, Key{
				Name: k.name, Alias: k.alias, Type: typeName(ft), Unit: k.unit, Doc: k.doc, Default: defaultName(k),
				Env: t.variable(k), Status: k.status, Values: k.choices(ft), Harmless: k.harmless,
				Planned: k.planned, Own: k.own, Restart: k.restart,
			})
		}
		out = append(out, ref)
	}
	return out
}

// variable is the name of a key's environment variable, empty if it has none.
func (t table) variable(k key) string {
	if !t.fromEnv {
		return ""
	}
	return k.variable()
}

func defaultName(k key) string {
	switch {
	case k.required:
		return "required"
	case k.optional():
		return "none"
	}
	return k.def
}

func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t == durationType, t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "table"
	case t.Kind() == reflect.Interface:
		return "any"
	}
	return "string"
}
