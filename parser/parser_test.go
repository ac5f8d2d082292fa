package parser_test

import (
	"strings"
	"testing"

	"github.com/pgebb/pgebb/parser"
)

func TestBeginsTransaction(t *testing.T) {
	for sql, want := range map[string]bool{
		"BEGIN":                              true,
		"begin":                              true,
		"Begin;":                             true,
		"BEGIN ISOLATION LEVEL SERIALIZABLE": true,
		"START TRANSACTION READ ONLY":        true,
		"start\n\ttransaction":               true,
		"  ;; /* a /* nested */ one */ -- x\n BEGIN": true,
		"start /* x */ transaction":                  true,
		"":                                           false,
		";":                                          false,
		"/* never closed BEGIN":                      false,
		"-- BEGIN":                                   false,
		"SELECT 'BEGIN'":                             false,
		"beginning":                                  false,
		"begin_x":                                    false,
		"START":                                      false,
		"START REPLICATION":                          false,
		"COMMIT":                                     false,
		"SELECT 1; BEGIN":                            false,
	} {
		if got := (parser.Scanner{}).BeginsTransaction([]byte(sql)); got != want {
			t.Errorf("BeginsTransaction(%q) = %v, want %v", sql, got, want)
		}
	}
}

func FuzzBeginsTransaction(f *testing.F) {
	for _, sql := range []string{"BEGIN", "/*/**/*/begin", "-- x\rstart transaction", "/*", "--", "\x00begin"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		got := parser.Scanner{}.BeginsTransaction([]byte(sql))
		if got && !strings.Contains(strings.ToLower(sql), "begin") && !strings.Contains(strings.ToLower(sql), "start") {
			t.Errorf("BeginsTransaction(%q) without either word", sql)
		}
		if again := (parser.Scanner{}).BeginsTransaction([]byte(" ; /* */ " + sql)); again != got {
			t.Errorf("BeginsTransaction(%q) = %v, behind blanks %v", sql, got, again)
		}
	})
}
