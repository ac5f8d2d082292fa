package admin

// Reference is a command as the documents describe it.
type Reference struct {
	Names    []string
	Args     string
	Doc      string
	Columns  []Column
	PgDog    bool // in the dialect of PgDog
	Bouncer  bool // in that of PgBouncer
	ReadOnly bool // stats users may use it
}

// Commands are all commands in the order of the documents: what shows something first.
func Commands() []Reference {
	var all []Reference
	for _, cmd := range commands {
		all = append(all, Reference{
			Names: cmd.Names, Args: cmd.Args, Doc: cmd.Doc, Columns: cmd.Columns,
			PgDog: cmd.Dialect&PgDog != 0, Bouncer: cmd.Dialect&PgBouncer != 0, ReadOnly: cmd.ReadOnly,
		})
	}
	return all
}

// NotExported are the metrics of PgDog that pgebb has not, and why.
func NotExported() [][2]string {
	var all [][2]string
	for _, n := range notExported {
		all = append(all, [2]string{n.name, n.why})
	}
	return all
}
