package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is a line of SHOW CONFIG.
type Row struct {
	Name, Value, Default string
	Source               string // "default", a file and its line, a variable, or SET
	Reloadable           bool   // a reload changes it
}

// Rows returns the configuration as SHOW CONFIG shows it: the keys of [general] by
// name, then those of [tcp] and [memory] with the table's name before theirs.
func (c *Config) Rows() []Row {
	rows := c.rowsOf("general", "", reflect.ValueOf(c.General))
	rows = append(rows, c.rowsOf("tcp", "tcp_", reflect.ValueOf(c.TCP))...)
	return append(rows, c.rowsOf("memory", "memory_", reflect.ValueOf(c.Memory))...)
}

func (c *Config) rowsOf(table, prefix string, values reflect.Value) []Row {
	var rows []Row
	for _, k := range keysOf(values.Type()) {
		if k.secret {
			continue
		}
		v := values.Field(k.index)
		def := reflect.New(v.Type()).Elem()
		setDefault(def, k)
		row := Row{
			Name: prefix + k.name, Value: showValue(prefix+k.name, v, def, k), Default: showValue(prefix+k.name, def, def, k),
			Source: c.origins[table+"."+k.name], Reloadable: !k.restart && k.status == implemented,
		}
		if row.Source == "" {
			row.Source = "default"
		}
		if table == "general" && c.isSet(k.name) {
			row.Source = "SET"
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// showValue is a value as SHOW CONFIG shows it. "default" is for a key that needs no
// value and has none, as in PgDog.
func showValue(name string, v, def reflect.Value, k key) string {
	switch {
	case v.Type() == durationType && time.Duration(v.Int()) == Off && !k.optional():
		return "off"
	case k.optional() && v.Equal(def):
		return "default"
	case v.Kind() == reflect.Int && v.Int() == math.MaxInt:
		return "unlimited"
	case v.Type() == durationType && showsUnit(name):
		return showDuration(time.Duration(v.Int()))
	}
	return show(v)
}

// show prints a value as the files would have it.
func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		if x == Off {
			return strconv.FormatInt(math.MaxInt64, 10)
		}
		return strconv.FormatInt(x.Milliseconds(), 10)
	case float64:
		if s := fmt.Sprint(x); strings.Contains(s, ".") {
			return s
		}
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprint(x)
	}
}

// showsUnit reports whether PgDog shows the times of a key with their unit.
func showsUnit(name string) bool {
	return slices.ContainsFunc([]string{"_timeout", "_interval", "_delay", "_time", "_lifetime"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// showDuration prints a time in the largest unit that it is a whole number of.
func showDuration(d time.Duration) string {
	if d == Off {
		return "off"
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
