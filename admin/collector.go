package admin

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Scrapes is where the metrics come from. What it costs may depend on how many pools and
// servers there are, not on how many clients.
type Scrapes interface{ Sample() (Sample, error) }

// collector makes metrics of a sample at each scrape. It implements
// [prometheus.Collector].
type collector struct {
	console  *Console
	src      Scrapes
	families []Family
	descs    []*prometheus.Desc // of the families
}

// Metrics is what serves metrics, at any path. namespace is put in front of PgDog's names.
func (c *Console) Metrics(src Scrapes, namespace string) (http.Handler, error) {
	registry, err := c.registry(src, namespace)
	if err != nil {
		return nil, err
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}), nil
}

func (c *Console) registry(src Scrapes, namespace string) (*prometheus.Registry, error) {
	x := &collector{console: c, src: src, families: Families()}
	for _, f := range x.families {
		name := f.Name
		if !f.Ours {
			name = namespace + name
		}
		x.descs = append(x.descs, prometheus.NewDesc(name, f.Doc, f.Labels, nil))
	}
	registry := prometheus.NewRegistry()
	for _, col := range []prometheus.Collector{x, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(col); err != nil {
			return nil, err
		}
	}
	return registry, nil
}

// Describe implements [prometheus.Collector].
func (x *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range x.descs {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (x *collector) Collect(out chan<- prometheus.Metric) {
	s, err := x.src.Sample()
	if err != nil {
		out <- prometheus.NewInvalidMetric(x.descs[0], err)
		return
	}
	for i, f := range x.families {
		desc, typ := x.descs[i], prometheus.GaugeValue
		if f.Kind == counter {
			typ = prometheus.CounterValue
		}
		send := func(v float64, labels ...string) { out <- prometheus.MustNewConstMetric(desc, typ, v, labels...) }
		switch {
		case f.one != nil:
			send(f.one(&s, x.console))
		case f.many != nil:
			f.many(&s, send)
		case f.each != nil:
			for j := range s.Pools {
				send(f.each(&s.Pools[j], x.console), s.Pools[j].labels()...)
			}
		case f.times != nil:
			for j := range s.Pools {
				out <- f.times(&s.Pools[j]).metric(desc, s.Pools[j].labels())
			}
		}
	}
}

// labels are the values of poolLabels.
func (p *PoolSample) labels() []string {
	return []string{p.User, p.Database, p.Addr, strconv.Itoa(p.Port), "0", p.Role}
}

func (h Histogram) metric(desc *prometheus.Desc, labels []string) prometheus.Metric {
	buckets, n := make(map[float64]uint64, len(h.Upper)), uint64(0)
	for i, upper := range h.Upper {
		n += h.Counts[i]
		buckets[upper.Seconds()] = n
	}
	n += h.Counts[len(h.Upper)]
	return prometheus.MustNewConstHistogram(desc, n, h.Sum.Seconds(), buckets, labels...)
}

// Liveness says over HTTP whether the pooler is well: 200 and "up"; 502 and "down" when no
// pool can connect; 503 while it shuts down.
type Liveness struct {
	Draining func() bool
	Pools    interface{ Healthy() (healthy, all int) }
}

// ServeHTTP implements [http.Handler], at any path.
func (l Liveness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	code, text := http.StatusOK, "up"
	switch healthy, all := l.Pools.Healthy(); {
	case l.Draining():
		code, text = http.StatusServiceUnavailable, "shutting down"
	case all > 0 && healthy == 0:
		code, text = http.StatusBadGateway, "down"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // whoever asked may have left
}

// requestTimeout bounds every request over HTTP.
const requestTimeout = 10 * time.Second

// NewHTTPServer makes a server for one of these handlers.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
}
