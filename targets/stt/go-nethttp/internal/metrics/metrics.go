// Package metrics counts what the contract's section 8 names.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gonethttp/internal/message"
	"gonethttp/internal/session"
)

// Metrics are the process's counters. Sessions count for themselves and fold their counts in about once per flush, so
// that a frame touches no shared cache line; stt_frames_total therefore lags by up to one flush interval.
type Metrics struct {
	registry *prometheus.Registry

	Sessions, SessionsRejected prometheus.Counter

	frames, framesDropped, partials         prometheus.Counter
	errors                                  [message.Kinds]prometheus.Counter
	deferred                                [session.Deferrals]prometheus.Counter
	bufferFrames, flushLateness, inferences prometheus.Histogram
}

// New makes the metrics; the gauges are read from the functions when they are asked for.
func New(sessionsOpen, jobsInflight func() float64) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.Sessions = m.counter("stt_sessions_total", "Sessions opened.")
	m.SessionsRejected = m.counter("stt_sessions_rejected_total", "Sessions refused for want of room.")
	m.frames = m.counter("stt_frames_total", "Frames accepted.")
	m.framesDropped = m.counter("stt_frames_dropped_total", "Frames dropped by the overflow policy.")
	m.partials = m.counter("stt_partials_total", "Messages partial.")
	m.gauge("stt_sessions", "Sessions open.", sessionsOpen)
	m.gauge("stt_jobs_inflight", "Inference requests in flight.", jobsInflight)

	errors := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stt_errors_total", Help: "Messages error.",
	}, []string{"stage", "kind"})
	for kind := range m.errors {
		m.errors[kind] = errors.WithLabelValues(message.Kind(kind).Stage(), message.Kind(kind).String())
	}
	deferred := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stt_ticks_deferred_total", Help: "Ticks with audio to flush that did nothing.",
	}, []string{"reason"})
	for reason := range m.deferred {
		m.deferred[reason] = deferred.WithLabelValues(session.Deferral(reason).String())
	}
	m.registry.MustRegister(errors, deferred)

	m.bufferFrames = m.histogram("stt_buffer_frames", "Frames in a batch, at its flush.",
		1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500)
	m.flushLateness = m.histogram("stt_flush_lateness_seconds", "Time of a flush less the scheduled time of its tick.",
		.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1)
	m.inferences = m.histogram("stt_inference_seconds", "Duration of inference requests.",
		.01, .025, .05, .075, .1, .125, .15, .2, .3, .5, .75, 1, 2.5, 5)
	return m
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(counter)
	return counter
}

func (m *Metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (m *Metrics) histogram(name, help string, buckets ...float64) prometheus.Histogram {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(histogram)
	return histogram
}

// Fold adds what a session counted since it last did.
func (m *Metrics) Fold(tally *session.Tally) {
	add(m.frames, tally.Frames)
	add(m.framesDropped, tally.FramesDropped)
	add(m.partials, tally.Partials)
	for kind, count := range tally.Errors {
		add(m.errors[kind], count)
	}
	for reason, count := range tally.Deferred {
		add(m.deferred[reason], count)
	}
	if tally.Flushed > 0 {
		m.bufferFrames.Observe(float64(tally.Flushed))
		m.flushLateness.Observe(tally.Lateness.Seconds())
	}
	if tally.Answered {
		m.inferences.Observe(tally.Inference.Seconds())
	}
}

func add(counter prometheus.Counter, count uint64) {
	if count > 0 {
		counter.Add(float64(count))
	}
}

// Handler answers GET /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
