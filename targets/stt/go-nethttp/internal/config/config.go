// Package config reads the configuration from environment variables, checked before anything starts.
package config

import (
	"math"
	"net/url"
	"runtime"
	"time"

	"gonethttp/common/variables"
	"gonethttp/internal/message"
	"gonethttp/internal/session"
)

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
	v := variables.New(lookup)
	workers := int(v.Number("WORKER_THREADS", uint64(runtime.NumCPU()), 1, 1024))
	config := &Config{
		Port:          uint16(v.Number("PORT", 3000, 1, math.MaxUint16)),
		WorkerThreads: workers,
		InferenceURL:  v.URL("INFERENCE_URL", "http://127.0.0.1:9000"),
		// One per worker: writing to a connection is serial, and one alone would be everybody's lock.
		InferenceClients: int(v.Number("INFERENCE_HTTP_CLIENTS", 1, 1, 4096)) * workers,
		InferenceTimeout: v.Milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1),
		FlushPhaseJitter: v.Milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0),
		SessionsMax:      int64(v.Number("MAX_SESSIONS", 0, 0, math.MaxInt64)),
		InflightJobsMax:  int64(v.Number("MAX_INFLIGHT_JOBS", 0, 0, math.MaxInt64)),
		DrainTimeout:     v.Milliseconds("DRAIN_TIMEOUT_MS", 5000, 0),
		AuthToken:        v.Text("AUTH_TOKEN", ""),
		ReadPace:         time.Duration(v.Number("READ_PACE_MS", 0, 0, readPaceMSMax)) * time.Millisecond,
		ProfilingAddress: v.Text("PROFILING_ADDRESS", ""),
		Session: session.Settings{
			FlushInterval:  v.Milliseconds("FLUSH_INTERVAL_MS", 1000, 1),
			StartTimeout:   v.Milliseconds("START_TIMEOUT_MS", 10_000, 1),
			BufferFrames:   int(v.Number("MAX_BUFFER_FRAMES", 500, 1, 1_000_000)),
			Overflow:       overflowPolicy(v, "OVERFLOW_POLICY", "drop_oldest"),
			OutboxMessages: int(v.Number("OUTBOX_MESSAGES", 4, 1, 1_000_000)),
			Echo:           message.Echo{CPUPasses: uint32(v.Number("CPU_PASSES", 4, 1, math.MaxUint32))},
		},
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	return config, nil
}

func overflowPolicy(v *variables.Reader, name, otherwise string) session.OverflowPolicy {
	text := v.Text(name, otherwise)
	switch text {
	case "drop_oldest":
		return session.DropOldest
	case "drop_newest":
		return session.DropNewest
	case "close":
		return session.CloseSession
	}
	v.Bad(name, text, "give drop_oldest, drop_newest or close")
	return 0
}
