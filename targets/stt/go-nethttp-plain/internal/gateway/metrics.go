package gateway

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gonethttpplain/internal/message"
	"gonethttpplain/internal/session"
)

// metrics are the contract's section 8.
type metrics struct {
	handler http.Handler

	sessions, sessionsRejected, frames, framesDropped, partials prometheus.Counter
	errors, ticksDeferred                                       *prometheus.CounterVec
	bufferFrames, flushLateness, inference                      prometheus.Histogram
}

func newMetrics(sessions, jobs *limit) *metrics {
	registry := prometheus.NewRegistry()
	factory := promauto.With(registry)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string, l *limit) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(l.used.Load()) })
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return factory.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	gauge("stt_sessions", "Sessions open.", sessions)
	gauge("stt_jobs_inflight", "Inference requests in flight.", jobs)
	m := &metrics{
		handler:          promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		sessions:         counter("stt_sessions_total", "Sessions opened."),
		sessionsRejected: counter("stt_sessions_rejected_total", "Sessions refused at MAX_SESSIONS."),
		frames:           counter("stt_frames_total", "Frames accepted."),
		framesDropped:    counter("stt_frames_dropped_total", "Frames dropped by the overflow policy."),
		partials:         counter("stt_partials_total", "Messages partial."),
		errors: factory.NewCounterVec(
			prometheus.CounterOpts{Name: "stt_errors_total", Help: "Messages error."}, []string{"stage", "kind"}),
		ticksDeferred: factory.NewCounterVec(
			prometheus.CounterOpts{Name: "stt_ticks_deferred_total", Help: "Ticks with audio that did nothing."}, []string{"reason"}),
		bufferFrames: histogram("stt_buffer_frames", "Frames in a batch, at its flush.",
			1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500),
		flushLateness: histogram("stt_flush_lateness_seconds", "Time of a flush less the scheduled time of its tick.",
			.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1),
		inference: histogram("stt_inference_seconds", "Duration of inference requests.",
			.01, .025, .05, .075, .1, .125, .15, .2, .3, .5, .75, 1, 2.5, 5),
	}
	// Every series is there from the start, so that a rate can be taken of the first event.
	for _, kind := range message.Kinds {
		m.errors.WithLabelValues(kind.Stage, kind.Name)
	}
	for _, reason := range session.Deferrals {
		m.ticksDeferred.WithLabelValues(string(reason))
	}
	return m
}
