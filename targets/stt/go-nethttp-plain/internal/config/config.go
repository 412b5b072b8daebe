// Package config reads the settings from environment variables.
package config

import (
	"fmt"
	"math"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"time"

	"gonethttpplain/internal/session"
)

// millisecondsMax is ten days. No time here is sensibly longer, and sums of such times stay far from overflow.
const millisecondsMax = 10 * 24 * 3600 * 1000

// Config is everything that can be set.
type Config struct {
	Port, WorkerThreads int
	InferenceURL        *url.URL
	// InferenceClients is the number of connections of all workers together.
	InferenceClients                                               int
	InferenceTimeout, FlushPhaseJitter, StartTimeout, DrainTimeout time.Duration
	CPUPasses                                                      uint32
	MaxSessions, MaxInflightJobs                                   int64
	OutboxMessages                                                 int
	AuthToken                                                      string
	Session                                                        session.Settings
}

// Load reads variables through lookup, which is os.LookupEnv. Its error is one line that names the first variable whose
// value cannot be used.
func Load(lookup func(string) (string, bool)) (*Config, error) {
	r := &reader{lookup: lookup}
	workers := int(r.number("WORKER_THREADS", uint64(runtime.GOMAXPROCS(0)), 1, 1024))
	config := &Config{
		Port:             int(r.number("PORT", 3000, 1, math.MaxUint16)),
		WorkerThreads:    workers,
		InferenceURL:     r.url("INFERENCE_URL", "http://127.0.0.1:9000"),
		InferenceClients: int(r.number("INFERENCE_HTTP_CLIENTS", 1, 1, 1024)) * workers,
		InferenceTimeout: r.milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1),
		FlushPhaseJitter: r.milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0),
		CPUPasses:        uint32(r.number("CPU_PASSES", 4, 1, math.MaxUint32)),
		MaxSessions:      int64(r.number("MAX_SESSIONS", 0, 0, math.MaxInt64)),
		MaxInflightJobs:  int64(r.number("MAX_INFLIGHT_JOBS", 0, 0, math.MaxInt64)),
		OutboxMessages:   int(r.number("OUTBOX_MESSAGES", 4, 1, 10_000)),
		StartTimeout:     r.milliseconds("START_TIMEOUT_MS", 10_000, 1),
		DrainTimeout:     r.milliseconds("DRAIN_TIMEOUT_MS", 5000, 0),
		AuthToken:        r.text("AUTH_TOKEN", ""),
		Session: session.Settings{
			FlushInterval: r.milliseconds("FLUSH_INTERVAL_MS", 1000, 1),
			BufferFrames:  int(r.number("MAX_BUFFER_FRAMES", 500, 1, 1_000_000)),
			Overflow:      r.overflowPolicy("OVERFLOW_POLICY", session.DropOldest),
		},
	}
	if r.err != nil {
		return nil, r.err
	}
	return config, nil
}

// reader reads one variable after the other and keeps the first error.
type reader struct {
	lookup func(string) (string, bool)
	err    error
}

func (r *reader) text(name, otherwise string) string {
	if value, ok := r.lookup(name); ok {
		return value
	}
	return otherwise
}

func (r *reader) bad(name, value, want string) {
	if r.err == nil {
		// %q keeps the line one line, whatever the value is.
		r.err = fmt.Errorf("%s=%q: give %s", name, value, want)
	}
}

func (r *reader) number(name string, otherwise, low, high uint64) uint64 {
	text := r.text(name, strconv.FormatUint(otherwise, 10))
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil || value < low || value > high {
		r.bad(name, text, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return value
}

func (r *reader) milliseconds(name string, otherwise, low uint64) time.Duration {
	return time.Duration(r.number(name, otherwise, low, millisecondsMax)) * time.Millisecond
}

func (r *reader) url(name, otherwise string) *url.URL {
	text := r.text(name, otherwise)
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "http" || base.Hostname() == "" || base.RawQuery != "" {
		r.bad(name, text, "http://host:port")
	}
	return base
}

func (r *reader) overflowPolicy(name string, otherwise session.OverflowPolicy) session.OverflowPolicy {
	text := r.text(name, string(otherwise))
	policy := session.OverflowPolicy(text)
	if !slices.Contains([]session.OverflowPolicy{session.DropOldest, session.DropNewest, session.Close}, policy) {
		r.bad(name, text, "drop_oldest, drop_newest or close")
	}
	return policy
}
