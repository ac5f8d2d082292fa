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
		name, v := prefix+k.name, table.Field(k.index)
		def := reflect.New(v.Type()).Elem()
		setDefault(def, k)
		row := Row{name, show(v)}
		switch {
		case k.secret:
			continue
		case k.optional() && v.Equal(def):
			row.Value = "default"
		case v.Type() == durationType && showsUnit(name):
			row.Value = showDuration(time.Duration(v.Int()))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return rows
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
		return show(reflect.ValueOf(d)) + "ms"
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
