package admin

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scraped is what is scraped of a pooler.
type scraped struct {
	sample Sample
	err    error
}

func (s scraped) Sample() (Sample, error) { return s.sample, s.err }

func someSample() Sample {
	times := Histogram{Upper: []time.Duration{time.Millisecond, time.Second}, Counts: []uint64{5, 3, 1}, Sum: 4 * time.Second}
	p := PoolSample{
		PoolRow: (&fake{}).Pools()[0], Locked: 2, Total: Counters{Transactions: 20, Queries: 30, QueryTime: 1500 * time.Millisecond, Evictions: 4},
		WaitTimes: times, QueryTimes: times, TransactionTimes: times, LoginTimes: times, ConnectTimes: times, Lag: time.Second,
	}
	account, _ := (&fake{}).MemoryAccount()
	return Sample{
		Pools: []PoolSample{p}, Clients: 9, Refused: map[string]uint64{"58000": 2}, Errors: map[string]uint64{"42601": 3, "other": 1},
		Listeners: (&fake{}).Listeners(),
		Memory:    account, Version: "1.2.3", GoVersion: "go1",
	}
}

// scrape returns what is exported, by name.
func scrape(t *testing.T, c *Console, s Sample, namespace string) map[string]*dto.MetricFamily {
	t.Helper()
	registry, err := c.registry(scraped{sample: s}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// TestPgDogsMetrics compares names, types and labels with those of PgDog. What is not
// exported has a reason.
func TestPgDogsMetrics(t *testing.T) {
	b, err := os.ReadFile("testdata/pgdog_metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	exported := scrape(t, newConsole(&fake{}), someSample(), "ns_")
	known := 0
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		fields := strings.Fields(line)
		name, typ, ofPool := fields[0], fields[1], len(fields) == 3
		known++
		if slices.ContainsFunc(notExported, func(n struct{ name, why string }) bool { return n.name == name && n.why != "" }) {
			continue
		}
		f := exported["ns_"+name]
		if f == nil {
			t.Errorf("%s is not exported", name)
			continue
		}
		if name == "avg_received" {
			typ = "gauge" // of an average PgDog says that it only grows
		}
		if got := strings.ToLower(f.GetType().String()); got != typ {
			t.Errorf("%s is a %s, want a %s", name, got, typ)
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		want := ""
		if ofPool {
			want = "database=app host=10.0.0.5 port=5432 role=primary shard=0 user=ann"
		}
		if strings.HasPrefix(name, "pub_sub_") {
			want = "channel=jobs database=app shard=0 user=ann"
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%s has the labels %s, want %s", name, got, want)
		}
	}
	for _, f := range Families() {
		if !f.Ours {
			known--
		}
	}
	if known != len(notExported) {
		t.Errorf("there are %d more metrics under PgDog's names than PgDog has", len(notExported)-known)
	}
}

func TestValuesOfMetrics(t *testing.T) {
	c := newConsole(&fake{})
	c.averages.sample([]StatsRow{{ID: 7}}, time.Second)
	c.averages.sample([]StatsRow{{ID: 7, Total: Counters{Queries: 30, QueryTime: 60 * time.Millisecond}}}, 10*time.Second)
	exported := scrape(t, c, someSample(), "")
	value := func(name string, labels ...string) float64 {
		t.Helper()
		if f := exported[name]; f != nil {
		metrics:
			for _, m := range f.GetMetric() {
				for i := 0; i < len(labels); i += 2 {
					if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == labels[i] && l.GetValue() == labels[i+1] }) {
						continue metrics
					}
				}
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		t.Errorf("%s %q is not there", name, labels)
		return 0
	}
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"pub_sub_listeners", []string{"channel", "jobs"}, 2}, {"pub_sub_listener_received", nil, 30}, {"pub_sub_listener_dropped", nil, 1},
		{"clients", nil, 9}, {"clients_locked", nil, 2}, {"maxwait", nil, 1.5}, {"total_query_count", nil, 30}, {"total_query_time", nil, 1500},
		{"avg_query_count", nil, 3}, {"avg_query_time", nil, 2}, {"sv_idle_xact", nil, 1}, {"max_connections", nil, 10},
		{"pgebb_errors_total", []string{"side", "server", "sqlstate", "42601"}, 3}, {"pgebb_errors_total", []string{"side", "pgebb", "sqlstate", "58000"}, 2},
		{"pgebb_build_info", []string{"version", "1.2.3", "go", "go1"}, 1}, {"pgebb_memory_bytes", []string{"part", "rss"}, 100},
		{"pgebb_memory_items", []string{"part", "rss/ledger/clients"}, 2}, {"pgebb_pool_replica_lag_seconds", nil, 1},
	} {
		if got := value(test.name, test.labels...); got != test.want {
			t.Errorf("%s %q is %v, want %v", test.name, test.labels, got, test.want)
		}
	}
	h := exported["pgebb_wait_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 9 || h.GetSampleSum() != 4 || h.GetBucket()[0].GetUpperBound() != 0.001 || h.GetBucket()[0].GetCumulativeCount() != 5 || h.GetBucket()[1].GetCumulativeCount() != 8 {
		t.Errorf("the histogram is %v", h)
	}
}

// TestOurMetricsAreAsTheyShouldBe lints what has no name of PgDog's.
func TestOurMetricsAreAsTheyShouldBe(t *testing.T) {
	h, err := newConsole(&fake{}).Metrics(scraped{sample: someSample()}, "")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/any/path", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("the answer is %d, %v", w.Code, w.Header())
	}
	problems, err := promlint.New(bytes.NewReader(w.Body.Bytes())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "pgebb_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, f := range Families() {
		if f.Ours != strings.HasPrefix(f.Name, "pgebb_") {
			t.Errorf("the name of %s says wrongly whose it is", f.Name)
		}
	}
}

func TestAScrapeThatFailsSaysSo(t *testing.T) {
	h, err := newConsole(&fake{}).Metrics(scraped{err: errors.New("no account")}, "")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no account") {
		t.Errorf("the answer is %d, %s", w.Code, w.Body)
	}
}

// wellness is pools of which some can connect.
type wellness struct{ healthy, all int }

func (w wellness) Healthy() (healthy, all int) { return w.healthy, w.all }

func TestLiveness(t *testing.T) {
	for _, test := range []struct {
		pools    wellness
		draining bool
		code     int
		text     string
	}{
		{wellness{1, 2}, false, 200, "up\n"}, {wellness{0, 0}, false, 200, "up\n"}, {wellness{0, 2}, false, 502, "down\n"},
		{wellness{2, 2}, true, 503, "shutting down\n"},
	} {
		w := httptest.NewRecorder()
		Liveness{Draining: func() bool { return test.draining }, Pools: test.pools}.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != test.code || w.Body.String() != test.text {
			t.Errorf("%+v: the answer is %d, %q", test, w.Code, w.Body)
		}
	}
}
