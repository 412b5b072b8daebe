package gateway

import (
	"context"
	"errors"
	"io"
	"time"

	"gonethttpvoice/internal/chunk"
	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
	"gonethttpvoice/internal/outbox"
)

// waitingTextBytesMax is how much text may wait to be spoken: ten of the longest.
const waitingTextBytesMax = 10 * message.SpeakBytesMax

// spoken is a `speak` until it ends: complete, failed or dropped.
type spoken struct {
	outbox.Reply
	number        int
	text          string
	interruptible bool
	asked         bool
	dropped       bool
	ctx           context.Context
	cancel        context.CancelFunc
	provider      time.Duration
	failure       *message.Failure
}

// replies are those of a session that have not ended, in order.
type replies struct {
	all   []*spoken
	count int
	// playing says that a goroutine is in play.
	playing bool
}

// queue takes a `speak`. The lock is held.
func (s *session) queue(speak *message.Speak) *message.Failure {
	if speak.Flush {
		s.dropReplies()
	}
	waiting := len(speak.Text)
	for _, r := range s.replies.all {
		waiting += len(r.text)
	}
	if waiting > waitingTextBytesMax {
		return message.FailedForNow(message.TooLarge, "more than %d bytes of text wait", waitingTextBytesMax)
	}
	s.replies.count++
	r := &spoken{number: s.replies.count, text: speak.Text, interruptible: speak.AllowInterruption}
	r.ctx, r.cancel = context.WithCancel(s.ctx)
	s.replies.all = append(s.replies.all, r)
	if !s.replies.playing {
		s.replies.playing = true
		go s.play()
	}
	return nil
}

// dropReplies drops what plays and what waits, but for what must not be interrupted. The lock is held.
func (s *session) dropReplies() {
	kept := s.replies.all[:0]
	for _, r := range s.replies.all {
		if !r.interruptible {
			kept = append(kept, r)
			continue
		}
		r.dropped = true
		r.cancel()
		s.out.Remove(&r.Reply)
		s.gateway.metrics.Speaks[metrics.Dropped].Inc()
	}
	clear(s.replies.all[len(kept):])
	s.replies.all = kept
}

// play asks for one reply after the other until none waits.
func (s *session) play() {
	buffer := chunk.Get()[:chunk.Bytes]
	defer chunk.Put(buffer)
	for {
		r := s.nextReply()
		if r == nil {
			return
		}
		s.finish(r, s.fetch(r, buffer))
		r.cancel()
	}
}

// nextReply is the oldest that was not asked for yet; nil when there is none, and then playing ends.
func (s *session) nextReply() *spoken {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replies.all {
		if !r.asked {
			r.asked = true
			return r
		}
	}
	s.replies.playing = false
	return nil
}

// fetch brings a reply from the provider to the outbox.
func (s *session) fetch(r *spoken, buffer []byte) error {
	stream, n, err := s.gateway.tts.Open(r.ctx, s.base, &s.tts, r.text, buffer)
	if err != nil {
		return err
	}
	defer stream.Close()
	r.provider = stream.ProviderTime()
	for {
		if !s.audio(r, buffer[:n]) {
			return nil
		}
		if n, err = stream.Read(buffer); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// audio queues a piece of a reply; false if the reply was dropped.
func (s *session) audio(r *spoken, piece []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.dropped || s.over {
		return false
	}
	s.out.Audio(&r.Reply, piece)
	s.startDelivery()
	return true
}

// finish queues the message that ends a reply.
func (s *session) finish(r *spoken, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.dropped || s.over {
		return
	}
	if err == nil {
		s.out.Text(message.PlaybackComplete(time.Now(), r.number, r.provider, r.Dropped), &r.Reply)
	} else {
		// The only other error is that of a reply which was dropped.
		errors.As(err, &r.failure)
		s.gateway.metrics.Error(r.failure.Kind)
		s.out.Text(message.Error(r.failure), &r.Reply)
	}
	s.startDelivery()
}

// ended takes a reply, whose last message is on its way, off the list. The lock is held.
func (s *session) ended(of *outbox.Reply) {
	for i, r := range s.replies.all {
		if &r.Reply == of {
			outcome := metrics.Complete
			if r.failure != nil {
				outcome = metrics.Failed
			}
			s.gateway.metrics.Speaks[outcome].Inc()
			s.replies.all = append(s.replies.all[:i], s.replies.all[i+1:]...)
			return
		}
	}
}
