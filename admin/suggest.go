package admin

import (
	"slices"
	"strings"
)

// unknown is the answer to what is no command.
func unknown(words []word, dialect Dialect) *commandError {
	said := strings.Join(texts(words), " ")
	hint := "SHOW HELP lists what the console knows."
	if is(words[0], "SELECT") {
		return syntaxError("The console is no database and takes no SQL. "+hint, "%.100s", said)
	}
	if s := suggest(said, dialect); s != "" {
		hint = "Did you mean " + s + "? " + hint
	}
	return syntaxError(hint, "%.100s", said)
}

// suggest names the command that a statement was probably meant to be: the one with
// the fewest letters to change, if that is not more than a third of them, the SHOW that
// many have in common left aside.
func suggest(said string, dialect Dialect) string {
	parts := fields(strings.ToUpper(said))
	best, least, change := "", 0, 0
	for _, cmd := range commands {
		if cmd.Dialect&dialect == 0 {
			continue
		}
		for _, name := range cmd.Names {
			plain := fields(name)
			head := parts[:min(len(plain), len(parts))]
			d := distance(strings.Join(head, " "), strings.Join(plain, " "))
			rank := d + 2*(len(parts)-len(head)) // behind it may be arguments, or more of a longer name
			if best == "" || rank < least {
				best, least, change = name, rank, d
			}
		}
	}
	if 3*change > len(strings.TrimPrefix(best, "SHOW ")) {
		return ""
	}
	return best
}

// distance is how many letters to add, drop, change or swap make a of b.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// Help is a line of SHOW HELP.
type Help struct{ Command, Doc string }

// help lists the commands of a dialect.
func help(dialect Dialect) []Help {
	var lines []Help
	for _, cmd := range commands {
		if cmd.Dialect&dialect != 0 && cmd.run != nil {
			lines = append(lines, Help{usage(&cmd), cmd.Doc})
		}
	}
	slices.SortFunc(lines, func(a, b Help) int { return strings.Compare(a.Command, b.Command) })
	return lines
}

func usage(cmd *Command) string {
	if cmd.Args == "" {
		return cmd.Names[0]
	}
	return cmd.Names[0] + " " + cmd.Args
}
