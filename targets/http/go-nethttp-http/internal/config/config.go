// Package config reads the configuration from environment variables, checked before anything starts.
package config

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

const (
	// millisecondsMax is ten days; no time here is sensibly longer, and sums of such times stay far from overflow.
	millisecondsMax = 10 * 24 * 3600 * 1000
	// bodyBytesMax keeps sums of lengths far from overflow.
	bodyBytesMax = 256 << 20
)

// Config is everything that can be set.
type Config struct {
	Port          uint16
	WorkerThreads int
	DrainTimeout  time.Duration
	BodyBytesMax  int
}

// Load reads variables through lookup, which is os.LookupEnv. Its error is one line that names the first variable whose
// value cannot be used.
func Load(lookup func(string) (string, bool)) (*Config, error) {
	v := variables{lookup: lookup}
	config := &Config{
		Port:          uint16(v.number("PORT", 3000, 1, math.MaxUint16)),
		WorkerThreads: int(v.number("WORKER_THREADS", 1, 1, 1024)),
		DrainTimeout:  time.Duration(v.number("DRAIN_TIMEOUT_MS", 5000, 0, millisecondsMax)) * time.Millisecond,
		BodyBytesMax:  int(v.number("MAX_BODY_BYTES", 1<<20, 1, bodyBytesMax)),
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

func (v *variables) number(name string, otherwise, low, high uint64) uint64 {
	text, ok := v.lookup(name)
	if !ok {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if (err != nil || value < low || value > high) && v.err == nil {
		// %q keeps the line one line, whatever the value is.
		v.err = fmt.Errorf("%s=%q: give a whole number from %d to %d", name, text, low, high)
	}
	return value
}
