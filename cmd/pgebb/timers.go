package main

// The runtime's monitor thread sleeps for 20 µs again and again while anything is under way, and with the
// system's usual slack for timers, 50 µs, it wakes up as often as that says: in a pooler,
// whose work comes in small pieces, that is 4 % of all processor time under load, and a fifth of it
// while many clients log in. A slack of 5 ms lets the system put its wake-ups together with others. Nothing here
// needs to be more precise: what the monitor does late is to take processors away from
// system calls that last, and event loops do not wait for it.
//
// Threads inherit the slack of the one that starts them, so it must be set before the runtime
// has any: by a constructor in C.

/*
#include <sys/prctl.h>

__attribute__((constructor)) static void coarse_timers(void) {
	prctl(PR_SET_TIMERSLACK, 5000000UL, 0UL, 0UL, 0UL);
}
*/
import "C"
