package frontend

import "iter"

// coroutines are those of one loop that logins have run in and others may run in. In a storm of logins
// a stack that has grown once is worth keeping; so it is until a sweep finds that it was not needed
// since the one before. They belong to the loop, and end with Close.
type coroutines struct {
	free   []*coroutine
	unused int // the fewest that were free since the last sweep
}

// maxCoroutines is how many are kept; a stack has 8 KiB, or 16.
const maxCoroutines = 64

// coroutine runs one login after another.
type coroutine struct {
	do    func()              // what is to be run next, or is under way
	next  func() (bool, bool) // goes on with it, up to where it waits, or with (true, true) has ended
	stop  func()              // ends it: what is under way cannot wait any more
	yield func(bool) bool     // for wait
}

// take is a coroutine that is to do something.
func (cs *coroutines) take(do func()) *coroutine {
	n := len(cs.free) - 1
	if n < 0 {
		co := &coroutine{do: do}
		co.next, co.stop = iter.Pull(co.run)
		return co
	}
	co := cs.free[n]
	cs.free[n] = nil
	cs.free, cs.unused = cs.free[:n], min(cs.unused, n)
	co.do = do
	return co
}

// give takes one back that has done what it had to.
func (cs *coroutines) give(co *coroutine) {
	if len(cs.free) == maxCoroutines {
		co.stop()
		return
	}
	cs.free = append(cs.free, co)
}

// sweep ends those that were not needed since it was last called.
func (cs *coroutines) sweep() {
	cs.end(cs.unused)
}

// end ends the n that have waited longest.
func (cs *coroutines) end(n int) {
	for _, co := range cs.free[:n] {
		co.stop()
	}
	cs.free = append(cs.free[:0], cs.free[n:]...)
	clear(cs.free[len(cs.free):cap(cs.free)])
	if len(cs.free) == 0 {
		cs.free = nil
	}
	cs.unused = len(cs.free)
}

func (co *coroutine) run(yield func(bool) bool) {
	co.yield = yield
	for {
		co.do()
		co.do = nil
		if !yield(true) {
			return
		}
	}
}

// goOn goes on up to where what it does has to wait again; over says that it has ended.
func (co *coroutine) goOn() (over bool) {
	over, _ = co.next()
	return over
}

// wait goes back to the loop until that goes on; false if it is to end. It is for what the coroutine does.
func (co *coroutine) wait() bool { return co.yield(false) }
