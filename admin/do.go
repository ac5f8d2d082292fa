package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// lookAgain is how often a command that waits looks whether its time has come.
const lookAgain = 20 * time.Millisecond

// stateCommands are those that stop and start traffic.
func stateCommands() []Command {
	return []Command{
		{
			Names: []string{"PAUSE"}, Args: "[[user] database]", Dialect: PgDog, run: pause,
			Doc: "Make clients wait from their next transaction on, and close idle servers, the others when they are free. It answers at once; SHOW POOLS tells when sv_total is 0. While paused, nobody waits too long: checkout_timeout begins with RESUME.",
		},
		{
			Names: []string{"PAUSE"}, Args: "[database]", Dialect: PgBouncer, run: pauseAndWait,
			Doc: "Make clients wait from their next transaction on, and close servers; answers when no server is in use any more. To cancel it, or to leave before it has answered, resumes.",
		},
		{
			Names: []string{"RESUME"}, Args: "[[user] database]", Dialect: both, Tag: "RESUME",
			Doc: "End PAUSE, MAINTENANCE and KILL. It never fails for a database that there is.", run: withScope(Control.Resume),
		},
		{
			Names: []string{"RECONNECT"}, Args: "[[user] database]", Dialect: both, Tag: "RECONNECT",
			Doc: "Close every server as soon as it is free, so that new ones are made.", run: withScope(Control.Reconnect),
		},
		{
			Names: []string{"WAIT_CLOSE"}, Args: "[database]", Dialect: both, Tag: "WAIT_CLOSE",
			Doc: "Answer when the servers that RECONNECT or RELOAD was for are closed.", run: waitClose,
		},
		{
			Names: []string{"MAINTENANCE"}, Args: "ON|OFF [database]", Dialect: both, Tag: "MAINTENANCE", run: maintain,
			Doc: "Make clients wait from their next transaction on, for as long as it takes; servers stay open.",
		},
		{
			Names: []string{"KILL"}, Args: "[database]", Dialect: both, Tag: "KILL", run: withScope(Control.Kill),
			Doc: "PAUSE, and close all clients and servers at once. RESUME ends it.",
		},
		{
			Names: []string{"KILL_CLIENT"}, Args: "id", Dialect: both, Tag: "KILL_CLIENT", run: killClient,
			Doc: "Close a client; its id is that of SHOW CLIENTS.",
		},
		{
			Names: []string{"DISABLE"}, Args: "database", Dialect: both, Tag: "DISABLE", run: disable(true),
			Doc: "Turn new clients of a database away. Those that are there stay.",
		},
		{
			Names: []string{"ENABLE"}, Args: "database", Dialect: both, Tag: "ENABLE", run: disable(false),
			Doc: "End DISABLE.",
		},
	}
}

// doCommands are the others that do something.
func doCommands() []Command {
	return []Command{
		{
			Names: []string{"RELOAD"}, Dialect: both, Tag: "RELOAD", run: reload,
			Doc: "Read the configuration files again, and forget SET. If they are refused, nothing changes and the answer says why; keys that only a restart changes are named in a notice.",
		},
		{
			Names: []string{"SET"}, Args: "key TO value", Dialect: both, Tag: "SET", ReadOnly: true, run: set,
			Doc: "Change a key of [general] until RESET, RELOAD or the end of the process. Run-time parameters of Postgres are accepted and do nothing.",
		},
		{
			Names: []string{"RESET"}, Args: "key|ALL", Dialect: both, Tag: "RESET", ReadOnly: true, run: reset,
			Doc: "Take a SET back, or all.",
		},
		{
			Names: []string{"RESET PREPARED", "RESET PREPARED STATEMENTS"}, Dialect: both, Tag: "RESET PREPARED",
			Doc: "Forget all prepared statements that no client uses.",
			run: func(r *request) ([][]*string, error) {
				r.notice(fmt.Sprintf("%d statements that nobody used were dropped", r.src.Control.ResetPrepared()), "")
				return nil, nil
			},
		},
		{
			Names: []string{"PROBE"}, Args: "'postgres://user:password@host:port/database'", Columns: bigint("latency"), Dialect: both, secret: true, Tag: "PROBE", run: probe,
			Doc: "Connect to a Postgres and say how many milliseconds that took.",
		},
		{
			Names: []string{"SHUTDOWN"}, Dialect: PgDog, Doc: "Shut down gracefully, as SIGINT does: each client may finish its transaction.",
			run: shutdown(ShutdownServers),
		},
		{
			Names: []string{"SHUTDOWN"}, Dialect: PgBouncer, Doc: "End at once.", run: shutdown(ShutdownNow),
		},
		{
			Names: []string{"SHUTDOWN WAIT_FOR_SERVERS"}, Tag: "SHUTDOWN", Dialect: both, Doc: "End when each client has finished its transaction.",
			run: shutdown(ShutdownServers),
		},
		{
			Names: []string{"SHUTDOWN WAIT_FOR_CLIENTS"}, Tag: "SHUTDOWN", Dialect: both, Doc: "Accept nobody any more, and end when all clients have left.",
			run: shutdown(ShutdownClients),
		},
	}
}

// scope reads what a command is for: nothing, a database, or a user and a database.
func (r *request) scope() (Scope, error) {
	switch words := texts(r.args); len(words) {
	case 0:
		return Scope{}, nil
	case 1:
		return Scope{Database: words[0]}, nil
	case 2:
		return Scope{User: words[0], Database: words[1]}, nil
	}
	return Scope{}, syntaxError("", "%s is for all databases, for one, or for a user at one", r.name)
}

func withScope(do func(Control, Scope) error) func(*request) ([][]*string, error) {
	return func(r *request) ([][]*string, error) {
		s, err := r.scope()
		if err != nil {
			return nil, err
		}
		return nil, do(r.src.Control, s)
	}
}

func pause(r *request) ([][]*string, error) {
	s, err := r.scope()
	if err != nil {
		return nil, err
	}
	return nil, r.src.Control.Pause(s)
}

// pauseAndWait waits until nothing is in use, as PgBouncer does.
func pauseAndWait(r *request) ([][]*string, error) {
	s, err := r.scope()
	if err != nil {
		return nil, err
	}
	if err := r.src.Control.Pause(s); err != nil {
		return nil, err
	}
	if err := r.wait(func() (int, error) { return r.src.Control.InUse(s) }); err != nil {
		_ = r.src.Control.Resume(s) // a database that has gone in the meantime is not paused
		return nil, err
	}
	return nil, nil
}

func waitClose(r *request) ([][]*string, error) {
	s, err := r.scope()
	if err != nil {
		return nil, err
	}
	return nil, r.wait(func() (int, error) { return r.src.Control.Outdated(s) })
}

// wait waits until nothing is left, or the operator leaves or cancels.
func (r *request) wait(left func() (int, error)) error {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		if n, err := left(); n == 0 || err != nil {
			return err
		}
		select {
		case <-r.ctx.Done():
			return &commandError{"57014", "canceling " + r.name + " due to user request", ""}
		case <-ticker.C:
		}
	}
}

func maintain(r *request) ([][]*string, error) {
	if len(r.args) < 1 || len(r.args) > 2 || !is(r.args[0], "ON") && !is(r.args[0], "OFF") {
		return nil, syntaxError("", "MAINTENANCE is ON or OFF, for all databases or for one")
	}
	var s Scope
	if len(r.args) == 2 {
		s.Database = r.args[1].text
	}
	return nil, r.src.Control.Maintain(s, is(r.args[0], "ON"))
}

func killClient(r *request) ([][]*string, error) {
	if len(r.args) == 0 {
		return nil, syntaxError("SHOW CLIENTS has the ids of clients.", "the id of the client is missing: KILL_CLIENT 42")
	}
	if len(r.args) > 1 {
		return nil, syntaxError("", "KILL_CLIENT takes the id of one client")
	}
	id, err := strconv.ParseUint(r.args[0].text, 10, 64)
	if err != nil {
		return nil, syntaxError("", "%.50q is no id of a client", r.args[0].text)
	}
	if !r.src.Control.KillClient(id) {
		return nil, &commandError{"42704", "client not found", ""}
	}
	return nil, nil
}

func disable(on bool) func(*request) ([][]*string, error) {
	return func(r *request) ([][]*string, error) {
		if len(r.args) != 1 {
			return nil, syntaxError("", "%s takes the name of a database", r.name)
		}
		return nil, r.src.Control.Disable(r.args[0].text, on)
	}
}

func reload(r *request) ([][]*string, error) {
	notices, err := r.src.Control.Reload()
	for _, n := range notices {
		r.notice(n, "")
	}
	if err != nil {
		return nil, &commandError{"F0000", "RELOAD failed, nothing has changed: " + err.Error(), ""}
	}
	return nil, nil
}

func shutdown(how Shutdown) func(*request) ([][]*string, error) {
	return func(r *request) ([][]*string, error) {
		r.src.Control.Shutdown(how)
		return nil, nil
	}
}

// set changes a key of the configuration. What drivers set for their session is
// accepted, since they cannot be told not to.
func set(r *request) ([][]*string, error) {
	words := r.args
	if len(words) > 1 && (is(words[0], "SESSION") || is(words[0], "LOCAL")) {
		words = words[1:]
	}
	if len(words) > 0 && ignoresSetting(words[0].text) {
		r.notice("SET ignored", "The console has no use for run-time parameters of Postgres.")
		return nil, nil
	}
	if len(words) == 3 && is(words[1], "TO") {
		words = []word{words[0], words[2]}
	}
	if len(words) != 2 {
		return nil, syntaxError("", "SET takes a key and a value: SET query_timeout TO 5000")
	}
	key := strings.ToLower(words[0].text)
	if err := r.mayChange(key); err != nil {
		return nil, err
	}
	return nil, asError("22023", r.src.Control.Set(key, words[1].text))
}

func reset(r *request) ([][]*string, error) {
	if len(r.args) != 1 {
		return nil, syntaxError("", "RESET takes a key, or ALL")
	}
	key := strings.ToLower(r.args[0].text)
	switch {
	case ignoresSetting(key), key == "all" && !r.operator:
		r.notice("RESET ignored", "The console has no use for run-time parameters of Postgres.")
		return nil, nil
	}
	if err := r.mayChange(key); err != nil {
		return nil, err
	}
	if key == "all" {
		key = ""
	}
	return nil, asError("22023", r.src.Control.Reset(key))
}

// mayChange refuses what a stats user may not do, and logs it for others.
func (r *request) mayChange(key string) error {
	if !r.operator {
		return notPermitted(r.name)
	}
	r.log(r.name + " " + key)
	return nil
}

// asError gives an error its SQLSTATE.
func asError(code string, err error) error {
	if err == nil {
		return nil
	}
	return &commandError{code, err.Error(), ""}
}

// probeTimeout bounds a PROBE.
const probeTimeout = 10 * time.Second

func probe(r *request) ([][]*string, error) {
	if len(r.args) != 1 {
		return nil, syntaxError("", "PROBE takes a URL, as 'postgres://user:password@host:port/database'")
	}
	ctx, cancel := context.WithTimeout(r.ctx, probeTimeout)
	defer cancel()
	took, err := r.src.Control.Probe(ctx, r.args[0].text)
	if err != nil {
		return nil, asError("58000", err)
	}
	return [][]*string{row(int(took.Milliseconds()))}, nil
}
