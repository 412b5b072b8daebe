// Package session is one session's schedule, buffer and ledger, without I/O: frames and times go in, batches come out. It
// reads no clock, starts no goroutine and takes no lock; its caller does.
package session

import (
	"errors"
	"time"

	"gonethttpplain/internal/message"
)

// OverflowPolicy is what happens to a frame that finds the buffer full.
type OverflowPolicy string

// The policies of OVERFLOW_POLICY.
const (
	// DropOldest makes room: the oldest buffered frame goes.
	DropOldest OverflowPolicy = "drop_oldest"
	// DropNewest keeps what is there: the new frame goes.
	DropNewest OverflowPolicy = "drop_newest"
	// Close ends the session.
	Close OverflowPolicy = "close"
)

// Deferral is why a tick with audio to flush did nothing; it is empty for a tick that was not deferred.
type Deferral string

// The reasons, as the metrics name them.
const (
	Inflight Deferral = "inflight"
	Jobs     Deferral = "jobs"
	Outbox   Deferral = "outbox"
)

// Deferrals is all of them.
var Deferrals = []Deferral{Inflight, Jobs, Outbox}

// ErrOverflow says that the buffer is full and the policy is to close.
var ErrOverflow = errors.New("the input buffer is full")

// Settings is the configuration of all sessions.
type Settings struct {
	FlushInterval time.Duration
	BufferFrames  int
	Overflow      OverflowPolicy
}

// Batch is the audio of consecutive frames, on its way to the inference server.
type Batch struct {
	message.Span
	PCM []byte
}

// Tick is what a tick asks its caller to do.
type Tick struct {
	Lateness time.Duration
	Deferred Deferral
	// Dropped is a range of frames to be named now, before the batch.
	Dropped message.Span
	// Batch is in flight from now until Answered; nil if nothing is to be sent.
	Batch *Batch
}

// Session is one session from its start message on.
type Session struct {
	settings *Settings
	nextTick time.Time
	lastSeq  uint64
	// pcm and at are the frames that wait, and when each came.
	pcm []byte
	at  []time.Time
	// before and behind are frames that were dropped and not named yet: those older than the waiting ones, and those
	// newer (DropNewest). Each is one range, because nothing is kept between two drops on the same side.
	before, behind message.Span
	inflight       bool
}

// New makes a session whose schedule counts from origin: its start, plus its jitter.
func New(settings *Settings, origin time.Time) *Session {
	return &Session{settings: settings, nextTick: origin.Add(settings.FlushInterval)}
}

// NextTick is when Tick is next due.
func (s *Session) NextTick() time.Time { return s.nextTick }

// Waiting is how many frames wait.
func (s *Session) Waiting() int { return len(s.at) }

// Inflight says whether a batch has not been answered.
func (s *Session) Inflight() bool { return s.inflight }

// Offer takes the next frame, and says whether a frame was dropped: this one, or the oldest. It fails when the policy is
// to close; then the frame is not accepted.
func (s *Session) Offer(frame []byte, now time.Time) (dropped bool, err error) {
	if len(s.at) >= s.settings.BufferFrames {
		switch s.settings.Overflow {
		case Close:
			return false, ErrOverflow
		case DropNewest:
			s.lastSeq++
			s.behind.Extend(s.lastSeq, now)
			return true, nil
		case DropOldest:
			s.before.Extend(s.oldestSeq(), s.at[0])
			s.pcm, s.at = s.pcm[message.FrameBytes:], s.at[1:]
			dropped = true
		}
	}
	s.lastSeq++
	s.pcm = append(s.pcm, frame...)
	s.at = append(s.at, now)
	return dropped, nil
}

// Tick does the tick that is due, and those that are overdue with it. The client can take room more messages. takeJob
// asks for one of the gateway's jobs; it is only called when a batch would go.
func (s *Session) Tick(now time.Time, room int, takeJob func() bool) Tick {
	// Each tick is computed from the one before and never from the clock, so a late one moves no other.
	interval := s.settings.FlushInterval
	tick := Tick{Lateness: now.Sub(s.nextTick)}
	s.nextTick = s.nextTick.Add((tick.Lateness/interval + 1) * interval)

	dropped := s.before.Frames() > 0
	switch {
	case s.Waiting() == 0 && !dropped:
		return tick
	case s.inflight:
		tick.Deferred = Inflight
		return tick
	case room <= 0:
		tick.Deferred = Outbox
		return tick
	}
	if dropped {
		tick.Dropped, s.before = s.before, message.Span{}
		room--
	}
	switch {
	case s.Waiting() == 0:
	case room == 0:
		tick.Deferred = Outbox
	case !takeJob():
		tick.Deferred = Jobs
	default:
		tick.Batch = s.take()
	}
	return tick
}

// Answered says that the batch in flight has come back.
func (s *Session) Answered() { s.inflight = false }

// take makes one batch of all that waits.
func (s *Session) take() *Batch {
	batch := &Batch{PCM: s.pcm, Span: message.Span{
		OldestSeq: s.oldestSeq(),
		NewestSeq: s.oldestSeq() + uint64(len(s.at)) - 1,
		OldestAt:  s.at[0],
		NewestAt:  s.at[len(s.at)-1],
	}}
	// The next batch will be about as long, give or take a frame.
	s.pcm = make([]byte, 0, len(batch.PCM)+message.FrameBytes)
	s.at = s.at[:0]
	s.before, s.behind = s.behind, message.Span{}
	s.inflight = true
	return batch
}

// oldestSeq is the number of the oldest frame that waits.
func (s *Session) oldestSeq() uint64 {
	return s.lastSeq - s.behind.Frames() - uint64(len(s.at)) + 1
}
