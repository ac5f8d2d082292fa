package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	stringsType  = reflect.TypeFor[[]string]()
	headersType  = reflect.TypeFor[map[string]string]()
)

// setValue sets a field to a value of a TOML file.
func setValue(v reflect.Value, value any, k key) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		err := setValue(p.Elem(), value, k)
		if err == nil {
			v.Set(p)
		}
		return err
	}
	switch x := value.(type) {
	case string:
		if v.Kind() == reflect.String || implementsText(v) {
			return setText(v, x, k)
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(x)
			return nil
		}
	case int64:
		if v.Type() == durationType || v.Kind() == reflect.Int || v.Kind() == reflect.Float64 {
			return setText(v, strconv.FormatInt(x, 10), k)
		}
	case float64:
		if v.Kind() == reflect.Float64 {
			return setText(v, strconv.FormatFloat(x, 'g', -1, 64), k)
		}
	case []any:
		if v.Type() == stringsType {
			return setStrings(v, x, k)
		}
	case map[string]any:
		if v.Type() == headersType {
			return nil // what is in it is not kept
		}
	}
	return fmt.Errorf("the value must be %s, not %s", wanted(v.Type(), k), shown(value, k))
}

func setStrings(v reflect.Value, list []any, k key) error {
	var out []string
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return fmt.Errorf("the value must be a list of strings, and one of them is %s", shown(x, k))
		}
		out = append(out, s)
	}
	v.Set(reflect.ValueOf(out))
	return nil
}

// shown is describe for what may be a secret.
func shown(value any, k key) string {
	if !k.secret {
		return describe(value)
	}
	switch value.(type) {
	case string:
		return "a string"
	case bool, int64, float64, time.Time:
		return "something without quotes"
	}
	return describe(value)
}

func implementsText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

// setDefault sets a field to its default, if it has one.
func setDefault(v reflect.Value, k key) {
	if k.def == "" {
		return
	}
	if k.def == "off" && v.Type() == durationType {
		v.SetInt(int64(Off))
		return
	}
	if err := setText(v, k.def, k); err != nil {
		panic(fmt.Sprintf("bug: default of %s: %v", k.name, err))
	}
}

// setText sets a field to a value that is text, as in the environment, a database
// URL or a default.
func setText(v reflect.Value, text string, k key) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		err := setText(p.Elem(), text, k)
		if err == nil {
			v.Set(p)
		}
		return err
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case v.Type() == durationType || v.Kind() == reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("the value must be %s, not %q", wanted(v.Type(), k), text)
		}
		if err := k.inRange(float64(n), text); err != nil {
			return err
		}
		if v.Type() == durationType {
			n = int64(milliseconds(n))
		}
		v.SetInt(n)
	case v.Kind() == reflect.Bool:
		b, err := parseBool(text)
		if err != nil {
			return err
		}
		v.SetBool(b)
	case v.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) {
			return fmt.Errorf("the value must be a number, not %q", text)
		}
		if err := k.inRange(f, text); err != nil {
			return err
		}
		v.SetFloat(f)
	case v.Kind() == reflect.String:
		return k.setString(v, text)
	default:
		return fmt.Errorf("the value must be %s", wanted(v.Type(), k))
	}
	return nil
}

// setString sets a field to a string, and one of the key's choices to the spelling
// that the key has for it.
func (k key) setString(v reflect.Value, text string) error {
	if k.required && text == "" {
		return fmt.Errorf("the value must not be empty")
	}
	if k.values == nil {
		v.SetString(text)
		return nil
	}
	for _, choice := range k.values {
		if plain(choice) == plain(text) {
			v.SetString(choice)
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(k.values, ", "))
}

// inRange complains about a number that the key does not allow.
func (k key) inRange(n float64, text string) error {
	switch {
	case n >= k.min && n <= k.max:
		return nil
	case math.IsInf(k.max, 1):
		return fmt.Errorf("the value must be at least %v, not %s", k.min, text)
	}
	return fmt.Errorf("the value must be between %v and %v, not %s", k.min, k.max, text)
}

// milliseconds is a time in the unit of the files. More than a time.Duration can
// hold never comes.
func milliseconds(n int64) time.Duration {
	if n > int64(math.MaxInt64/time.Millisecond) {
		return Off
	}
	return time.Duration(n) * time.Millisecond
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on", "t", "y":
		return true, nil
	case "false", "0", "no", "off", "f", "n":
		return false, nil
	}
	return false, fmt.Errorf("the value must be true or false, not %q", text)
}

// wanted says what a field takes.
func wanted(t reflect.Type, k key) string {
	switch {
	case t == durationType:
		return "a number of milliseconds"
	case t.Kind() == reflect.Int && k.unit != "":
		return "a number of " + k.unit
	case t.Kind() == reflect.Int:
		return "a whole number that is not negative"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t == stringsType:
		return "a list of strings"
	case t == headersType:
		return "a table"
	}
	return "a string"
}
