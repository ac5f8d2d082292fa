package backend_test

import (
	"testing"

	"github.com/pgebb/pgebb/backend"
)

func TestASetMeansTheSameOnAHostWithOtherDefaults(t *testing.T) {
	home := backend.NewGreeting([]backend.Param{{Name: "DateStyle", Value: "ISO, MDY"}, {Name: "TimeZone", Value: "UTC"}, {Name: "in_hot_standby", Value: "off"}})
	like := backend.NewGreeting([]backend.Param{{Name: "in_hot_standby", Value: "on"}, {Name: "TimeZone", Value: "UTC"}, {Name: "DateStyle", Value: "ISO, MDY"}})
	other := backend.NewGreeting([]backend.Param{{Name: "DateStyle", Value: "ISO, MDY"}, {Name: "TimeZone", Value: "Europe/Berlin"}})
	set := func(pairs ...string) backend.Set {
		var params []backend.Param
		for i := 0; i < len(pairs); i += 2 {
			params = append(params, backend.Param{Name: pairs[i], Value: pairs[i+1]})
		}
		return backend.MakeSet(params)
	}
	if !home.Alike(like) || home.Alike(other) {
		t.Error("in_hot_standby makes a difference, or TimeZone does not")
	}
	for _, test := range []struct {
		host       *backend.Greeting
		set, there backend.Set
	}{
		{like, set(), set()},
		{like, set("TimeZone", "Asia/Tokyo"), set("TimeZone", "Asia/Tokyo")},
		{other, set(), set("TimeZone", "UTC")},
		{other, set("TimeZone", "Europe/Berlin"), set()},
		{other, set("TimeZone", "Asia/Tokyo"), set("TimeZone", "Asia/Tokyo")},
		{other, set("search_path", "a"), set("TimeZone", "UTC", "search_path", "a")},
	} {
		if got := test.host.Adopt(test.set, home); got != test.there {
			t.Errorf("%v is %v there, want %v", test.set.Params(), got.Params(), test.there.Params())
		}
		if back := home.Adopt(test.there, test.host); back != test.set {
			t.Errorf("%v comes back as %v", test.set.Params(), back.Params())
		}
	}
}
