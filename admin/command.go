package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Dialect is whose commands and columns are spoken.
type Dialect uint8

// The dialects.
const (
	PgDog     Dialect = 1 << iota
	PgBouncer         // at the database that is called pgbouncer
	both      = PgDog | PgBouncer
)

// Command is something that can be said to the console.
type Command struct {
	Names   []string // in upper case; words of SHOW and RESET can be parted by _ as well
	Args    string   // what stands behind the name, for people; empty if nothing does
	Tag     string   // of its CommandComplete, if it is not the first name
	Columns []Column // nil if it has no rows
	Doc     string
	Dialect Dialect
	Always  []string // columns that are shown whatever a list behind the name asks for
	// ReadOnly says that stats users may use it as well.
	ReadOnly bool

	secret  bool   // what stands behind the name may be a secret, and is not logged
	columns bool   // a list of columns can stand behind the name
	filter  string // the column that a LIKE behind the name is for
	run     func(r *request) ([][]*string, error)
}

// request is a command that is being run.
type request struct {
	*Console
	ctx      context.Context // ends when the operator leaves or cancels
	args     []word
	dialect  Dialect
	notice   func(message, detail string) // tells the operator something besides
	name     string                       // of the command, as it was found
	operator bool                         // false for stats users, who may only look
	log      func(command string)         // before what the command does is done
}

// commandError is an error that an operator gets.
type commandError struct{ code, message, hint string }

func (e *commandError) Error() string { return e.message }

// syntaxError is for what cannot be understood; pgcli depends on the SQLSTATE.
func syntaxError(hint, format string, args ...any) *commandError {
	return &commandError{"08P01", "syntax error in admin command: " + fmt.Sprintf(format, args...), hint}
}

// notPermitted refuses what a stats user may not do, in the words of PgBouncer.
func notPermitted(name string) *commandError {
	return &commandError{"42501", "admin access needed", "This user may only look, with SHOW; it may not use " + name + "."}
}

func (cmd *Command) tag(dialect Dialect) string {
	switch {
	case cmd.Tag != "":
		return cmd.Tag
	case dialect == PgBouncer && cmd.Columns != nil:
		return "SHOW"
	}
	return cmd.Names[0]
}

// commands are all that the console knows; those of one dialect come before those of
// both.
var commands []Command

func init() {
	commands = slices.Concat(showCommands(), memoryCommands(), queryCommands(), healthCommands(), absentCommands(), bouncerCommands(), stateCommands(), doCommands(), ignoredCommands())
}

// find returns the command that a statement is, the name by which it was found, and
// what stands behind it.
func find(words []word, dialect Dialect) (cmd *Command, name string, rest []word) {
	if dialect == PgBouncer && is(words[0], "SELECT") {
		words = append([]word{{text: "SHOW"}}, words[1:]...)
	}
	longest := 0
	for i := range commands {
		if commands[i].Dialect&dialect == 0 {
			continue
		}
		for _, n := range commands[i].Names {
			if used := match(words, n); used > 0 && len(n) > longest {
				cmd, name, rest, longest = &commands[i], n, words[used:], len(n)
			}
		}
	}
	return cmd, name, rest
}

func is(w word, text string) bool { return !w.quoted && strings.EqualFold(w.text, text) }

// match is how many words a name stands for at the start of a statement, 0 if it does
// not stand there.
func match(words []word, name string) int {
	if !strings.HasPrefix(name, "SHOW ") && !strings.HasPrefix(name, "RESET ") {
		for i, part := range strings.Fields(name) {
			if i >= len(words) || !is(words[i], part) {
				return 0
			}
		}
		return len(strings.Fields(name))
	}
	parts := fields(name)
	for i, w := range words {
		if w.quoted {
			return 0
		}
		mine := fields(strings.ToUpper(w.text))
		if len(mine) > len(parts) || !slices.Equal(mine, parts[:len(mine)]) {
			return 0
		}
		if parts = parts[len(mine):]; len(parts) == 0 {
			return i + 1
		}
	}
	return 0
}

// fields are the parts of a name, parted by spaces or underscores.
func fields(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '_' })
}

// statement is what was parsed; cmd is nil for an empty one.
type statement struct {
	cmd    *Command
	name   string
	tag    string
	args   []word
	shown  []int                    // of cmd.Columns
	filter func(row []*string) bool // nil if all rows are shown
}

// text is what the log says of a statement.
func (st *statement) text() string {
	if st.cmd.secret {
		return st.name
	}
	return strings.Join(append([]string{st.name}, texts(st.args)...), " ")
}

// parse finds out what a single statement is, and whether the operator may say it.
func parse(words []word, dialect Dialect, operator bool) (*statement, *commandError) {
	cmd, name, rest := find(words, dialect)
	if cmd == nil {
		if st := parameter(words); st != nil {
			return st, nil
		}
		return nil, unknown(words, dialect)
	}
	if !operator && !cmd.ReadOnly {
		return nil, notPermitted(name)
	}
	st := &statement{cmd: cmd, name: name, tag: cmd.tag(dialect), args: rest}
	if cmd.run == nil {
		st.tag = name
		return st, nil
	}
	if cmd.filter != "" {
		st.args, st.filter = cmd.like(st.args)
	}
	shown, err := cmd.chosen(st.args)
	if err != nil {
		return nil, err
	}
	if st.shown = shown; len(st.args) > 0 && cmd.Args == "" {
		return nil, syntaxError("", "nothing can stand behind %s", name)
	}
	return st, nil
}

// chosen returns the columns that a list behind the name asks for, as indexes; all of
// them for no list.
func (cmd *Command) chosen(args []word) ([]int, *commandError) {
	var names []string
	if cmd.columns {
		for _, w := range args {
			name := strings.ToLower(w.text)
			if !slices.ContainsFunc(cmd.Columns, func(c Column) bool { return c.Name == name }) {
				return nil, &commandError{"42703", fmt.Sprintf("column %q does not exist", name), "The columns are " + columnNames(cmd.Columns) + "."}
			}
			names = append(names, name)
		}
	}
	var shown []int
	for i, c := range cmd.Columns {
		if names == nil || slices.Contains(names, c.Name) || slices.Contains(cmd.Always, c.Name) {
			shown = append(shown, i)
		}
	}
	return shown, nil
}

func columnNames(columns []Column) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// like takes a filter off the end of the arguments: LIKE and a pattern, or a word that
// is looked for.
func (cmd *Command) like(args []word) (rest []word, filter func([]*string) bool) {
	if len(args) == 0 {
		return args, nil
	}
	pattern := "%" + args[len(args)-1].text + "%"
	if len(args) >= 2 && (is(args[0], "LIKE") || is(args[0], "ILIKE")) {
		pattern, args = args[1].text, args[2:]
	} else {
		args = args[:len(args)-1]
	}
	column := slices.IndexFunc(cmd.Columns, func(c Column) bool { return c.Name == cmd.filter })
	return args, func(row []*string) bool {
		return row[column] != nil && likes(strings.ToLower(*row[column]), strings.ToLower(pattern))
	}
}

// likes reports whether s is as a pattern of LIKE says, in which % is any text and _ any
// byte. It looks at each byte of s once for each % at most.
func likes(s, pattern string) bool {
	star, mark, i := -1, 0, 0
	for j := 0; j < len(s); {
		switch {
		case i < len(pattern) && pattern[i] == '%':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '_' || pattern[i] == s[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "%") == ""
}
