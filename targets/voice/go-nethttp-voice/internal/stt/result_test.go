package stt

import (
	"testing"
	"time"

	"gonethttpvoice/internal/message"
)

func TestResults(t *testing.T) {
	text := `{"type":"Results","start":1.5,"duration":0.5,"is_final":true,"speech_final":false,"more":1,
		"channel":{"alternatives":[{"transcript":"a \"b\"","confidence":0.75,"words":[]},{"transcript":"c"}]}}`
	got, end := parseResult([]byte(text))
	want := message.Result{Transcript: `a "b"`, Final: true, Confidence: 0.75}
	if got == nil || *got != want || end != 64_000 {
		t.Errorf("got %+v, %d", got, end)
	}
	if got, _ := parseResult([]byte(`{"type":"Results","channel":{"alternatives":[]}}`)); got == nil || *got != (message.Result{}) {
		t.Errorf("without alternatives: %+v", got)
	}
	for _, text := range []string{``, `[]`, `{"type":"Metadata"}`, `{"type":"Error","description":"x"}`} {
		if got, _ := parseResult([]byte(text)); got != nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestTheTimeOfAResultCountsFromItsLastAudio(t *testing.T) {
	var s sent
	if s.since(640, time.Second) != 0 {
		t.Error("without audio")
	}
	for i := range 100 {
		s.add(3200, time.Duration(i)*time.Millisecond)
	}
	for _, c := range []struct {
		end  int64
		want time.Duration
	}{
		{100 * 3200, 901}, {99*3200 + 1, 901}, {99 * 3200, 902}, {50 * 3200, 951},
		// Sent longer ago than is known, and not sent at all.
		{1, 964}, {1 << 40, 901},
	} {
		if got := s.since(c.end, time.Second); got != c.want*time.Millisecond {
			t.Errorf("%d: %v", c.end, got)
		}
	}
}
