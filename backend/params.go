package backend

// Param is one run-time parameter of Postgres by name, as it stands in a
// StartupMessage or a ParameterStatus message.
type Param struct {
	Name, Value string
}
