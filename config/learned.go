package config

import "slices"

// Learned is a user that is in no file and has been found out at its login, for one
// database, or one whose password was.
type Learned struct {
	User, Database string
	Password       string // empty if it is not known
	Hash           string // MD5 hash of it, if that is known and the password is not; else empty
}

// WithLearned returns a configuration with more users. One that is in the files has the
// settings that it has there; the password is the one that was learned.
func (c *Config) WithLearned(learned []Learned) *Config {
	if len(learned) == 0 {
		return c
	}
	more := *c
	more.Users = make([]User, 0, len(learned)+len(c.Users))
	for _, l := range learned {
		u := User{TLSClientCertificateRequired: true}
		if i := slices.IndexFunc(c.Users, func(u User) bool { return u.Name == l.User && slices.Contains(u.databases(c), l.Database) }); i >= 0 {
			u = c.Users[i]
		}
		u.Name, u.Database, u.Databases, u.AllDatabases = l.User, l.Database, nil, false
		if l.Password != "" {
			u.Password, u.Passwords = l.Password, nil
		}
		if l.Hash != "" {
			u.PasswordHash = l.Hash
		}
		more.Users = append(more.Users, u)
	}
	more.Users = append(more.Users, c.Users...)
	more.pools = nil
	more.index()
	return &more
}
