package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// place is where something stands; the zero value is nowhere.
type place struct {
	file string // or what else it is, as the environment
	line int
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// rawTable is a table as it stands in a file.
type rawTable struct {
	file   string
	values map[string]any
	node   *node // where it and its keys stand; nil if not known
}

func (t rawTable) place() place {
	if t.node == nil {
		return place{file: t.file}
	}
	return place{t.file, t.node.line}
}

// placeOf returns the place of a key, or of the table if the key is not there.
func (t rawTable) placeOf(keys ...string) place {
	for _, k := range keys {
		if n := t.node.at(k); n.line > 0 {
			return place{t.file, n.line}
		}
	}
	return t.place()
}

// keys returns the keys in the order of the file.
func (t rawTable) keys() []string {
	var out []string
	for k := range t.values {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int {
		if la, lb := t.node.at(a).line, t.node.at(b).line; la != lb {
			return la - lb
		}
		return strings.Compare(a, b)
	})
	return out
}

// readFile reads a TOML file. One that is not there is empty, with a warning.
func (d *decoder) readFile(path string) rawTable {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		message := "the file does not exist, so defaults are used"
		if whole, err := filepath.Abs(path); err == nil && whole != path {
			message = "the file does not exist (" + whole + "), so defaults are used"
		}
		d.warn(place{file: path}, "", "%s", message)
		return rawTable{file: path}
	case err != nil:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the path is told anyway
		}
		d.broken = true
		d.problem(place{file: path}, "", "", "the file cannot be read: %v", err)
		return rawTable{file: path}
	}
	return d.parse(path, string(b))
}

func (d *decoder) parse(path, text string) rawTable {
	f := rawTable{file: path}
	if _, err := toml.Decode(text, &f.values); err != nil {
		at, message := place{file: path}, err.Error()
		var pe toml.ParseError
		if errors.As(err, &pe) {
			at.line, message = pe.Position.Line, pe.Message
			if message == "" {
				message = strings.TrimPrefix(pe.Error(), "toml: ")
			}
		}
		d.broken = true
		d.problem(at, "", "", "this is not TOML: %s", message)
		f.values = nil
		return f
	}
	f.node = findLines(text)
	return f
}

// tables returns a table of a file, or all of a list of them.
func (d *decoder) tables(f rawTable, name string) []rawTable {
	var out []rawTable
	n := f.node.at(name)
	item := func(i int, v map[string]any) {
		t := rawTable{file: f.file, values: v, node: n}
		if i < len(n.items) {
			t.node = n.items[i]
		}
		out = append(out, t)
	}
	switch v := f.values[name].(type) {
	case nil:
	case map[string]any:
		item(0, v)
	case []map[string]any:
		for i, v := range v {
			item(i, v)
		}
	case []any: // in brackets and braces on one line
		for i, v := range v {
			m, ok := v.(map[string]any)
			if !ok {
				d.problem(f.placeOf(name), name, "", "this must be a list of tables, and one of them is %s", describe(v))
				return nil
			}
			item(i, m)
		}
	default:
		d.problem(f.placeOf(name), name, "", "this must be a table, not %s", describe(v))
	}
	return out
}

// one returns a table that can be there only once.
func (d *decoder) one(f rawTable, name string) rawTable {
	tables := d.tables(f, name)
	if len(tables) == 0 {
		return rawTable{file: f.file}
	}
	if len(tables) > 1 {
		d.problem(tables[1].place(), name, "", "this table can be there only once: write it as [%s]", name)
	}
	return tables[0]
}

// describe says what kind of value one is, and which if that fits.
func describe(value any) string {
	switch x := value.(type) {
	case string:
		return fmt.Sprintf("the string %q", x)
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	default:
		return fmt.Sprint(x)
	}
}
