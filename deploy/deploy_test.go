// Package deploy checks that what is shipped for running pgebb fits it: metrics that are
// asked for are exported, configurations are good, ports and times agree.
package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v2"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/config"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// namespace is what the dashboard and the rules are for.
const namespace = "pgebb_"

// exported are the names of the series that there are, with the labels of each.
func exported() map[string][]string {
	series := map[string][]string{}
	for _, f := range admin.Families() {
		name := f.Name
		if !f.Ours {
			name = namespace + name
		}
		if f.Kind == "histogram" {
			series[name+"_bucket"] = append(slices.Clone(f.Labels), "le")
			series[name+"_sum"], series[name+"_count"] = f.Labels, f.Labels
			continue
		}
		series[name] = f.Labels
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_open_fds", "process_max_fds", "process_resident_memory_bytes"} {
		series[name] = nil // of client_golang
	}
	return series
}

// checkQuery looks whether Prometheus can read a query, and all that it asks for is exported.
func checkQuery(t *testing.T, where, query string) {
	t.Helper()
	expr, err := parser.ParseExpr(strings.ReplaceAll(query, "$__rate_interval", "5m"))
	if err != nil {
		t.Errorf("%s: %s: %v", where, query, err)
		return
	}
	series := exported()
	asked := selectors(expr)
	if len(asked) == 0 {
		t.Errorf("%s asks for nothing: %s", where, query)
	}
	for _, s := range asked {
		if _, ok := series[s.Name]; !ok {
			t.Errorf("%s: %s is not exported: %s", where, s.Name, query)
		}
		for _, m := range s.LabelMatchers {
			if m.Name != labels.MetricName && m.Name != "instance" && !slices.Contains(series[s.Name], m.Name) {
				t.Errorf("%s: %s has no label %s", where, s.Name, m.Name)
			}
		}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var by []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			by = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				by = n.VectorMatching.MatchingLabels
			}
		}
		for _, label := range by {
			for _, s := range selectors(node) {
				if label != "instance" && !slices.Contains(series[s.Name], label) {
					t.Errorf("%s: %s has no label %s to group by: %s", where, s.Name, label, query)
				}
			}
		}
		return nil
	})
}

// selectors are the series that a part of a query asks for.
func selectors(node parser.Node) (found []*parser.VectorSelector) {
	parser.Inspect(node, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	return found
}

func TestTheDashboardAsksForWhatIsExported(t *testing.T) {
	type panel struct {
		Title, Type string
		Targets     []struct{ Expr string }
	}
	var dashboard struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/pgebb.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s is empty", p.Title)
		}
		for _, target := range p.Targets {
			checkQuery(t, "panel "+p.Title, target.Expr)
			n++
		}
	}
	if n < 40 {
		t.Errorf("the dashboard has only %d queries", n)
	}
	for _, v := range dashboard.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), [a-z]+\)$`).FindStringSubmatch(v.Query); m != nil {
			checkQuery(t, "variable "+v.Name, m[1])
		}
	}
}

func TestTheRulesAskForWhatIsExported(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/rules.yml")), &file); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			checkQuery(t, r.Alert, r.Expr)
			if r.Alert == "" || r.Annotations["summary"] == "" || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("rule %d (%s) has no name, summary or severity", n, r.Alert)
			}
			if r.For != "" {
				if _, err := time.ParseDuration(r.For); err != nil {
					t.Errorf("%s: %v", r.Alert, err)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("there are only %d rules", n)
	}
}

func TestQueriesAreReallyChecked(t *testing.T) {
	for _, expr := range []string{`pgebb_no_such`, `sum by (nobody) (pgebb_clients)`, `pgebb_clients{user="x"}`, `sum(1)`, `pgebb_clients >`,
		`pgebb_memory_bytes > 2 * on (instance) pgebb_memory_bytes`} {
		fake := &testing.T{}
		checkQuery(fake, "test", expr)
		if !fake.Failed() {
			t.Errorf("%s passes", expr)
		}
	}
}

// object is a part of a manifest.
type object = map[interface{}]interface{}

// at walks down a manifest.
func at(t *testing.T, x interface{}, path ...interface{}) interface{} {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			x = x.(object)[s]
		case int:
			x = x.([]interface{})[s]
		}
		if x == nil {
			t.Fatalf("there is no %v", path)
		}
	}
	return x
}

func manifests(t *testing.T) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, text := range strings.Split(read(t, "kubernetes/pgebb.yaml"), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		all[o["kind"].(string)] = o
	}
	return all
}

func TestTheManifestsFitTheirConfiguration(t *testing.T) {
	all := manifests(t)
	dir := t.TempDir()
	src := config.Source{ConfigPath: filepath.Join(dir, "pgdog.toml"), UsersPath: filepath.Join(dir, "users.toml")}
	for path, text := range map[string]interface{}{
		src.ConfigPath: at(t, all["ConfigMap"], "data", "pgdog.toml"), src.UsersPath: at(t, all["Secret"], "stringData", "users.toml"),
	} {
		if err := os.WriteFile(path, []byte(text.(string)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, problems := config.Load(src)
	for _, p := range problems {
		t.Error(p)
	}
	pod := at(t, all["Deployment"], "spec", "template", "spec")
	container := at(t, pod, "containers", 0)
	ports := map[string]int{}
	for _, p := range at(t, container, "ports").([]interface{}) {
		ports[at(t, p, "name").(string)] = at(t, p, "containerPort").(int)
	}
	g := cfg.General
	if ports["postgres"] != g.Port || ports["health"] != g.HealthcheckPort || ports["metrics"] != g.OpenmetricsPort || g.OpenmetricsNamespace != namespace {
		t.Errorf("the ports are %v, those of the configuration %d, %d and %d", ports, g.Port, g.HealthcheckPort, g.OpenmetricsPort)
	}
	for _, probe := range [][]interface{}{{"livenessProbe", "tcpSocket", "port"}, {"readinessProbe", "httpGet", "port"}} {
		if name := at(t, container, probe...).(string); ports[name] == 0 {
			t.Errorf("%v is no port of the container", name)
		}
	}
	if n := at(t, all["Deployment"], "spec", "template", "metadata", "annotations", "prometheus.io/port"); n != strconv.Itoa(g.OpenmetricsPort) {
		t.Errorf("Prometheus is sent to port %v", n)
	}
	grace := time.Duration(at(t, pod, "terminationGracePeriodSeconds").(int)) * time.Second
	sleep := time.Duration(at(t, container, "lifecycle", "preStop", "sleep", "seconds").(int)) * time.Second
	if grace <= sleep+g.ShutdownTimeout {
		t.Errorf("the grace of %v ends before a shutdown of %v after a pause of %v does", grace, g.ShutdownTimeout, sleep)
	}
	if at(t, pod, "securityContext", "runAsNonRoot") != true {
		t.Error("it runs as root")
	}
}

func TestTheImageIsMadeOfWhatIsThere(t *testing.T) {
	text := read(t, "Dockerfile")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	for _, want := range []string{"FROM golang:" + version + "-", "./cmd/pgebb", "\nUSER 65532", "\nSTOPSIGNAL SIGINT\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile does not have %q", want)
		}
	}
	if user := at(t, manifests(t)["Deployment"], "spec", "template", "spec", "securityContext", "runAsUser"); user != 65532 {
		t.Errorf("the manifests run it as %v", user)
	}
}

func TestTheUnitStopsAndReloadsAsPgebbDoes(t *testing.T) {
	text := read(t, "systemd/pgebb.service")
	for _, want := range []string{"\nType=notify\n", "\nKillSignal=SIGINT\n", "\nExecReload=/bin/kill -HUP $MAINPID\n", "\nNoNewPrivileges=yes\n", "\nUser=pgebb\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit does not have %q", want)
		}
	}
	cfg, _ := config.Load(config.Source{})
	stop, err := strconv.Atoi(regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(text)[1])
	if err != nil || time.Duration(stop)*time.Second <= cfg.General.ShutdownTimeout {
		t.Errorf("systemd waits %d s, a shutdown takes up to %v", stop, cfg.General.ShutdownTimeout)
	}
}
