package config

import (
	"strings"
	"testing"
	"time"

	"gonethttp/internal/session"
)

func load(name, value string) (*Config, error) {
	return Load(func(asked string) (string, bool) { return value, asked == name })
}

func TestDefaultsAreTheContracts(t *testing.T) {
	c, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session
	if c.Port != 3000 || c.InferenceURL.String() != "http://127.0.0.1:9000" || c.InferenceTimeout != 5*time.Second ||
		c.FlushPhaseJitter != time.Second || c.SessionsMax != 0 || c.InflightJobsMax != 0 ||
		c.DrainTimeout != 5*time.Second || c.AuthToken != "" || c.ReadPace != 0 {
		t.Errorf("got %+v", c)
	}
	if s.FlushInterval != time.Second || s.StartTimeout != 10*time.Second || s.BufferFrames != 500 ||
		s.Overflow != session.DropOldest || s.OutboxMessages != 4 || s.Echo.CPUPasses != 4 {
		t.Errorf("got %+v", s)
	}
}

func TestBadValuesAreNamedInOneLine(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"PORT", "0"}, {"PORT", "65536"}, {"PORT", "+80"}, {"PORT", ""},
		{"WORKER_THREADS", "0"}, {"WORKER_THREADS", "two"},
		{"INFERENCE_URL", "127.0.0.1:9000"}, {"INFERENCE_URL", "https://example.org"}, {"INFERENCE_URL", ""},
		{"INFERENCE_URL", "http://"}, {"INFERENCE_URL", "http://a\nb"},
		{"INFERENCE_HTTP_CLIENTS", "0"}, {"INFERENCE_TIMEOUT_MS", "-1"}, {"FLUSH_INTERVAL_MS", "0"},
		{"FLUSH_PHASE_JITTER_MS", "1.5"}, {"CPU_PASSES", "4294967296"}, {"CPU_PASSES", "x\ny"},
		{"MAX_SESSIONS", ""}, {"MAX_BUFFER_FRAMES", "0"}, {"OVERFLOW_POLICY", "DROP"}, {"MAX_INFLIGHT_JOBS", "all"},
		{"OUTBOX_MESSAGES", "0"}, {"START_TIMEOUT_MS", "0"}, {"DRAIN_TIMEOUT_MS", "99999999999999"},
		{"READ_PACE_MS", "251"},
	} {
		_, err := load(c.name, c.value)
		if err == nil || !strings.HasPrefix(err.Error(), c.name+"=") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
}
