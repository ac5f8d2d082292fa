package config

import (
	"fmt"
	"reflect"
	"slices"
)

// setting is a key of [general] that was given another value after the configuration
// was read.
type setting struct{ name, value string }

// Set returns the configuration with another value for a key of [general]. It lasts
// until Reset, or until the files are read again.
func (c *Config) Set(name, value string) (*Config, error) {
	k, err := settable(name)
	if err != nil {
		return nil, err
	}
	set := slices.DeleteFunc(slices.Clone(c.set), func(s setting) bool { return s.name == k.name })
	return c.asLoaded().with(append(set, setting{k.name, value}))
}

// Reset returns the configuration with the value that it was read with for a key of
// [general], or for all if there is no name.
func (c *Config) Reset(name string) (*Config, error) {
	if name == "" {
		return c.asLoaded(), nil
	}
	k, err := settable(name)
	if err != nil {
		return nil, err
	}
	return c.asLoaded().with(slices.DeleteFunc(slices.Clone(c.set), func(s setting) bool { return s.name == k.name }))
}

// WasSet are the keys that were given another value after the configuration was read.
func (c *Config) WasSet() []string {
	var names []string
	for _, s := range c.set {
		names = append(names, s.name)
	}
	return names
}

func (c *Config) isSet(name string) bool {
	return slices.ContainsFunc(c.set, func(s setting) bool { return s.name == name })
}

// asLoaded is the configuration as it was read.
func (c *Config) asLoaded() *Config {
	if c.loaded != nil {
		return c.loaded
	}
	return c
}

// with returns a loaded configuration with other values for some keys.
func (c *Config) with(set []setting) (*Config, error) {
	if len(set) == 0 {
		return c, nil
	}
	changed := *c
	changed.loaded, changed.set = c, set
	general := reflect.ValueOf(&changed.General).Elem()
	for _, s := range set {
		k, err := settable(s.name)
		if err != nil {
			return nil, err
		}
		field := general.Field(k.index)
		if err := setText(field, s.value, k); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	changed.ClientTLS.Required, changed.ServerTLS.Verify = changed.General.TLSClientRequired, changed.General.TLSVerify
	if changed.ClientTLS.Required && changed.ClientTLS.Certificate == nil {
		return nil, fmt.Errorf("tls_client_required: without tls_certificate nobody could connect")
	}
	if err := changed.refusesExternal(); err != nil {
		return nil, err
	}
	changed.pools = nil
	changed.index()
	return &changed, nil
}

// fromFiles are the keys whose files are read with the configuration.
var fromFiles = []string{
	"tls_certificate", "tls_private_key", "tls_client_ca_certificate", "tls_server_ca_certificate", "tls_server_certificate", "tls_server_private_key",
}

// settable finds a key of [general] that can be changed without reading the files.
func settable(name string) (key, error) {
	keys := keysOf(reflect.TypeFor[General]())
	k, ok := find(keys, name)
	switch {
	case !ok:
		var names []string
		for _, k := range keys {
			names = append(names, k.name)
		}
		return key{}, fmt.Errorf("there is no key %q in [general]%s", name, didYouMean(name, names))
	case k.status != implemented:
		return key{}, fmt.Errorf("%s is not supported, so to set it would do nothing", k.name)
	case k.name == "query_log":
		return key{}, fmt.Errorf("%s names a file, and who is on the console is not to choose what is written: change it in pgdog.toml and RELOAD", k.name)
	case slices.Contains(fromFiles, k.name):
		return key{}, fmt.Errorf("%s names a file, which is read with the configuration: change it there and RELOAD", k.name)
	case k.restart:
		return key{}, fmt.Errorf("%s changes at a restart only", k.name)
	}
	return k, nil
}
