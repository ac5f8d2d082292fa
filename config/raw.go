package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// place is where something stands; the zero value is nowhere.
type place struct {
	file string
	line int
}

// rawTable is a table as it stands in a file.
type rawTable struct {
	place  place
	values map[string]any
	lines  map[string]int // of its keys
}

// rawEntry is one key of a table with its value.
type rawEntry struct {
	key   string
	value any
	place place
}

// entries returns the keys in the order of the file.
func (t rawTable) entries() []rawEntry {
	var out []rawEntry
	for k, v := range t.values {
		out = append(out, rawEntry{k, v, place{t.place.file, t.lines[k]}})
	}
	slices.SortFunc(out, func(a, b rawEntry) int {
		if a.place.line != b.place.line {
			return a.place.line - b.place.line
		}
		return strings.Compare(a.key, b.key)
	})
	return out
}

// rawFile is a file as it stands.
type rawFile struct {
	path   string
	values map[string]any
	lines  map[string][]tableLines // by table name, one for each time that it is opened
}

// tableLines says where a table and its keys stand.
type tableLines struct {
	line int
	keys map[string]int
}

// readFile reads a TOML file. One that is not there is empty, with a warning.
func (d *decoder) readFile(path string) rawFile {
	f := rawFile{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.warn(place{file: path}, "", "the file does not exist; defaults are used")
		return f
	}
	if err != nil {
		d.problem(place{file: path}, "", "", "%v", err)
		return f
	}
	return d.parse(path, string(b))
}

func (d *decoder) parse(path, text string) rawFile {
	f := rawFile{path: path}
	if _, err := toml.Decode(text, &f.values); err != nil {
		at := place{file: path}
		message := err.Error()
		var pe toml.ParseError
		if errors.As(err, &pe) {
			at.line, message = pe.Position.Line, pe.Message
			if message == "" {
				message = strings.TrimSpace(pe.Error())
			}
		}
		d.problem(at, "", "", "this is not TOML: %s", message)
		f.values = nil
		return f
	}
	f.lines = findLines(text)
	return f
}

var (
	headerLine = regexp.MustCompile(`^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$`)
	keyLine    = regexp.MustCompile(`^\s*"?([A-Za-z0-9_.-]+)"?\s*=`)
)

// findLines finds where tables and keys stand, which the TOML package does not say.
// Inside of strings over several lines it can be fooled, to the effect of a wrong
// line number in an error message.
func findLines(text string) map[string][]tableLines {
	lines := map[string][]tableLines{"": {{0, map[string]int{}}}}
	table := ""
	for i, line := range strings.Split(text, "\n") {
		if m := headerLine.FindStringSubmatch(line); m != nil {
			table = strings.Trim(m[1], `"' `)
			lines[table] = append(lines[table], tableLines{i + 1, map[string]int{}})
			continue
		}
		if m := keyLine.FindStringSubmatch(line); m != nil {
			all := lines[table]
			all[len(all)-1].keys[m[1]] = i + 1
		}
	}
	return lines
}

// tables returns a table, or the tables of a list of them.
func (f rawFile) tables(name string) ([]rawTable, error) {
	var values []map[string]any
	switch v := f.values[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		values = []map[string]any{v}
	case []map[string]any:
		values = v
	default:
		return nil, fmt.Errorf("this must be a table, not %s", describe(v))
	}
	var out []rawTable
	for i, v := range values {
		t := rawTable{place: place{file: f.path}, values: v}
		if i < len(f.lines[name]) {
			t.place.line, t.lines = f.lines[name][i].line, f.lines[name][i].keys
		}
		out = append(out, t)
	}
	return out, nil
}

// place says where a table or a key outside of tables first stands.
func (f rawFile) placeOf(name string) place {
	if all := f.lines[name]; len(all) > 0 {
		return place{f.path, all[0].line}
	}
	for table, all := range f.lines { // [[sharded_tables.mapping]] opens sharded_tables
		if strings.HasPrefix(table, name+".") {
			return place{f.path, all[0].line}
		}
	}
	return place{f.path, f.lines[""][0].keys[name]}
}
