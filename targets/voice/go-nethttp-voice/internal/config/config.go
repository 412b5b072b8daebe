// Package config reads the contract's variables.
package config

import (
	"math"
	"net/url"
	"runtime"
	"time"

	"gonethttp/common/admission"
	"gonethttp/common/variables"
)

// audioBytesPerMS of a caller: 16 kHz, mono, 16 bits.
const audioBytesPerMS = 32

// audioBufferMSMax is an hour. It keeps what a session may hold far from what an int holds.
const audioBufferMSMax = 3_600_000

// Config is everything that can be set.
type Config struct {
	Port             uint16
	WorkerThreads    int
	ProviderURLs     []*url.URL
	ProviderKey      string
	Limits           admission.Limits
	AuthToken        string
	DrainTimeout     time.Duration
	Ready            time.Duration
	Idle             time.Duration
	TTSFirst         time.Duration
	TTSGap           time.Duration
	STTPong          time.Duration
	AudioBufferBytes int
	OutBufferBytes   int
	ProfilingAddress string
}

// Load reads variables through lookup, which is os.LookupEnv. Its error is one line that names the first variable whose
// value cannot be used.
func Load(lookup func(string) (string, bool)) (*Config, error) {
	v := variables.New(lookup)
	config := &Config{
		Port:          uint16(v.Number("PORT", 3001, 1, math.MaxUint16)),
		WorkerThreads: int(v.Number("WORKER_THREADS", uint64(runtime.NumCPU()), 1, 1024)),
		ProviderURLs:  v.URLs("PROVIDER_URLS", "http://127.0.0.1:9100"),
		ProviderKey:   v.Text("PROVIDER_KEY", ""),
		Limits: admission.Limits{
			Sessions:           int64(v.Number("MAX_SESSIONS", 0, 0, math.MaxInt64)),
			SessionsPerAddress: int64(v.Number("MAX_SESSIONS_PER_ADDRESS", 0, 0, math.MaxInt64)),
			AsksPerSecond:      int64(v.Number("RATE_LIMIT_RPS", 0, 0, math.MaxInt64)),
		},
		AuthToken:        v.Text("AUTH_TOKEN", ""),
		DrainTimeout:     v.Milliseconds("DRAIN_TIMEOUT_MS", 5000, 0),
		Ready:            v.Milliseconds("READY_MS", 30_000, 1),
		Idle:             v.Milliseconds("IDLE_MS", 300_000, 1),
		TTSFirst:         v.Milliseconds("TTS_FIRST_MS", 10_000, 1),
		TTSGap:           v.Milliseconds("TTS_GAP_MS", 2000, 1),
		STTPong:          v.Milliseconds("STT_PONG_MS", 5000, 1),
		AudioBufferBytes: int(v.Number("AUDIO_BUFFER_MS", 5000, 0, audioBufferMSMax)) * audioBytesPerMS,
		OutBufferBytes:   int(v.Number("OUT_BUFFER_BYTES", 1<<20, 0, 1<<30)),
		ProfilingAddress: v.Text("PROFILING_ADDRESS", ""),
	}
	if !printable(config.ProviderKey) {
		v.Bad("PROVIDER_KEY", "…", "give printable ASCII")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	return config, nil
}

// printable says whether a text can be the value of a header.
func printable(text string) bool {
	for _, char := range text {
		if char < ' ' || char > '~' {
			return false
		}
	}
	return true
}
