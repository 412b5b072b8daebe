package session

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gonethttp/internal/message"
)

// world is a session with a simulated clock, an inference server that answers when it likes, and a client that reads
// when it likes.
type world struct {
	t           *rapid.T
	session     *Session
	settings    *Settings
	now         time.Duration
	inflight    *Request
	sent, named uint64
	writing     *named
	jobs        bool
}

func (w *world) check(*rapid.T) {
	if unsent := w.session.Unsent(); unsent > w.settings.OutboxMessages {
		w.t.Fatalf("%d unsent messages", unsent)
	}
	if frames := w.session.buffer.frames(); frames > w.settings.BufferFrames {
		w.t.Fatalf("%d buffered frames", frames)
	}
}

// frame sends one frame that carries its own number.
func (w *world) frame(*rapid.T) {
	var payload [message.FrameBytes]byte
	w.sent++
	payload[0], payload[1] = byte(w.sent), byte(w.sent>>8)
	if err := w.session.Binary(w.now, payload[:]); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) burst(t *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(t, "frames") {
		w.frame(t)
	}
}

// pause lets time pass and wakes the session when it wanted to be woken, or later.
func (w *world) pause(t *rapid.T) {
	w.now += time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond
	for w.session.NextWake() <= w.now {
		before := w.session.NextWake()
		request, err := w.session.Wake(w.now, func() bool { return w.jobs })
		if err != nil {
			w.t.Fatal(err)
		}
		if next := w.session.NextWake(); (next-before)%w.settings.FlushInterval != 0 || next <= w.now {
			w.t.Fatalf("the schedule moved from %v to %v", before, next)
		}
		if request == nil {
			continue
		}
		if w.inflight != nil {
			w.t.Fatal("two requests in flight")
		}
		w.inflight = request
		pcm := request.PCM()
		if first := uint64(pcm[0]) | uint64(pcm[1])<<8; first != request.span.OldestSeq&0xFFFF ||
			uint64(len(pcm)) != request.span.Frames()*message.FrameBytes {
			w.t.Fatalf("a batch of %d bytes that begins with %d is called %+v", len(pcm), first, request.span)
		}
	}
}

func (w *world) answer(t *rapid.T) {
	if w.inflight == nil {
		t.Skip("nothing in flight")
	}
	if rapid.Bool().Draw(t, "ok") {
		w.session.Answer(w.now, w.inflight, &message.Inference{}, nil)
	} else {
		w.session.Answer(w.now, w.inflight, nil, message.Failed(message.Timeout, "late"))
	}
	w.inflight = nil
}

// read takes one message, in the two steps of a socket.
func (w *world) read(t *rapid.T) {
	if w.writing != nil {
		w.session.MessageSent()
		w.writing = nil
		return
	}
	text := w.session.NextMessage()
	if text == nil {
		t.Skip("no message")
	}
	w.writing = new(named)
	if err := json.Unmarshal(text, w.writing); err != nil {
		t.Fatal(err)
	}
	m := w.writing
	if m.Oldest != w.named+1 || m.Newest < m.Oldest || m.Frames != m.Newest-m.Oldest+1 || m.Newest > w.sent {
		t.Fatalf("%+v after frame %d was named and %d were sent", m, w.named, w.sent)
	}
	w.named = m.Newest
}

// TestLedger: whatever happens, every frame is named once and in order, and in the end all are.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Settings{
			FlushInterval:  time.Duration(rapid.IntRange(1, 1500).Draw(t, "interval")) * time.Millisecond,
			StartTimeout:   time.Second,
			BufferFrames:   rapid.IntRange(1, 70).Draw(t, "buffer"),
			Overflow:       rapid.SampledFrom([]OverflowPolicy{DropOldest, DropNewest}).Draw(t, "policy"),
			OutboxMessages: rapid.IntRange(1, 4).Draw(t, "outbox"),
		}
		w := &world{t: t, settings: s, jobs: true, session: New(s, 0, 0)}
		if err := w.session.Text(0, []byte(`{"type":"start"}`)); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       w.check,
			"frame":  w.frame,
			"burst":  w.burst,
			"pause":  w.pause,
			"answer": w.answer,
			"read":   w.read,
			"jobs":   func(t *rapid.T) { w.jobs = rapid.Bool().Draw(t, "free") },
		})
		w.settle(t)
	})
}

// settle lets everybody do what they should, until nothing is left.
func (w *world) settle(t *rapid.T) {
	w.jobs = true
	for range 10 {
		for w.writing != nil || w.session.Unsent() > 0 {
			w.read(t)
		}
		if w.inflight != nil {
			w.session.Answer(w.now, w.inflight, &message.Inference{}, nil)
			w.inflight = nil
		}
		w.now = w.session.NextWake()
		w.pause(t)
	}
	if w.named != w.sent {
		t.Fatalf("%d of %d frames were named", w.named, w.sent)
	}
}

func frameVectors(t *testing.T) []frameVector {
	t.Helper()
	text, err := os.ReadFile("../../../vectors/frames.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []frameVector `json:"cases"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	return file.Cases
}
