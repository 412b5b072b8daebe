package gateway

import (
	"time"

	"gonethttpvoice/internal/message"
)

// forcedFinalAfter is how long after a final result without speech-final the gateway makes one up.
const forcedFinalAfter = 5 * time.Second

// Opened implements [stt.Events].
func (s *session) Opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = ready
	s.write(message.Ready(s.streamID))
	// The listener has things to do from now on.
	s.conn.Kick()
}

// Result implements [stt.Events].
func (s *session) Result(result *message.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.gateway.door.Clock()
	s.finalAt = 0
	if result.Final && !result.SpeechFinal {
		s.finalAt = now + forcedFinalAfter
		s.conn.Kick()
	}
	s.pass(now, result)
}

// pass writes a result. The lock is held.
func (s *session) pass(now time.Duration, result *message.Result) {
	if s.over {
		return
	}
	s.gateway.metrics.Result(result.Final)
	s.out.Result(now, message.STTResult(result))
	s.startDelivery()
}

// Trouble implements [stt.Events].
func (s *session) Trouble(failure *message.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(failure)
}

// Refused implements [stt.Events]: another config may come.
func (s *session) Refused(failure *message.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.listener = awaitingConfig, nil
	s.tell(failure)
}
