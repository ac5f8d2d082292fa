package frontend

import (
	"slices"
	"testing"
)

// ended reports whether a coroutine that is not in use is there no longer.
func ended(co *coroutine) bool {
	co.do = func() {}
	_, lives := co.next()
	return !lives
}

func TestACoroutineRunsOneLoginAfterAnother(t *testing.T) {
	var cs coroutines
	var said []string
	var co *coroutine
	login := func(name string) func() {
		return func() {
			said = append(said, name+" begins")
			if !co.wait() {
				said = append(said, name+" is to end")
				return
			}
			said = append(said, name+" goes on")
		}
	}

	co = cs.take(login("first"))
	if co.goOn() || !co.goOn() {
		t.Fatal("the first login should wait once and then be over")
	}
	cs.give(co)
	if again := cs.take(login("second")); again != co {
		t.Fatal("the second login should run in the coroutine of the first")
	}
	if co.goOn() {
		t.Fatal("the second login should wait")
	}
	co.stop()

	if want := []string{"first begins", "first goes on", "second begins", "second is to end"}; !slices.Equal(said, want) {
		t.Errorf("it went %q, want %q", said, want)
	}
	if !ended(co) {
		t.Error("the coroutine lives on after it was stopped in a login")
	}
}

func TestCoroutinesThatAreNotNeededEnd(t *testing.T) {
	var cs coroutines
	run := func(n int) (used []*coroutine) {
		for range n {
			co := cs.take(func() {})
			used = append(used, co)
			co.goOn()
		}
		for _, co := range used {
			cs.give(co)
		}
		return used
	}

	storm := run(maxCoroutines + 1)
	if !ended(storm[maxCoroutines]) {
		t.Errorf("more than %d are kept", maxCoroutines)
	}
	cs.sweep()
	if n := len(cs.free); n != maxCoroutines {
		t.Fatalf("%d are kept up to the sweep behind it, want %d", n, maxCoroutines)
	}
	needed := run(2)
	cs.sweep()
	if len(cs.free) != 2 || !slices.Contains(cs.free, needed[0]) || !slices.Contains(cs.free, needed[1]) {
		t.Fatalf("%d are kept where two were needed", len(cs.free))
	}
	cs.sweep()
	if cs.free != nil {
		t.Errorf("%d are kept where none was needed", len(cs.free))
	}
	for i, co := range storm {
		if !ended(co) {
			t.Errorf("coroutine %d lives on", i)
		}
	}
}

func TestASweepAfterAllHaveEndedFindsNone(t *testing.T) {
	var cs coroutines
	co := cs.take(func() {})
	co.goOn()
	cs.give(co)
	cs.sweep() // from now on it counts as unused

	cs.end(len(cs.free))
	cs.sweep()

	if cs.free != nil {
		t.Errorf("%d are there after all were ended", len(cs.free))
	}
}
