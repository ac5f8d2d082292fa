package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/testpg"
)

// get asks over HTTP.
func get(t *testing.T, port int) (code int, body string) {
	t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// metrics returns what is exported: values by name, and by name and labels.
func metrics(t *testing.T, port int) map[string]float64 {
	t.Helper()
	code, body := get(t, port)
	if code != http.StatusOK {
		t.Fatalf("the metrics are answered with %d: %s", code, body)
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		i := strings.LastIndexByte(lines.Text(), ' ')
		if strings.HasPrefix(lines.Text(), "#") || i < 0 {
			continue
		}
		v, err := strconv.ParseFloat(lines.Text()[i+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		values[lines.Text()[:i]] = v
		if name, _, ok := strings.Cut(lines.Text()[:i], "{"); ok {
			values[name] += v
		}
	}
	return values
}

// freePort is a port that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := testpg.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestMetricsSayWhatTheConsoleSays: and what was done, exactly.
func TestMetricsSayWhatTheConsoleSays(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	port := freePort(t)
	o.General += fmt.Sprintf("openmetrics_host = \"127.0.0.1\"\nopenmetrics_port = %d\nopenmetrics_namespace = \"pgdog_\"\n", port)
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	for range 7 {
		query(t, c, "SELECT 1")
	}
	for range 3 {
		if _, err := c.Query("SELECT 1/0"); err == nil {
			t.Fatal("no error")
		}
	}
	if _, err := c.Query("SELEC"); err == nil {
		t.Fatal("no error")
	}
	query(t, c, "BEGIN")
	m := metrics(t, port)
	for name, want := range map[string]float64{
		"pgdog_clients": 1, "pgdog_sv_idle_xact": 1, "pgdog_sv_idle": 0, "pgdog_max_connections": 1,
		"pgdog_total_query_count": 12, "pgdog_total_xact_count": 11, "pgdog_total_server_errors": 4, "pgdog_total_reads": 7,
		`pgebb_errors_total{side="server",sqlstate="22012"}`: 3, `pgebb_errors_total{side="server",sqlstate="42601"}`: 1,
		"pgebb_query_seconds_count": 12, "pgebb_transaction_seconds_count": 11, "pgebb_wait_seconds_count": 12,
		"pgebb_login_seconds_count": 1, "pgebb_connect_seconds_count": 1, "pgebb_pool_logins_total": 1, "pgebb_pool_healthy": 1,
	} {
		if m[name] != want {
			t.Errorf("%s is %v, want %v", name, m[name], want)
		}
	}
	stats := show(t, p, "SHOW STATS")[0]
	for _, name := range []string{"total_received", "total_sent", "total_query_count"} {
		if got := strconv.FormatFloat(m["pgdog_"+name], 'f', -1, 64); got != stats[name] {
			t.Errorf("%s is %s as a metric and %s on the console", name, got, stats[name])
		}
	}
	if rss := m[`pgebb_memory_bytes{part="rss"}`]; rss < 1<<20 || m["process_resident_memory_bytes"] < rss/2 {
		t.Errorf("the resident memory is %v, or %v", rss, m["process_resident_memory_bytes"])
	}
	query(t, c, "COMMIT")
}

func TestTheHealthEndpoint(t *testing.T) {
	pg, err := testpg.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	port := freePort(t)
	o.General += fmt.Sprintf("healthcheck_port = %d\n", port)
	p := testpg.Pgebb(t, o)
	query(t, connect(t, through(p, database)), "SELECT 1")
	want := func(want int) func() string {
		return func() string {
			if code, body := get(t, port); code != want {
				return fmt.Sprintf("%d %s", code, body)
			}
			return ""
		}
	}
	eventually(t, 10*time.Second, want(http.StatusOK))
	pg.Kill()
	eventually(t, 10*time.Second, want(http.StatusBadGateway))
	if err := pg.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, want(http.StatusOK))
}
