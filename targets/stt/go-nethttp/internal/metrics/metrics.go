// Package metrics counts what the contract's section 8 names.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"gonethttp/common/registry"
	"gonethttp/internal/message"
	"gonethttp/internal/session"
)

// Metrics are the process's counters. Sessions count for themselves and fold their counts in about once per flush, so
// that a frame touches no shared cache line; stt_frames_total therefore lags by up to one flush interval.
type Metrics struct {
	registry.Registry

	Sessions, SessionsRejected prometheus.Counter

	frames, framesDropped, partials         prometheus.Counter
	errors                                  [message.Kinds]prometheus.Counter
	deferred                                [session.Deferrals]prometheus.Counter
	bufferFrames, flushLateness, inferences prometheus.Histogram
}

// New makes the metrics; the gauges are read from the functions when they are asked for.
func New(sessionsOpen, jobsInflight func() float64) *Metrics {
	m := &Metrics{Registry: registry.New()}
	m.Sessions = m.Counter("stt_sessions_total", "Sessions opened.")
	m.SessionsRejected = m.Counter("stt_sessions_rejected_total", "Sessions refused for want of room.")
	m.frames = m.Counter("stt_frames_total", "Frames accepted.")
	m.framesDropped = m.Counter("stt_frames_dropped_total", "Frames dropped by the overflow policy.")
	m.partials = m.Counter("stt_partials_total", "Messages partial.")
	m.Gauge("stt_sessions", "Sessions open.", sessionsOpen)
	m.Gauge("stt_jobs_inflight", "Inference requests in flight.", jobsInflight)

	errors := m.Counters("stt_errors_total", "Messages error.", "stage", "kind")
	for kind := range m.errors {
		m.errors[kind] = errors.WithLabelValues(message.Kind(kind).Stage(), message.Kind(kind).String())
	}
	deferred := m.Counters("stt_ticks_deferred_total", "Ticks with audio to flush that did nothing.", "reason")
	for reason := range m.deferred {
		m.deferred[reason] = deferred.WithLabelValues(session.Deferral(reason).String())
	}

	m.bufferFrames = m.Histogram("stt_buffer_frames", "Frames in a batch, at its flush.",
		1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500)
	m.flushLateness = m.Histogram("stt_flush_lateness_seconds", "Time of a flush less the scheduled time of its tick.",
		.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1)
	m.inferences = m.Histogram("stt_inference_seconds", "Duration of inference requests.",
		.01, .025, .05, .075, .1, .125, .15, .2, .3, .5, .75, 1, 2.5, 5)
	return m
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
