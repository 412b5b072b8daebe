package stt

import (
	"testing"
	"time"
)

// TestPausesBeforeTries compares with section 4 of the contract.
func TestPausesBeforeTries(t *testing.T) {
	for try, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000, 2000} {
		if got := pauseBefore(try); got != want*time.Millisecond {
			t.Errorf("try %d: %v", try, got)
		}
	}
	if got := pauseBefore(1_000_000); got != quietPause {
		t.Errorf("much later: %v", got)
	}
}
