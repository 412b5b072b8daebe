// Package config reads the configuration from environment variables, checked before anything starts.
package config

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"runtime"
	"strconv"
	"time"

	"gonethttp/internal/message"
	"gonethttp/internal/session"
)

// millisecondsMax is ten days; no time here is sensibly longer, and sums of such times stay far from overflow.
const millisecondsMax = 10 * 24 * 3600 * 1000

// readPaceMSMax leaves half of the 500 ms in which a violation must be answered.
const readPaceMSMax = 250

// Config is everything that can be set.
type Config struct {
	Port             uint16
	WorkerThreads    int
	InferenceURL     *url.URL
	InferenceClients int
	InferenceTimeout time.Duration
	FlushPhaseJitter time.Duration
	SessionsMax      int64
	InflightJobsMax  int64
	DrainTimeout     time.Duration
	AuthToken        string
	ReadPace         time.Duration
	ProfilingAddress string
	Session          session.Settings
}

// Load reads variables through lookup, which is os.LookupEnv. Its error is one line that names the first variable whose
// value cannot be used.
func Load(lookup func(string) (string, bool)) (*Config, error) {
	v := variables{lookup: lookup}
	workers := int(v.number("WORKER_THREADS", uint64(runtime.NumCPU()), 1, 1024))
	config := &Config{
		Port:          uint16(v.number("PORT", 3000, 1, math.MaxUint16)),
		WorkerThreads: workers,
		InferenceURL:  v.url("INFERENCE_URL", "http://127.0.0.1:9000"),
		// One per worker: writing to a connection is serial, and one alone would be everybody's lock.
		InferenceClients: int(v.number("INFERENCE_HTTP_CLIENTS", uint64(workers), 1, 4096)),
		InferenceTimeout: v.milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1),
		FlushPhaseJitter: v.milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0),
		SessionsMax:      int64(v.number("MAX_SESSIONS", 0, 0, math.MaxInt64)),
		InflightJobsMax:  int64(v.number("MAX_INFLIGHT_JOBS", 0, 0, math.MaxInt64)),
		DrainTimeout:     v.milliseconds("DRAIN_TIMEOUT_MS", 5000, 0),
		AuthToken:        v.text("AUTH_TOKEN", ""),
		ReadPace:         time.Duration(v.number("READ_PACE_MS", 0, 0, readPaceMSMax)) * time.Millisecond,
		ProfilingAddress: v.text("PROFILING_ADDRESS", ""),
		Session: session.Settings{
			FlushInterval:  v.milliseconds("FLUSH_INTERVAL_MS", 1000, 1),
			StartTimeout:   v.milliseconds("START_TIMEOUT_MS", 10_000, 1),
			BufferFrames:   int(v.number("MAX_BUFFER_FRAMES", 500, 1, 1_000_000)),
			Overflow:       v.overflowPolicy("OVERFLOW_POLICY", "drop_oldest"),
			OutboxMessages: int(v.number("OUTBOX_MESSAGES", 4, 1, 1_000_000)),
			Echo: message.Echo{
				CPUPasses:    uint32(v.number("CPU_PASSES", 4, 1, math.MaxUint32)),
				ModelDelayMS: v.number("MODEL_DELAY_MS", 75, 0, math.MaxUint64),
			},
		},
	}
	if v.err != nil {
		return nil, v.err
	}
	return config, nil
}

// variables reads one variable after the other and keeps the first error.
type variables struct {
	lookup func(string) (string, bool)
	err    error
}

func (v *variables) bad(name, value string, problem any) {
	if v.err == nil {
		// %q keeps the line one line, whatever the value is.
		v.err = fmt.Errorf("%s=%q: %v", name, value, problem)
	}
}

func (v *variables) text(name, otherwise string) string {
	if value, ok := v.lookup(name); ok {
		return value
	}
	return otherwise
}

func (v *variables) number(name string, otherwise, low, high uint64) uint64 {
	text := v.text(name, strconv.FormatUint(otherwise, 10))
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil || value < low || value > high {
		v.bad(name, text, fmt.Sprintf("give a whole number from %d to %d", low, high))
	}
	return value
}

func (v *variables) milliseconds(name string, otherwise, low uint64) time.Duration {
	return time.Duration(v.number(name, otherwise, low, millisecondsMax)) * time.Millisecond
}

func (v *variables) url(name, otherwise string) *url.URL {
	text := v.text(name, otherwise)
	base, err := url.Parse(text)
	if err == nil && (base.Scheme != "http" || base.Hostname() == "" || base.RawQuery != "") {
		err = errors.New("give http://host:port")
	}
	if err != nil {
		v.bad(name, text, err)
	}
	return base
}

func (v *variables) overflowPolicy(name, otherwise string) session.OverflowPolicy {
	text := v.text(name, otherwise)
	switch text {
	case "drop_oldest":
		return session.DropOldest
	case "drop_newest":
		return session.DropNewest
	case "close":
		return session.CloseSession
	}
	v.bad(name, text, "give drop_oldest, drop_newest or close")
	return 0
}
