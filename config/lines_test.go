package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestLines(t *testing.T) {
	const text = "\ufeff# a comment with [brackets] and a = b\r\n" +
		`top = 1
"quoted \u006bey" = 2
[general] # comment
host = "a # b \" ["
port = 1
text = """
port = 2 \
[x]
"""""
other = '''
workers = 2
'''
list = [ 1, # one ]
  "]", { inner = 1, deep = [
  2 ] } ]
last = 1979-05-27 07:32:00
[ a . "b.c" ]
x.y = { z = 1, w.v = "}" }
[[databases]]
name = 'one' # it's
[[databases]]

name = 'two'
[databases.sub]
k = 1
[[databases.more]]
[[databases.more]]
k = 2
[inline]
t = [{a = 1}, {a = 2,
b = 3}]
`
	root := findLines(text)
	for path, want := range map[string]int{
		"top": 2, "quoted key": 3, "general": 4, "general/host": 5, "general/port": 6, "general/text": 7, "general/other": 11,
		"general/list": 14, "general/list/2/inner": 15, "general/list/2/deep": 15, "general/last": 17,
		"a": 18, "a/b.c": 18, "a/b.c/x/y": 19, "a/b.c/x/y/z": 19, "a/b.c/x/y/w/v": 19,
		"databases/0": 20, "databases/0/name": 21, "databases/1": 22, "databases/1/name": 24, "databases/1/sub/k": 26,
		"databases/1/more/1/k": 29, "inline/t/0/a": 31, "inline/t/1/b": 32, "nothing": 0, "general/workers": 0,
	} {
		n := root
		for _, part := range strings.Split(path, "/") {
			var i int
			if _, err := fmt.Sscan(part, &i); err == nil && i < len(n.items) {
				n = n.items[i]
			} else {
				n = n.at(part)
			}
		}
		if n.line != want {
			t.Errorf("%s stands in line %d, want %d", path, n.line, want)
		}
	}
	if _, err := toml.Decode(text, &map[string]any{}); err != nil {
		t.Errorf("the text of this test is not TOML: %v", err)
	}
}

// FuzzLines holds that every key that the TOML package finds in a text has a line of
// that text, and that what is no TOML does no harm.
func FuzzLines(f *testing.F) {
	f.Add("[a]\nb = 1\n[[c]]\nd.e = [{f = '''\n'''}]\n")
	f.Add("\"a\\\"b\" = \"\"\"\n\\\"\"\"\"\n[x.'y z']\n")
	f.Fuzz(func(t *testing.T, text string) {
		root := findLines(text)
		meta, err := toml.Decode(text, &map[string]any{})
		if err != nil {
			return
		}
		last := strings.Count(text, "\n") + 1
		for _, k := range meta.Keys() {
			if !hasLine(root, k, last) {
				t.Errorf("%q has no line in %q", k, text)
			}
		}
	})
}

// hasLine reports whether a key stands somewhere in a node or its items.
func hasLine(n *node, path []string, last int) bool {
	if len(path) == 0 {
		return n.line > 0 && n.line <= last
	}
	for _, item := range n.items {
		if hasLine(item, path, last) {
			return true
		}
	}
	c := n.keys[path[0]]
	return c != nil && hasLine(c, path[1:], last)
}
