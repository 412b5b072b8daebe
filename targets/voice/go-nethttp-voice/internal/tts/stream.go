package tts

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
)

// Stream is a reply that is being spoken. Read and Close belong to one goroutine.
type Stream struct {
	client   *Client
	provider string
	// ctx is the request's, outer that of whoever wants it.
	ctx, outer context.Context
	cancel     context.CancelFunc
	body       io.ReadCloser
	// err is what the next Read returns.
	err   error
	ended bool

	asked        time.Time
	providerTime time.Duration
	// first is the time to the first byte.
	first time.Duration

	// One timer watches the whole stream, and is armed again when it finds that something has come: a timer per read
	// would cost more than the read's own share.
	watchdog *time.Timer
	// waitingSince is when the present read began, after asked; 0 while nobody reads, and then nobody is late.
	waitingSince atomic.Int64
	begun        atomic.Bool
	late         atomic.Bool
}

func newStream(outer context.Context, client *Client, provider string, first time.Duration) *Stream {
	s := &Stream{client: client, provider: provider, outer: outer, asked: time.Now(), first: first}
	s.ctx, s.cancel = context.WithCancel(outer)
	s.waitingSince.Store(1)
	s.watchdog = time.AfterFunc(first, s.watch)
	return s
}

func (s *Stream) since() int64 { return max(int64(time.Since(s.asked)), 1) }

// watch ends a request that is late, or looks again when it could be.
func (s *Stream) watch() {
	if s.ctx.Err() != nil {
		return
	}
	limit := s.first
	if s.begun.Load() {
		limit = s.client.Gap
	}
	left := limit
	if waiting := s.waitingSince.Load(); waiting != 0 {
		left -= time.Duration(s.since() - waiting)
	}
	if left > 0 {
		// A stream that has ended meanwhile is seen when it fires next.
		s.watchdog.Reset(left)
		return
	}
	s.late.Store(true)
	s.cancel()
}

// began notes the first bytes.
func (s *Stream) began(header http.Header) {
	s.waitingSince.Store(0)
	s.begun.Store(true)
	s.providerTime = providerTime(header, time.Since(s.asked))
	s.watchdog.Reset(s.client.Gap)
}

// ProviderTime is the provider's time from the request to the first byte.
func (s *Stream) ProviderTime() time.Duration { return s.providerTime }

// Read reads audio. It ends with io.EOF, a [message.Failure] or ErrCancelled.
func (s *Stream) Read(buffer []byte) (n int, err error) {
	if s.ended {
		return 0, io.ErrClosedPipe
	}
	err = s.err
	if err == nil {
		s.waitingSince.Store(s.since())
		n, err = s.body.Read(buffer)
		s.waitingSince.Store(0)
	}
	switch {
	case err == nil || n > 0:
		s.err = err
		return n, nil
	case err == io.EOF:
		s.end(metrics.Complete)
		return 0, io.EOF
	}
	return 0, s.fail(err)
}

// Close cancels what is left of the stream.
func (s *Stream) Close() {
	if !s.ended {
		s.end(metrics.Cancelled)
	}
}

// fail ends the stream and says why in the contract's words.
func (s *Stream) fail(cause error) error {
	late, begun := s.late.Load(), s.begun.Load()
	switch {
	case s.outer.Err() != nil:
		s.end(metrics.Cancelled)
		return ErrCancelled
	case late && begun:
		s.end(metrics.Failed)
		return message.FailedForNow(message.TTSTimeout, "nothing more within %d ms", s.client.Gap.Milliseconds())
	case late:
		s.end(metrics.Failed)
		return message.FailedForNow(message.TTSTimeout, "nothing within %d ms", s.client.First.Milliseconds())
	}
	s.end(metrics.Failed)
	if errors.Is(cause, errNoAudio) {
		return message.Failed(message.TTSFailed, "the provider sent no audio")
	}
	return message.FailedForNow(message.TTSFailed, "the provider's connection: %v", cause)
}

func (s *Stream) end(outcome metrics.Outcome) {
	s.ended = true
	s.watchdog.Stop()
	s.cancel()
	if s.body != nil {
		_ = s.body.Close()
	}
	s.client.Metrics.Request(s.provider, outcome)
}
