package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is one key of a table, as its struct tag describes it.
type key struct {
	name, alias, def, unit, env, status, doc string
	values                                   []string
	planned, own, restart, secret, required  bool
	index                                    int // of the struct field
}

// keysOf reads the tags of a table's struct.
func keysOf(table reflect.Type) []key {
	var keys []key
	for i := range table.NumField() {
		tag := table.Field(i).Tag
		name, ok := tag.Lookup("toml")
		if !ok {
			continue
		}
		k := key{
			name: name, alias: tag.Get("alias"), def: tag.Get("default"), unit: tag.Get("unit"), env: tag.Get("env"),
			status: tag.Get("status"), doc: tag.Get("doc"), planned: tag.Get("planned") == "yes", own: tag.Get("own") == "yes",
			restart: tag.Get("restart") == "yes", secret: tag.Get("secret") == "yes", required: tag.Get("required") == "yes", index: i,
		}
		if v := tag.Get("values"); v != "" {
			k.values = strings.Split(v, "|")
		}
		keys = append(keys, k)
	}
	return keys
}

// decoder fills tables and gathers what is wrong with them.
type decoder struct {
	env      func(string) (string, bool)
	problems Problems
}

func (d *decoder) problem(at place, key, suggestion, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		File: at.file, Line: at.line, Key: key, Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
	})
}

func (d *decoder) warn(at place, key, format string, args ...any) {
	d.problem(at, key, "", format, args...)
	d.problems[len(d.problems)-1].Warning = true
}

// table fills the struct that into points to from a table of a file, then from the
// environment if fromEnv is set, then from the defaults.
func (d *decoder) table(name string, raw rawTable, into any, fromEnv bool) {
	v := reflect.ValueOf(into).Elem()
	keys := keysOf(v.Type())
	var names []string
	known := map[string]key{}
	for _, k := range keys {
		names = append(names, k.name)
		known[k.name] = k
		if k.alias != "" {
			known[k.alias] = k
		}
	}
	given := map[string]bool{}
	for _, entry := range raw.entries() {
		path := name + "." + entry.key
		k, ok := known[entry.key]
		if !ok {
			d.problem(entry.place, path, nearest(entry.key, names), "unknown key")
			continue
		}
		given[k.name] = true
		if err := setValue(v.Field(k.index), entry.value, k); err != nil {
			d.problem(entry.place, path, suggestValue(entry.value, k), "%v", err)
			continue
		}
		d.judge(entry.place, path, v.Field(k.index), k)
	}
	for _, k := range keys {
		if given[k.name] {
			continue
		}
		if k.required {
			d.problem(raw.place, name+"."+k.name, "", "the key is missing")
			continue
		}
		if fromEnv && d.fromEnv(name, v.Field(k.index), k) {
			continue
		}
		if k.def != "" {
			if err := setText(v.Field(k.index), k.def, k); err != nil {
				panic(fmt.Sprintf("bug: default of %s.%s: %v", name, k.name, err))
			}
		}
	}
}

// fromEnv takes a value from the environment, if there is one.
func (d *decoder) fromEnv(table string, v reflect.Value, k key) bool {
	name := k.env
	if name == "-" {
		return false
	}
	if name == "" {
		name = "PGDOG_" + strings.ToUpper(k.name)
	}
	text, ok := d.env(name)
	if !ok {
		return false
	}
	if err := setText(v, text, k); err != nil {
		d.problem(place{file: "environment"}, name, "", "%v", err)
		return true
	}
	d.judge(place{file: "environment"}, table+"."+k.name, v, k)
	return true
}

// judge complains about a value that cannot be honoured.
func (d *decoder) judge(at place, path string, v reflect.Value, k key) {
	if k.status == "implemented" {
		return
	}
	def := reflect.New(v.Type()).Elem()
	if k.def != "" {
		_ = setText(def, k.def, k) // every default is checked by table
	}
	if reflect.DeepEqual(v.Interface(), def.Interface()) {
		return
	}
	when := "is not supported"
	if k.planned {
		when = "is not implemented yet"
	}
	if k.status == "refused" {
		d.problem(at, path, "", "this %s, and to ignore it would mislead: remove it", when)
		return
	}
	d.warn(at, path, "this %s and is ignored", when)
}

// setValue sets a field to a value of a TOML file.
func setValue(v reflect.Value, value any, k key) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return setValue(v.Elem(), value, k)
	}
	switch x := value.(type) {
	case string:
		if v.Kind() == reflect.String || implementsText(v) {
			return setText(v, x, k)
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(x)
			return nil
		}
	case int64:
		switch {
		case v.Type() == reflect.TypeFor[time.Duration]() || v.Kind() == reflect.Int:
			return setText(v, strconv.FormatInt(x, 10), k)
		case v.Kind() == reflect.Float64:
			v.SetFloat(float64(x))
			return nil
		}
	case float64:
		if v.Kind() == reflect.Float64 {
			v.SetFloat(x)
			return nil
		}
	case []any:
		if v.Type() == reflect.TypeFor[[]string]() {
			return setStrings(v, x)
		}
	}
	return fmt.Errorf("the value must be %s, not %s", wanted(v, k), describe(value))
}

func setStrings(v reflect.Value, list []any) error {
	var out []string
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return fmt.Errorf("the value must be a list of strings, and one of them is %s", describe(x))
		}
		out = append(out, s)
	}
	v.Set(reflect.ValueOf(out))
	return nil
}

func implementsText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

// setText sets a field to a value that is text, as in the environment, a database
// URL or a default.
func setText(v reflect.Value, text string, k key) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return setText(v.Elem(), text, k)
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return setDuration(v, text)
	case v.Kind() == reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("the value must be %s, not %q", wanted(v, k), text)
		}
		v.SetInt(n)
	case v.Kind() == reflect.Bool:
		b, err := parseBool(text)
		if err != nil {
			return err
		}
		v.SetBool(b)
	case v.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("the value must be a number, not %q", text)
		}
		v.SetFloat(f)
	case v.Kind() == reflect.String:
		if k.values != nil && !slices.Contains(k.values, text) {
			return fmt.Errorf("%q is none of %s", text, strings.Join(k.values, ", "))
		}
		v.SetString(text)
	}
	return nil
}

func setDuration(v reflect.Value, text string) error {
	if text == "off" {
		v.SetInt(int64(Off))
		return nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return fmt.Errorf("the value must be a number of milliseconds, not %q", text)
	}
	if ms > int64(math.MaxInt64/time.Millisecond) {
		v.SetInt(int64(Off))
		return nil
	}
	v.SetInt(ms * int64(time.Millisecond))
	return nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on", "t", "y":
		return true, nil
	case "false", "0", "no", "off", "f", "n":
		return false, nil
	}
	return false, fmt.Errorf("the value must be true or false, not %q", text)
}

// wanted says what a field takes.
func wanted(v reflect.Value, k key) string {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return "a number of milliseconds"
	case v.Kind() == reflect.Int && k.unit == "bytes":
		return "a number of bytes"
	case v.Kind() == reflect.Int:
		return "a number that is not negative"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.Kind() == reflect.Float64:
		return "a number"
	case v.Type() == reflect.TypeFor[[]string]():
		return "a list of strings"
	}
	return "a string"
}

func describe(value any) string {
	switch x := value.(type) {
	case string:
		return fmt.Sprintf("the string %q", x)
	case []any:
		return "a list"
	case map[string]any, []map[string]any:
		return "a table"
	default:
		return fmt.Sprint(x)
	}
}

// suggestValue finds what a misspelt value of a choice was meant to be.
func suggestValue(value any, k key) string {
	s, ok := value.(string)
	if !ok {
		return ""
	}
	choices := k.values
	switch k.name {
	case "pooler_mode":
		choices = poolerModes
	case "auth_type":
		choices = authTypes
	case "connection_recovery", "client_connection_recovery":
		choices = recoveries
	}
	return nearest(s, choices)
}
