package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Row is a line of SHOW CONFIG.
type Row struct{ Name, Value string }

// Rows returns the configuration as SHOW CONFIG shows it: the keys of [general] by
// name, then those of [tcp] and [memory] with the table's name before theirs.
func (c *Config) Rows() []Row {
	rows := rowsOf("", reflect.ValueOf(c.General))
	rows = append(rows, rowsOf("tcp_", reflect.ValueOf(c.TCP))...)
	return append(rows, rowsOf("memory_", reflect.ValueOf(c.Memory))...)
}

func rowsOf(prefix string, table reflect.Value) []Row {
	var rows []Row
	for _, k := range keysOf(table.Type()) {
		rows = append(rows, Row{prefix + k.name, show(table.Field(k.index))})
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return showDuration(x)
	case string:
		if x == "" {
			return "default"
		}
		return x
	default:
		return fmt.Sprint(x)
	}
}

// showDuration prints a time in the largest unit that it is a whole number of.
func showDuration(d time.Duration) string {
	if d == Off {
		return "default"
	}
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= u.unit && d%u.unit == 0 {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// NeedsRestart returns the keys that differ between two configurations and that a
// reload does not change.
func NeedsRestart(old, new *Config) []string {
	var names []string
	compare := func(table string, a, b reflect.Value) {
		for _, k := range keysOf(a.Type()) {
			if k.restart && !reflect.DeepEqual(a.Field(k.index).Interface(), b.Field(k.index).Interface()) {
				names = append(names, table+"."+k.name)
			}
		}
	}
	compare("general", reflect.ValueOf(old.General), reflect.ValueOf(new.General))
	compare("admin", reflect.ValueOf(old.Admin), reflect.ValueOf(new.Admin))
	compare("memory", reflect.ValueOf(old.Memory), reflect.ValueOf(new.Memory))
	return names
}
