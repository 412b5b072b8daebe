package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"gonethttp/internal/message"
)

const second = time.Second

func settings() *Settings {
	return &Settings{
		FlushInterval:  second,
		StartTimeout:   10 * second,
		BufferFrames:   500,
		OutboxMessages: 4,
		Echo:           message.Echo{CPUPasses: 4},
	}
}

func yes() bool { return true }
func no() bool  { return false }

// started is a session whose schedule has its origin at the jitter.
func started(t *testing.T, s *Settings, jitter time.Duration) *Session {
	t.Helper()
	session := New(s, jitter, 0)
	if err := session.Text(0, []byte(`{"type":"start"}`)); err != nil {
		t.Fatal(err)
	}
	return session
}

// send gives the session frames, each filled with a number of its own.
func send(t *testing.T, s *Session, at time.Duration, frames ...byte) {
	t.Helper()
	for _, frame := range frames {
		if err := s.Binary(at, bytes.Repeat([]byte{frame}, message.FrameBytes)); err != nil {
			t.Fatal(err)
		}
	}
}

func wake(t *testing.T, s *Session, at time.Duration) *Request {
	t.Helper()
	request, err := s.Wake(at, yes)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// named is what both messages say about frames.
type named struct {
	Type    string  `json:"type"`
	Kind    string  `json:"kind"`
	Oldest  uint64  `json:"oldest_frame_seq"`
	Newest  uint64  `json:"newest_frame_seq"`
	Frames  uint64  `json:"frames"`
	Late    float64 `json:"flush_lateness_ms"`
	OldAge  float64 `json:"oldest_age_ms"`
	NewAge  float64 `json:"newest_age_ms"`
	Waiting uint64  `json:"gateway_buffer_frames"`
}

// next takes a message as if the client read it at once.
func next(t testing.TB, s *Session) *named {
	t.Helper()
	text := s.NextMessage()
	if text == nil {
		return nil
	}
	s.MessageSent()
	m := new(named)
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func expect(t *testing.T, s *Session, kind string, oldest, newest uint64) {
	t.Helper()
	m := next(t, s)
	if m == nil || m.Type+m.Kind != kind || m.Oldest != oldest || m.Newest != newest {
		t.Fatalf("got %+v, want %s of %d to %d", m, kind, oldest, newest)
	}
}

func TestScheduleIsAbsolute(t *testing.T) {
	s := newSchedule(300*time.Millisecond, second)
	for _, step := range []struct {
		now, tick time.Duration
		count     int
	}{
		{1299 * time.Millisecond, 0, 0},
		{1900 * time.Millisecond, 1300 * time.Millisecond, 1},
		{2300 * time.Millisecond, 2300 * time.Millisecond, 1},
		{5800 * time.Millisecond, 3300 * time.Millisecond, 3},
		{5900 * time.Millisecond, 0, 0},
	} {
		if tick, count := s.due(step.now); tick != step.tick || count != step.count {
			t.Errorf("at %v: %d ticks from %v", step.now, count, tick)
		}
	}
	if s.next != 6300*time.Millisecond {
		t.Errorf("next is %v", s.next)
	}
}

func TestTickTakesTheWholeBuffer(t *testing.T) {
	s := started(t, settings(), 250*time.Millisecond)
	send(t, s, 100*time.Millisecond, 1, 2, 3)
	if s.NextWake() != 1250*time.Millisecond {
		t.Fatalf("the first tick is at %v", s.NextWake())
	}
	request := wake(t, s, 1260*time.Millisecond)
	if request == nil || len(request.PCM()) != 3*message.FrameBytes || request.PCM()[message.FrameBytes] != 2 {
		t.Fatal("not the three frames")
	}
	s.Answer(1300*time.Millisecond, request, &message.Inference{}, nil)
	m := next(t, s)
	if m.Type != "partial" || m.Oldest != 1 || m.Newest != 3 || m.Frames != 3 || m.Late != 10 {
		t.Errorf("got %+v", m)
	}
	tally := s.TakeTally()
	if tally.Frames != 3 || tally.Flushed != 3 || tally.Partials != 1 || tally.Inference != 40*time.Millisecond {
		t.Errorf("counted %+v", tally)
	}
}

func TestEmptyBufferDoesNothing(t *testing.T) {
	s := started(t, settings(), 0)
	if wake(t, s, second) != nil || s.Unsent() != 0 || s.TakeTally() != (Tally{}) {
		t.Error("something was done")
	}
}

func TestOneInFlight(t *testing.T) {
	s := started(t, settings(), 0)
	send(t, s, 0, 1)
	first := wake(t, s, second)
	send(t, s, second, 2)
	for k := range 3 {
		if wake(t, s, time.Duration(k+2)*second) != nil {
			t.Fatal("a second request in flight")
		}
		send(t, s, time.Duration(k+2)*second, 3)
	}
	if tally := s.TakeTally(); tally.Deferred[DeferredInflight] != 3 {
		t.Errorf("counted %+v", tally)
	}
	s.Answer(4*second+second/2, first, &message.Inference{}, nil)
	expect(t, s, "partial", 1, 1)
	second5 := wake(t, s, 5*second)
	if second5 != first || len(second5.PCM()) != 4*message.FrameBytes {
		t.Fatal("not the whole buffer, at the tick after the answer")
	}
}

func TestAnsweringTwiceIsABug(t *testing.T) {
	s := started(t, settings(), 0)
	send(t, s, 0, 1)
	request := wake(t, s, second)
	s.Answer(second, request, &message.Inference{}, nil)
	defer func() {
		if recover() == nil {
			t.Error("accepted")
		}
	}()
	s.Answer(second, request, &message.Inference{}, nil)
}

func TestFailureNamesItsFrames(t *testing.T) {
	s := started(t, settings(), 0)
	send(t, s, second/2, 1, 2)
	request := wake(t, s, second)
	send(t, s, second, 3)
	s.Answer(2*second, request, nil, message.Failed(message.Timeout, "late"))
	m := next(t, s)
	if m.Kind != "timeout" || m.Oldest != 1 || m.Newest != 2 || m.OldAge != 1500 || m.NewAge != 1500 || m.Waiting != 1 {
		t.Errorf("got %+v", m)
	}
	if tally := s.TakeTally(); tally.Errors[message.Timeout] != 1 || tally.Partials != 0 {
		t.Errorf("counted %+v", tally)
	}
}

func TestDropOldest(t *testing.T) {
	small := settings()
	small.BufferFrames = 3
	s := started(t, small, 0)
	send(t, s, 0, 1)
	request := wake(t, s, second)
	send(t, s, second, 2, 3, 4, 5, 6)
	if wake(t, s, 2*second) != nil || s.Unsent() != 0 {
		t.Fatal("drops were named before the batch in flight")
	}
	s.Answer(2*second, request, &message.Inference{}, nil)
	request = wake(t, s, 3*second)
	expect(t, s, "partial", 1, 1)
	expect(t, s, "erroroverflow", 2, 3)
	for k, frame := range []byte{4, 5, 6} {
		if request.PCM()[k*message.FrameBytes] != frame {
			t.Errorf("frame %d is in place %d", request.PCM()[k*message.FrameBytes], k)
		}
	}
	if tally := s.TakeTally(); tally.Frames != 6 || tally.FramesDropped != 2 || tally.Errors[message.Overflow] != 1 {
		t.Errorf("counted %+v", tally)
	}
}

func TestDropNewest(t *testing.T) {
	small := settings()
	small.BufferFrames, small.Overflow = 3, DropNewest
	s := started(t, small, 0)
	send(t, s, 0, 1, 2, 3, 4, 5)
	request := wake(t, s, second)
	send(t, s, second, 6)
	s.Answer(second, request, &message.Inference{}, nil)
	expect(t, s, "partial", 1, 3)
	request = wake(t, s, 2*second)
	expect(t, s, "erroroverflow", 4, 5)
	s.Answer(2*second, request, &message.Inference{}, nil)
	expect(t, s, "partial", 6, 6)
}

func TestOverflowCloses(t *testing.T) {
	small := settings()
	small.BufferFrames, small.Overflow = 2, CloseSession
	s := started(t, small, 0)
	send(t, s, 0, 1, 2)
	if err := s.Binary(0, make([]byte, message.FrameBytes)); !errors.Is(err, ErrOverflow) || ErrOverflow.Code != 1013 {
		t.Errorf("got %v", err)
	}
}

func TestFullOutboxDefers(t *testing.T) {
	one := settings()
	one.OutboxMessages = 1
	s := started(t, one, 0)
	send(t, s, 0, 1)
	s.Answer(second, wake(t, s, second), &message.Inference{}, nil)
	send(t, s, second, 2)
	// Being written is not yet sent.
	if s.NextMessage() == nil || wake(t, s, 2*second) != nil {
		t.Fatal("a request for a client that does not read")
	}
	if s.TakeTally().Deferred[DeferredOutbox] != 1 {
		t.Error("not counted")
	}
	s.MessageSent()
	if wake(t, s, 3*second) == nil {
		t.Error("no request though the outbox is empty")
	}
}

func TestReportFillsTheOutboxToo(t *testing.T) {
	tight := settings()
	tight.OutboxMessages, tight.BufferFrames = 1, 2
	s := started(t, tight, 0)
	send(t, s, 0, 1, 2, 3)
	if wake(t, s, second) != nil || s.Unsent() != 1 {
		t.Fatal("more messages than the outbox holds")
	}
	expect(t, s, "erroroverflow", 1, 1)
	if request := wake(t, s, 2*second); request == nil || len(request.PCM()) != 2*message.FrameBytes {
		t.Error("the rest did not follow")
	}
}

func TestJobsDefer(t *testing.T) {
	s := started(t, settings(), 0)
	send(t, s, 0, 1)
	if request, _ := s.Wake(second, no); request != nil || s.TakeTally().Deferred[DeferredJobs] != 1 {
		t.Error("not deferred, or not counted")
	}
	if wake(t, s, 2*second) == nil {
		t.Error("the audio did not wait")
	}
}

func TestFirstMessage(t *testing.T) {
	s := New(settings(), 0, 0)
	if err := s.Binary(0, make([]byte, message.FrameBytes)); !errors.Is(err, ErrProtocol) {
		t.Errorf("audio first: %v", err)
	}
	if err := s.Text(0, []byte(`{"type":"stop"}`)); !errors.Is(err, ErrProtocol) {
		t.Errorf("another type: %v", err)
	}
	if _, err := s.Wake(10*second-1, yes); err != nil {
		t.Errorf("too early: %v", err)
	}
	if _, err := s.Wake(10*second, yes); !errors.Is(err, ErrStartTimeout) || ErrStartTimeout.Code != 1002 {
		t.Errorf("nothing in time: %v", err)
	}
	s = started(t, settings(), 0)
	if err := s.Text(0, []byte(`{"type":"start"}`)); !errors.Is(err, ErrProtocol) {
		t.Errorf("a second start: %v", err)
	}
}

func TestDrainWaitsForTheAnswer(t *testing.T) {
	s := started(t, settings(), 0)
	send(t, s, 0, 1)
	request := wake(t, s, second)
	s.Drain(5 * second)
	send(t, s, second, 2)
	if _, err := s.Wake(2*second, yes); err != nil {
		t.Fatalf("left while a request was in flight: %v", err)
	}
	s.Answer(2*second, request, &message.Inference{}, nil)
	if _, err := s.Wake(2*second, yes); err != nil {
		t.Fatalf("left with a message unsent: %v", err)
	}
	expect(t, s, "partial", 1, 1)
	if _, err := s.Wake(2*second, yes); !errors.Is(err, ErrGoingAway) {
		t.Errorf("got %v", err)
	}
}

func TestDrainGivesUp(t *testing.T) {
	s := started(t, settings(), 0)
	send(t, s, 0, 1)
	wake(t, s, second)
	s.Drain(5 * second)
	if s.NextWake() != 5*second {
		t.Errorf("next wake at %v", s.NextWake())
	}
	if _, err := s.Wake(5*second, yes); !errors.Is(err, ErrGoingAway) || ErrGoingAway.Code != 1001 {
		t.Errorf("got %v", err)
	}
}

// frameVector is a case of frames.json.
type frameVector struct {
	ID, Opcode string
	Length     uint64
	Close      *int
}

func TestFrameVectors(t *testing.T) {
	for _, c := range frameVectors(t) {
		t.Run(c.ID, func(t *testing.T) {
			if c.Close != nil && *c.Close == ErrTooLarge.Code {
				t.Skip("refused from its header, in package wire")
			}
			s := started(t, settings(), 0)
			err := s.Binary(0, make([]byte, c.Length))
			if c.Opcode == "text" {
				err = s.Text(0, make([]byte, c.Length))
			}
			var reason *Close
			if errors.As(err, &reason) != (c.Close != nil) || reason != nil && reason.Code != *c.Close {
				t.Errorf("got %v", err)
			}
		})
	}
}
