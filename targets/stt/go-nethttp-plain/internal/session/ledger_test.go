package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"gonethttpplain/internal/message"
)

// world is a session with a simulated clock, an inference server that answers when it likes, and a client that reads
// when it likes.
type world struct {
	session     *Session
	settings    *Settings
	now         time.Time
	sent, named uint64
	// inflight is the batch in flight, unsent are the messages that the client has not read.
	inflight *Batch
	unsent   []message.Span
	outbox   int
	jobs     bool
}

// frame sends one frame that carries its own number.
func (w *world) frame(t *rapid.T) {
	var frame [message.FrameBytes]byte
	w.sent++
	frame[0], frame[1] = byte(w.sent), byte(w.sent>>8)
	if _, err := w.session.Offer(frame[:], w.now); err != nil {
		t.Fatal(err)
	}
	if waiting := w.session.Waiting(); waiting > w.settings.BufferFrames {
		t.Fatalf("%d frames wait", waiting)
	}
}

func (w *world) burst(t *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(t, "frames") {
		w.frame(t)
	}
}

// pause lets time pass; the ticks come when they are due, or later.
func (w *world) pause(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
	if !w.session.NextTick().After(w.now) {
		w.tick(t)
	}
}

func (w *world) tick(t *rapid.T) {
	before := w.session.NextTick()
	tick := w.session.Tick(w.now, w.outbox-len(w.unsent), func() bool { return w.jobs })
	if next := w.session.NextTick(); next.Sub(before)%w.settings.FlushInterval != 0 || !next.After(w.now) {
		t.Fatalf("the schedule moved from %v to %v", before, next)
	}
	if tick.Dropped.Frames() > 0 {
		w.unsent = append(w.unsent, tick.Dropped)
	}
	if tick.Batch == nil {
		return
	}
	if w.inflight != nil {
		t.Fatal("two batches in flight")
	}
	w.inflight = tick.Batch
	pcm := tick.Batch.PCM
	if first := uint64(pcm[0]) | uint64(pcm[1])<<8; first != tick.Batch.OldestSeq&0xFFFF ||
		uint64(len(pcm)) != tick.Batch.Frames()*message.FrameBytes {
		t.Fatalf("a batch of %d bytes that begins with %d is called %+v", len(pcm), first, tick.Batch.Span)
	}
}

// answer names the batch in flight, by a partial or an error.
func (w *world) answer(t *rapid.T) {
	if w.inflight == nil {
		t.Skip("nothing in flight")
	}
	w.session.Answered()
	w.unsent = append(w.unsent, w.inflight.Span)
	w.inflight = nil
	if len(w.unsent) > w.outbox {
		t.Fatalf("%d unsent messages", len(w.unsent))
	}
}

func (w *world) read(t *rapid.T) {
	if len(w.unsent) == 0 {
		t.Skip("no message")
	}
	span := w.unsent[0]
	w.unsent = w.unsent[1:]
	if span.OldestSeq != w.named+1 || span.NewestSeq < span.OldestSeq || span.NewestSeq > w.sent {
		t.Fatalf("%+v after frame %d was named and %d were sent", span, w.named, w.sent)
	}
	w.named = span.NewestSeq
}

// TestLedger: whatever happens, every frame is named once and in order, and in the end all are.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Settings{
			FlushInterval: time.Duration(rapid.IntRange(1, 1500).Draw(t, "interval")) * time.Millisecond,
			BufferFrames:  rapid.IntRange(1, 70).Draw(t, "buffer"),
			Overflow:      rapid.SampledFrom([]OverflowPolicy{DropOldest, DropNewest}).Draw(t, "policy"),
		}
		w := &world{session: New(s, epoch), settings: s, now: epoch, jobs: true, outbox: rapid.IntRange(1, 4).Draw(t, "outbox")}
		t.Repeat(map[string]func(*rapid.T){
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
		if w.inflight != nil {
			w.answer(t)
		}
		for len(w.unsent) > 0 {
			w.read(t)
		}
		w.now = w.session.NextTick()
		w.tick(t)
	}
	if w.named != w.sent {
		t.Fatalf("%d of %d frames were named", w.named, w.sent)
	}
}
