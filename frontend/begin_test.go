package frontend

import "testing"

func TestPlainBegin(t *testing.T) {
	for sql, want := range map[string]string{
		"BEGIN": "BEGIN", "begin;": "BEGIN", " Begin \n Work ; ": "BEGIN", "BEGIN TRANSACTION": "BEGIN", "START  TRANSACTION;": "START TRANSACTION",
		"": "", ";": "", "BEGIN READ ONLY": "", "BEGIN; SELECT 1": "", "BEGIN ISOLATION LEVEL SERIALIZABLE": "", "START": "", "BEGIN /* x */": "",
		"BEGINWORK": "", "COMMIT": "",
	} {
		if got := plainBegin([]byte(sql)); got != want {
			t.Errorf("%q is %q, want %q", sql, got, want)
		}
	}
}
