// Package session is one session without I/O: frames, times and answers go in, requests and messages come out. It reads
// no clock, starts no goroutine and takes no lock; its caller does. Times are durations since an origin of the caller's
// choosing.
package session

import (
	"time"

	"gonethttp/internal/message"
)

// Close is why the gateway ends a session; it is an error of the functions that find the reason.
type Close struct {
	// Code is the WebSocket close code.
	Code int
	why  string
}

func (c *Close) Error() string { return c.why }

// CloseCode implements [wire.Closing].
func (c *Close) CloseCode() int { return c.Code }

// The reasons.
var (
	ErrGoingAway    = &Close{1001, "the gateway shuts down"}
	ErrProtocol     = &Close{1002, "a message that is not due"}
	ErrStartTimeout = &Close{1002, "no start message in time"}
	ErrFrameSize    = &Close{1003, "a binary message that is not one frame"}
	ErrTooLarge     = &Close{1009, "a declared length over the limit"}
	ErrOverflow     = &Close{1013, "the input buffer is full"}
)

// Settings is the configuration of all sessions.
type Settings struct {
	FlushInterval  time.Duration
	StartTimeout   time.Duration
	BufferFrames   int
	Overflow       OverflowPolicy
	OutboxMessages int
	Echo           message.Echo
}

// Request carries one batch to the inference server and back.
//
// A session has exactly one, made with it. It is in the session's hands or in the caller's, and a batch can only leave
// the session in it: that is what makes a second request in flight impossible rather than forbidden.
type Request struct {
	batch    *batch
	span     message.Span
	sentAt   time.Duration
	lateness time.Duration
}

// PCM is the audio to send; it is the session's again once the request has been answered.
func (r *Request) PCM() []byte { return r.batch.pcm }

type phase int

const (
	awaitingStart phase = iota
	streaming
	draining
)

// Session is one session.
type Session struct {
	settings *Settings
	jitter   time.Duration

	phase phase
	// until is when awaitingStart or draining ends.
	until    time.Duration
	schedule schedule
	buffer   buffer
	// idle is the session's one request while it is not in flight, else nil.
	idle   *Request
	outbox outbox
	tally  Tally
}

// New makes a session that waits for its start message. The jitter is its share of FLUSH_PHASE_JITTER_MS.
func New(settings *Settings, jitter, now time.Duration) *Session {
	return &Session{
		settings: settings,
		jitter:   jitter,
		until:    now + settings.StartTimeout,
		buffer:   buffer{policy: settings.Overflow, framesMax: settings.BufferFrames, nextSeq: 1},
		idle:     &Request{},
	}
}

// Started says whether the start message has come, so that no other text will be taken.
func (s *Session) Started() bool { return s.phase != awaitingStart }

// Text takes a text message. It fails when that is anything but a first start message.
func (s *Session) Text(now time.Duration, text []byte) error {
	switch {
	case s.phase == draining:
		return nil
	case s.phase == streaming || !message.IsStart(text):
		return ErrProtocol
	}
	s.phase = streaming
	s.schedule = newSchedule(now+s.jitter, s.settings.FlushInterval)
	return nil
}

// Binary takes a binary message. It fails when that is not due, not a frame, or one too many.
func (s *Session) Binary(now time.Duration, payload []byte) error {
	switch {
	case s.phase == draining:
		return nil
	case s.phase == awaitingStart:
		return ErrProtocol
	case len(payload) != message.FrameBytes:
		return ErrFrameSize
	}
	dropped, err := s.buffer.push(now, payload)
	if err != nil {
		return err
	}
	s.tally.Frames++
	if dropped {
		s.tally.FramesDropped++
	}
	return nil
}

// NextWake is when Wake is next due.
func (s *Session) NextWake() time.Duration {
	if s.phase == streaming {
		return s.schedule.next
	}
	return s.until
}

// Wake does what is due. It returns the request to send, if a batch is to go: takeJob has then taken one of the
// gateway's jobs. It fails when the session is over.
func (s *Session) Wake(now time.Duration, takeJob func() bool) (*Request, error) {
	switch s.phase {
	case awaitingStart:
		if now >= s.until {
			return nil, ErrStartTimeout
		}
	case draining:
		if now >= s.until || s.idle != nil && s.outbox.unsent() == 0 {
			return nil, ErrGoingAway
		}
	case streaming:
		if tick, count := s.schedule.due(now); count > 0 {
			return s.tick(now, now-tick, takeJob), nil
		}
	}
	return nil, nil
}

// tick names the dropped frames and then makes one request of the whole buffer, unless something is in the way.
func (s *Session) tick(now, lateness time.Duration, takeJob func() bool) *Request {
	if !s.buffer.waiting() {
		return nil
	}
	request := s.idle
	if request == nil {
		return s.deferTick(DeferredInflight)
	}
	if s.outboxFull() {
		return s.deferTick(DeferredOutbox)
	}
	// They are older than the buffer and newer than the last batch, so this is their place in the order.
	if span := s.buffer.takeDropped(); span.Frames() > 0 {
		failure := message.Failed(message.Overflow, "%d frames dropped: the buffer is full", span.Frames())
		s.report(failure, span, now, lateness, nil)
	}
	switch {
	case s.buffer.frames() == 0:
		return nil
	case s.outboxFull():
		// By the report just made.
		return s.deferTick(DeferredOutbox)
	case !takeJob():
		return s.deferTick(DeferredJobs)
	}
	s.idle = nil
	request.batch, request.span = s.buffer.take()
	request.sentAt, request.lateness = now, lateness
	s.tally.Flushed, s.tally.Lateness = request.span.Frames(), lateness
	return request
}

func (s *Session) deferTick(reason Deferral) *Request {
	s.tally.Deferred[reason]++
	return nil
}

func (s *Session) outboxFull() bool { return s.outbox.unsent() >= s.settings.OutboxMessages }

// Answer takes the request back, with the answer or, if failure is not nil, without one. Nobody may use its PCM any
// more.
func (s *Session) Answer(now time.Duration, request *Request, answer *message.Inference, failure *message.Failure) {
	if s.idle != nil || request == nil {
		panic("session: an answer without a request")
	}
	s.idle = request
	elapsed := now - request.sentAt
	s.tally.Answered, s.tally.Inference = true, elapsed
	if failure != nil {
		s.report(failure, request.span, now, request.lateness, &elapsed)
	} else {
		s.tally.Partials++
		s.outbox.push(message.Partial(request.span, answer, s.settings.Echo, request.lateness))
	}
	request.batch.recycle()
	request.batch = nil
}

// report names frames that will have no transcript. Like a partial it is written only while no request is in flight,
// so that it follows all that is older.
func (s *Session) report(f *message.Failure, span message.Span, now, lateness time.Duration, elapsed *time.Duration) {
	s.tally.Errors[f.Kind]++
	s.outbox.push(message.Error(f, &message.ErrorContext{
		Span:            span,
		Now:             now,
		Lateness:        lateness,
		Elapsed:         elapsed,
		InflightBatches: 0,
		BufferFrames:    uint64(s.buffer.frames()),
	}))
}

// NextMessage takes the next message to write, nil if there is none; it counts as unsent until MessageSent. At most one
// is out at a time.
func (s *Session) NextMessage() []byte { return s.outbox.begin() }

// MessageSent says that the kernel has taken the whole message.
func (s *Session) MessageSent() { s.outbox.end() }

// Unsent is how many messages the client has not taken.
func (s *Session) Unsent() int { return s.outbox.unsent() }

// Drain ends the flushes and the taking of frames: only what is in flight is still answered, until then at the latest.
func (s *Session) Drain(until time.Duration) {
	if s.phase != draining {
		s.phase, s.until = draining, until
	}
}

// TakeTally returns the counts since the last call.
func (s *Session) TakeTally() Tally {
	tally := s.tally
	s.tally = Tally{}
	return tally
}
