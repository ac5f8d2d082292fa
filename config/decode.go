package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// decoder fills tables and gathers what is wrong with them.
type decoder struct {
	env      func(string) (string, bool)
	problems Problems
	repeats  map[string]*repeat // of warnings, by file, key and text

	origins map[string]string // where the value of a key comes from, by table and key; the default if it is not there

	secrets []string // files that have some, each once

	verify           TLSVerify  // of [general], once that is read
	broken           bool       // a file could not be read, so much may be missing
	databases, users []rawTable // what those of the configuration were made of
}

// repeat is a warning that holds for several places of a file; only the first is
// told.
type repeat struct{ index, more int }

func (d *decoder) problem(at place, key, suggestion, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		File: at.file, Line: at.line, Key: key, Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
	})
}

func (d *decoder) warn(at place, key, format string, args ...any) {
	text := at.file + "\x00" + key + "\x00" + fmt.Sprintf(format, args...)
	if r := d.repeats[text]; r != nil {
		r.more++
		return
	}
	d.problem(at, key, "", format, args...)
	d.problems[len(d.problems)-1].Warning = true
	if d.repeats == nil {
		d.repeats = map[string]*repeat{}
	}
	d.repeats[text] = &repeat{index: len(d.problems) - 1}
}

// result returns the problems, those of a file by line.
func (d *decoder) result() Problems {
	for _, r := range d.repeats {
		if r.more > 0 {
			d.problems[r.index].Message += fmt.Sprintf(" (and %d more of these)", r.more)
		}
	}
	files := map[string]int{}
	for _, p := range d.problems {
		if _, ok := files[p.File]; !ok {
			files[p.File] = len(files)
		}
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return d.problems
}

// fill sets the struct that into points to from a table of a file, what is not there
// from the environment if the table has variables, and the rest to its defaults.
func (d *decoder) fill(kind table, raw rawTable, into any) {
	v := reflect.ValueOf(into).Elem()
	keys := keysOf(v.Type())
	given := d.fromFile(kind, raw, v, keys)
	for _, k := range keys {
		field := v.Field(k.index)
		switch {
		case given[k.name]:
		case k.required:
			d.problem(raw.place(), kind.name+"."+k.name, "", "the key is missing")
		case kind.fromEnv && d.fromEnv(kind.name, field, k):
			d.comesFrom(kind, k, k.variable())
		default:
			setDefault(field, k)
		}
	}
}

// fromFile sets what a file sets, and returns the names of those keys.
func (d *decoder) fromFile(kind table, raw rawTable, v reflect.Value, keys []key) map[string]bool {
	given := map[string]bool{}
	for _, name := range raw.keys() {
		path, at := kind.name+"."+name, raw.placeOf(name)
		k, ok := find(keys, name)
		if !ok {
			d.unknown(kind, at, name, keys)
			continue
		}
		if given[k.name] {
			d.problem(at, path, "", "%s is another name of %s, and both are there", k.alias, k.name)
			continue
		}
		given[k.name] = true
		d.comesFrom(kind, k, at.String())
		if k.secret && raw.values[name] != "" && !slices.Contains(d.secrets, raw.file) {
			d.secrets = append(d.secrets, raw.file)
		}
		value, field := raw.values[name], v.Field(k.index)
		if err := setValue(field, value, k); err != nil {
			s, _ := value.(string)
			d.problem(at, path, nearest(s, k.choices(field.Type())), "%v", err)
			setDefault(field, k)
			continue
		}
		d.judge(at, path, field, k)
	}
	return given
}

// comesFrom notes where the value of a key comes from, if there is only one such table.
func (d *decoder) comesFrom(kind table, k key, source string) {
	if kind.list {
		return
	}
	if d.origins == nil {
		d.origins = map[string]string{}
	}
	d.origins[kind.name+"."+k.name] = source
}

func find(keys []key, name string) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name || k.alias != "" && k.alias == name })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

func (d *decoder) unknown(kind table, at place, name string, keys []key) {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	if kind.tolerant {
		d.warn(at, kind.name+"."+name, "unknown key%s", didYouMean(name, names))
		return
	}
	d.problem(at, kind.name+"."+name, nearest(name, names), "unknown key")
}

// fromEnv takes a value from the environment, if there is one. An empty variable
// counts as none.
func (d *decoder) fromEnv(table string, v reflect.Value, k key) bool {
	name := k.variable()
	if name == "" {
		return false
	}
	text, ok := d.env(name)
	if !ok || text == "" {
		return false
	}
	at := place{file: "environment"}
	if err := setText(v, text, k); err != nil {
		d.problem(at, name, nearest(text, k.choices(v.Type())), "%v", err)
		setDefault(v, k)
		return true
	}
	d.judge(at, name, v, k)
	return true
}

// judge complains about a value that cannot be honoured.
func (d *decoder) judge(at place, path string, v reflect.Value, k key) {
	if k.status == implemented || k.required {
		return
	}
	def := reflect.New(v.Type()).Elem()
	setDefault(def, k)
	text := show(v)
	if reflect.DeepEqual(v.Interface(), def.Interface()) || slices.Contains(k.harmless, text) {
		return
	}
	when := "is not supported"
	if k.planned {
		when = "is not implemented yet"
	}
	if k.status == ignored {
		d.warn(at, path, "this %s and is ignored", when)
		return
	}
	do := "remove it"
	if k.def != "" {
		do = "remove it or set it to " + strings.Join(append([]string{k.def}, k.harmless...), " or ")
	}
	d.problem(at, path, "", "this %s, and to ignore it would mislead: %s", when, do)
}

// didYouMean is a suggestion for the end of a message.
func didYouMean(word string, candidates []string) string {
	if s := nearest(word, candidates); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return ""
}
