// Package config is pgebb's configuration: PgDog's pgdog.toml and users.toml and its
// environment variables, with defaults, validation, the comparison that a reload
// needs, and the reference that docs/configuration.md is made of.
//
// [Load] reads everything into a [Config]; what is wrong with it comes as [Problems],
// all of them, each with its place. A [Pool] is what holds for one pool once the
// settings of its user, its database and [general] have been laid over each other.
//
// The struct tags say what there is to know of a key:
//
//	toml      its name
//	alias     another name
//	default   its default, in the unit of the file; "off" is a time that never comes
//	optional  "yes" if that default means that there is no value; a key without a
//	          default is optional anyway, unless it is required
//	unit      ms, bytes or seconds
//	values    those it may have, if it is not of a type that knows them
//	min, max  the least and the greatest of a number, 0 and none if they are missing
//	env       its environment variable if that is not PGDOG_ and its name; "-" for none
//	status    implemented; ignored, where any other value than the default gives a
//	          warning; or refused, where it keeps pgebb from starting, because to
//	          ignore it would mislead
//	harmless  values that are as good as the default of a key that is not implemented
//	planned   "yes" if pgebb is going to implement it
//	own       "yes" if PgDog does not have it
//	restart   "yes" if a reload does not change it
//	required  "yes" if it must be there
//	secret    "yes" if its value is never shown
//	doc       what it means
//
// To implement a key is to change its status. The package opens no socket and starts
// no goroutine.
//
// The caveat that bites: a [Config] is immutable after Load. A reload makes another.
package config

//go:generate go run ./internal/gendoc ../docs/configuration.md
