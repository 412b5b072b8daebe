// Package registry makes metrics and answers GET /metrics with them. The gateways of both workloads use it.
package registry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry holds metrics.
type Registry struct{ prometheus *prometheus.Registry }

// New makes one without metrics.
func New() Registry { return Registry{prometheus.NewRegistry()} }

// Counter makes a counter.
func (r Registry) Counter(name, help string) prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.prometheus.MustRegister(counter)
	return counter
}

// Counters makes a counter for each set of labels.
func (r Registry) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.prometheus.MustRegister(counters)
	return counters
}

// Gauge makes a gauge that is read when it is asked for.
func (r Registry) Gauge(name, help string, value func() float64) {
	r.prometheus.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Histogram makes a histogram.
func (r Registry) Histogram(name, help string, buckets ...float64) prometheus.Histogram {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.prometheus.MustRegister(histogram)
	return histogram
}

// Handler answers GET /metrics.
func (r Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prometheus, promhttp.HandlerOpts{})
}
