package config

import (
	"strings"
	"testing"
	"time"
)

func load(name, value string) (*Config, error) {
	return Load(func(asked string) (string, bool) { return value, asked == name })
}

func TestDefaultsAreTheContracts(t *testing.T) {
	got, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Config{3000, 1, 5 * time.Second, 1048576}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

func TestBadValuesAreNamedInOneLine(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"PORT", "0"}, {"PORT", "65536"}, {"PORT", "+80"}, {"PORT", ""},
		{"WORKER_THREADS", "0"}, {"WORKER_THREADS", "two"},
		{"DRAIN_TIMEOUT_MS", "-1"}, {"DRAIN_TIMEOUT_MS", "99999999999999"},
		{"MAX_BODY_BYTES", "0"}, {"MAX_BODY_BYTES", "1\n2"},
	} {
		_, err := load(c.name, c.value)
		if err == nil || !strings.HasPrefix(err.Error(), c.name+"=") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
}
