// Package metrics counts what the contract's section 7 names.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"gonethttp/common/admission"
	"gonethttp/common/registry"

	"gonethttpvoice/internal/message"
)

// Metrics are the process's counters.
type Metrics struct {
	registry.Registry

	Sessions          prometheus.Counter
	AudioIn, AudioOut prometheus.Counter
	Speaks            map[Outcome]prometheus.Counter

	refused         map[admission.Cause]prometheus.Counter
	errors          map[message.Kind]prometheus.Counter
	results, finals prometheus.Counter
	requests        map[string]map[Outcome]prometheus.Counter
}

// Outcome is how a speak or a request to a provider ends.
type Outcome string

// The outcomes. A speak is dropped, a request is cancelled.
const (
	Complete  Outcome = "complete"
	Failed    Outcome = "failed"
	Dropped   Outcome = "dropped"
	Cancelled Outcome = "cancelled"
)

// STT is the provider of speech to text in the metrics.
const STT = "deepgram_stt"

// New makes the metrics; the gauge is read from the function when it is asked for.
func New(sessionsOpen func() float64) *Metrics {
	m := &Metrics{Registry: registry.New()}
	m.Gauge("voice_sessions", "Sessions open.", sessionsOpen)
	m.Sessions = m.Counter("voice_sessions_total", "Sessions opened.")
	audio := m.Counters("voice_audio_bytes_total", "Bytes of audio of callers (in) and of replies (out).", "direction")
	m.AudioIn, m.AudioOut = audio.WithLabelValues("in"), audio.WithLabelValues("out")
	results := m.Counters("voice_results_total", "Messages stt_result.", "final")
	m.results, m.finals = results.WithLabelValues("false"), results.WithLabelValues("true")
	m.refused = each(m.Counters("voice_refused_total", "Sessions not let in.", "cause"),
		admission.Capacity, admission.Draining, admission.PerAddress, admission.Rate, admission.Auth)
	m.errors = each(m.Counters("voice_errors_total", "Messages error.", "kind"), message.Kinds...)
	m.Speaks = each(m.Counters("voice_speaks_total", "Replies asked for, by their end.", "outcome"),
		Complete, Failed, Dropped)
	requests := m.Counters("voice_requests_total", "Requests to providers, each try.", "provider", "outcome")
	m.requests = map[string]map[Outcome]prometheus.Counter{}
	providers := []string{STT}
	for _, provider := range message.TTSProviders {
		providers = append(providers, provider+"_tts")
	}
	for _, provider := range providers {
		m.requests[provider] = each(requests.MustCurryWith(prometheus.Labels{"provider": provider}),
			Complete, Failed, Cancelled)
	}
	return m
}

func each[L ~string](counters *prometheus.CounterVec, labels ...L) map[L]prometheus.Counter {
	found := make(map[L]prometheus.Counter, len(labels))
	for _, label := range labels {
		found[label] = counters.WithLabelValues(string(label))
	}
	return found
}

// Refused counts somebody who is not let in.
func (m *Metrics) Refused(cause admission.Cause) { m.refused[cause].Inc() }

// Error counts a message.
func (m *Metrics) Error(kind message.Kind) { m.errors[kind].Inc() }

// Result counts a message.
func (m *Metrics) Result(final bool) {
	if final {
		m.finals.Inc()
	} else {
		m.results.Inc()
	}
}

// Request counts a try.
func (m *Metrics) Request(provider string, outcome Outcome) { m.requests[provider][outcome].Inc() }
