package config

import (
	"strings"
	"testing"
	"time"

	"gonethttpplain/internal/session"
)

func load(name, value string) (*Config, error) {
	return Load(func(asked string) (string, bool) { return value, asked == name })
}

func TestDefaultsAreTheContracts(t *testing.T) {
	c, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Port != 3000 || c.InferenceURL.String() != "http://127.0.0.1:9000" || c.InferenceTimeout != 5*time.Second ||
		c.FlushPhaseJitter != time.Second || c.CPUPasses != 4 || c.MaxSessions != 0 || c.MaxInflightJobs != 0 ||
		c.OutboxMessages != 4 || c.StartTimeout != 10*time.Second || c.DrainTimeout != 5*time.Second || c.AuthToken != "" {
		t.Errorf("got %+v", c)
	}
	if c.InferenceClients != c.WorkerThreads {
		t.Errorf("%d connections for %d workers", c.InferenceClients, c.WorkerThreads)
	}
	if want := (session.Settings{FlushInterval: time.Second, BufferFrames: 500, Overflow: session.DropOldest}); c.Session != want {
		t.Errorf("got %+v", c.Session)
	}
}

func TestConnectionsArePerWorker(t *testing.T) {
	c, err := Load(func(name string) (string, bool) {
		value, ok := map[string]string{"WORKER_THREADS": "2", "INFERENCE_HTTP_CLIENTS": "3"}[name]
		return value, ok
	})
	if err != nil || c.InferenceClients != 6 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestBadValuesAreNamedInOneLine(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"PORT", "0"}, {"PORT", "65536"}, {"PORT", "+80"}, {"PORT", ""},
		{"WORKER_THREADS", "0"}, {"WORKER_THREADS", "two"},
		{"INFERENCE_URL", "127.0.0.1:9000"}, {"INFERENCE_URL", "https://example.org"}, {"INFERENCE_URL", ""},
		{"INFERENCE_URL", "http://"}, {"INFERENCE_URL", "http://a\nb"},
		{"INFERENCE_HTTP_CLIENTS", "0"}, {"INFERENCE_TIMEOUT_MS", "-1"}, {"FLUSH_INTERVAL_MS", "0"},
		{"FLUSH_PHASE_JITTER_MS", "1.5"}, {"CPU_PASSES", "4294967296"}, {"MAX_SESSIONS", ""},
		{"MAX_BUFFER_FRAMES", "0"}, {"OVERFLOW_POLICY", "Drop_Oldest"}, {"MAX_INFLIGHT_JOBS", "all"},
		{"OUTBOX_MESSAGES", "0"}, {"START_TIMEOUT_MS", "0"}, {"DRAIN_TIMEOUT_MS", "99999999999999"},
	} {
		_, err := load(c.name, c.value)
		if err == nil || !strings.HasPrefix(err.Error(), c.name+"=") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
}
