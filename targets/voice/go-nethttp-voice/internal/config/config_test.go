package config

import (
	"strings"
	"testing"
	"time"

	"gonethttp/common/admission"
)

func load(name, value string) (*Config, error) {
	return Load(func(asked string) (string, bool) { return value, asked == name })
}

func TestDefaultsAreTheContracts(t *testing.T) {
	c, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Port != 3001 || len(c.ProviderURLs) != 1 || c.ProviderURLs[0].String() != "http://127.0.0.1:9100" ||
		c.ProviderKey != "" || c.Limits != (admission.Limits{}) || c.AuthToken != "" || c.DrainTimeout != 5*time.Second ||
		c.Ready != 30*time.Second || c.Idle != 5*time.Minute || c.TTSFirst != 10*time.Second || c.TTSGap != 2*time.Second ||
		c.STTPong != 5*time.Second || c.AudioBufferBytes != 160_000 || c.OutBufferBytes != 1<<20 {
		t.Errorf("got %+v", c)
	}
}

func TestProviderURLsAreAList(t *testing.T) {
	c, err := load("PROVIDER_URLS", "http://127.0.0.1:1, http://127.0.0.1:2/base")
	if err != nil || len(c.ProviderURLs) != 2 || c.ProviderURLs[1].String() != "http://127.0.0.1:2/base" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestBadValuesAreNamedInOneLine(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"PORT", "0"}, {"PORT", "65536"}, {"PORT", ""}, {"WORKER_THREADS", "0"},
		{"PROVIDER_URLS", ""}, {"PROVIDER_URLS", "http://127.0.0.1:1,"}, {"PROVIDER_URLS", "https://example.org"},
		{"PROVIDER_KEY", "a\nb"}, {"MAX_SESSIONS", "-1"}, {"MAX_SESSIONS_PER_ADDRESS", "x"}, {"RATE_LIMIT_RPS", "1.5"},
		{"DRAIN_TIMEOUT_MS", "99999999999999"}, {"READY_MS", "0"}, {"IDLE_MS", "0"}, {"TTS_FIRST_MS", "0"},
		{"TTS_GAP_MS", "a\nb"}, {"STT_PONG_MS", "0"}, {"AUDIO_BUFFER_MS", "3600001"}, {"OUT_BUFFER_BYTES", "1 MiB"},
	} {
		_, err := load(c.name, c.value)
		if err == nil || !strings.HasPrefix(err.Error(), c.name+"=") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
}
