package session

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"gonethttpplain/internal/message"
)

const second = time.Second

var epoch = time.Unix(1_800_000_000, 0)

func at(d time.Duration) time.Time { return epoch.Add(d) }

func settings(frames int, overflow OverflowPolicy) *Settings {
	return &Settings{FlushInterval: second, BufferFrames: frames, Overflow: overflow}
}

func yes() bool { return true }
func no() bool  { return false }

// send gives the session frames, each filled with a number of its own.
func send(t *testing.T, s *Session, d time.Duration, frames ...byte) {
	t.Helper()
	for _, frame := range frames {
		if _, err := s.Offer(bytes.Repeat([]byte{frame}, message.FrameBytes), at(d)); err != nil {
			t.Fatal(err)
		}
	}
}

func tick(s *Session, d time.Duration) Tick { return s.Tick(at(d), 4, yes) }

func expectSpan(t *testing.T, what string, got message.Span, oldest, newest uint64) {
	t.Helper()
	if got.OldestSeq != oldest || got.NewestSeq != newest {
		t.Fatalf("%s: got %d to %d, want %d to %d", what, got.OldestSeq, got.NewestSeq, oldest, newest)
	}
}

func expectBatch(t *testing.T, got Tick, oldest, newest uint64, frames ...byte) {
	t.Helper()
	if got.Batch == nil {
		t.Fatalf("no batch in %+v", got)
	}
	expectSpan(t, "batch", got.Batch.Span, oldest, newest)
	var pcm []byte
	for _, frame := range frames {
		pcm = append(pcm, bytes.Repeat([]byte{frame}, message.FrameBytes)...)
	}
	if !bytes.Equal(got.Batch.PCM, pcm) {
		t.Fatalf("a batch of %d bytes is of other audio", len(got.Batch.PCM))
	}
}

func TestScheduleIsAbsolute(t *testing.T) {
	s := New(settings(500, DropOldest), at(300*time.Millisecond))
	for _, step := range []struct{ now, lateness, next time.Duration }{
		{1300 * time.Millisecond, 0, 2300 * time.Millisecond},
		{2900 * time.Millisecond, 600 * time.Millisecond, 3300 * time.Millisecond},
		{3300 * time.Millisecond, 0, 4300 * time.Millisecond},
		{6800 * time.Millisecond, 2500 * time.Millisecond, 7300 * time.Millisecond},
	} {
		if got := tick(s, step.now); got.Lateness != step.lateness || !s.NextTick().Equal(at(step.next)) {
			t.Errorf("at %v: %v late, next at %v", step.now, got.Lateness, s.NextTick())
		}
	}
}

func TestTickTakesTheWholeBuffer(t *testing.T) {
	s := New(settings(500, DropOldest), at(0))
	send(t, s, second/4, 1)
	send(t, s, second/2, 2, 3)
	got := tick(s, second+10*time.Millisecond)
	expectBatch(t, got, 1, 3, 1, 2, 3)
	if got.Lateness != 10*time.Millisecond || !got.Batch.OldestAt.Equal(at(second/4)) || !got.Batch.NewestAt.Equal(at(second/2)) {
		t.Errorf("got %+v", got)
	}
}

func TestEmptyBufferDoesNothing(t *testing.T) {
	s := New(settings(500, DropOldest), at(0))
	if got := tick(s, second); got != (Tick{}) {
		t.Errorf("got %+v", got)
	}
	send(t, s, second, 1)
	expectBatch(t, tick(s, 2*second), 1, 1, 1)
	if got := tick(s, 3*second); got != (Tick{}) {
		t.Errorf("with a request in flight: %+v", got)
	}
}

func TestOneInFlight(t *testing.T) {
	s := New(settings(500, DropOldest), at(0))
	send(t, s, 0, 1)
	expectBatch(t, tick(s, second), 1, 1, 1)
	for k := range time.Duration(3) {
		send(t, s, (k+1)*second, 2)
		if got := tick(s, (k+2)*second); got.Batch != nil || got.Deferred != Inflight {
			t.Fatalf("got %+v", got)
		}
	}
	s.Answered()
	expectBatch(t, tick(s, 5*second), 2, 4, 2, 2, 2)
}

func TestDropOldest(t *testing.T) {
	s := New(settings(3, DropOldest), at(0))
	send(t, s, 0, 1)
	expectBatch(t, tick(s, second), 1, 1, 1)
	send(t, s, second, 2, 3, 4, 5, 6)
	if got := tick(s, 2*second); got.Dropped.Frames() != 0 || got.Deferred != Inflight {
		t.Fatalf("drops were named before the batch in flight: %+v", got)
	}
	s.Answered()
	got := tick(s, 3*second)
	expectSpan(t, "dropped", got.Dropped, 2, 3)
	expectBatch(t, got, 4, 6, 4, 5, 6)
}

func TestDropNewest(t *testing.T) {
	s := New(settings(3, DropNewest), at(0))
	send(t, s, 0, 1, 2, 3, 4, 5)
	expectBatch(t, tick(s, second), 1, 3, 1, 2, 3)
	send(t, s, second, 6)
	s.Answered()
	got := tick(s, 2*second)
	expectSpan(t, "dropped", got.Dropped, 4, 5)
	expectBatch(t, got, 6, 6, 6)
}

func TestDropsAreNamedWithoutABatch(t *testing.T) {
	s := New(settings(1, DropNewest), at(0))
	send(t, s, 0, 1, 2)
	expectBatch(t, tick(s, second), 1, 1, 1)
	s.Answered()
	got := tick(s, 2*second)
	expectSpan(t, "dropped", got.Dropped, 2, 2)
	if got.Batch != nil || got.Deferred != "" {
		t.Errorf("got %+v", got)
	}
}

func TestOverflowCloses(t *testing.T) {
	s := New(settings(2, Close), at(0))
	send(t, s, 0, 1, 2)
	if _, err := s.Offer(make([]byte, message.FrameBytes), at(0)); !errors.Is(err, ErrOverflow) {
		t.Errorf("got %v", err)
	}
	expectBatch(t, tick(s, second), 1, 2, 1, 2)
}

func TestFullOutboxDefers(t *testing.T) {
	s := New(settings(2, DropOldest), at(0))
	send(t, s, 0, 1)
	if got := s.Tick(at(second), 0, yes); got.Batch != nil || got.Deferred != Outbox {
		t.Fatalf("got %+v", got)
	}
	// The name of the dropped frame takes the last place.
	send(t, s, second, 2, 3)
	got := s.Tick(at(2*second), 1, yes)
	expectSpan(t, "dropped", got.Dropped, 1, 1)
	if got.Batch != nil || got.Deferred != Outbox {
		t.Fatalf("got %+v", got)
	}
	expectBatch(t, s.Tick(at(3*second), 1, yes), 2, 3, 2, 3)
}

func TestJobsDefer(t *testing.T) {
	s := New(settings(500, DropOldest), at(0))
	send(t, s, 0, 1)
	if got := s.Tick(at(second), 4, no); got.Batch != nil || got.Deferred != Jobs {
		t.Errorf("got %+v", got)
	}
	expectBatch(t, tick(s, 2*second), 1, 1, 1)
}
