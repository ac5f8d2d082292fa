package backend

import (
	"reflect"
	"testing"
)

func TestEqualSetsAreTheSame(t *testing.T) {
	a := MakeSet([]Param{{"TimeZone", "UTC"}, {"search_path", "a, b"}})
	b := MakeSet([]Param{{"search_path", "x"}, {"TimeZone", "UTC"}, {"search_path", "a, b"}})
	if a != b {
		t.Error("sets with the same parameters differ")
	}
	if a == MakeSet([]Param{{"TimeZone", "UTC"}}) {
		t.Error("sets with different parameters are equal")
	}
	if a.Without("timezone").Without("SEARCH_PATH") != (Set{}) {
		t.Error("a set without anything is not the empty set")
	}
	if MakeSet(nil).With("a", "") == (Set{}) {
		t.Error("an empty value is no value")
	}
}

func TestNamesAreComparedWithoutCase(t *testing.T) {
	s := MakeSet([]Param{{"timezone", "UTC"}, {"DateStyle", "ISO"}}).With("TimeZone", "CET")
	if v, ok := s.Get("TIMEZONE"); !ok || v != "CET" {
		t.Errorf("TIMEZONE = %q, %v", v, ok)
	}
	if n := len(s.Params()); n != 2 {
		t.Errorf("%d parameters, want 2", n)
	}
}

func TestChangeSetsWhatDiffersAndResetsTheRest(t *testing.T) {
	from := MakeSet([]Param{{"TimeZone", "UTC"}, {"application_name", "a"}, {"work_mem", "1MB"}})
	to := MakeSet([]Param{{"TimeZone", "UTC"}, {"application_name", "b"}, {"search_path", "s"}})
	set, reset := change(from, to)
	if want := []Param{{"application_name", "b"}, {"search_path", "s"}}; !reflect.DeepEqual(set, want) {
		t.Errorf("set %v, want %v", set, want)
	}
	if want := []string{"work_mem"}; !reflect.DeepEqual(reset, want) {
		t.Errorf("reset %v, want %v", reset, want)
	}
	want := "SELECT pg_catalog.set_config('application_name', 'b', false), pg_catalog.set_config('search_path', 's', false), pg_catalog.set_config('work_mem', NULL, false)"
	if got := changeSQL(from, to); got != want {
		t.Errorf("changeSQL = %s", got)
	}
}

func TestQuoteIsSafeWhateverTheSettings(t *testing.T) {
	for in, want := range map[string]string{
		``: `''`, `a`: `'a'`, `it's`: `'it''s'`, `a\b`: `E'a\\b'`, `\'; DROP TABLE t; --`: `E'\\''; DROP TABLE t; --'`,
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestAGreetingTellsTheClientsValues(t *testing.T) {
	g := NewGreeting([]Param{{"server_version", "15"}, {"TimeZone", "UTC"}, {"DateStyle", "ISO, MDY"}})
	s := g.reported(Set{}, "TimeZone", "CET")
	if v, _ := s.Get("TimeZone"); v != "CET" {
		t.Errorf("TimeZone = %q", v)
	}
	if got, want := g.For(s), []Param{{"server_version", "15"}, {"TimeZone", "CET"}, {"DateStyle", "ISO, MDY"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("For = %v, want %v", got, want)
	}
	if g.reported(s, "TimeZone", "UTC") != (Set{}) {
		t.Error("a value as at the login is kept")
	}
	if g.reported(Set{}, "server_version", "16") != (Set{}) {
		t.Error("a parameter that nobody can set is tracked")
	}
}
