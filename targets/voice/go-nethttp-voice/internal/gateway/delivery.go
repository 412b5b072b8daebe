package gateway

import (
	"context"
	"time"

	"github.com/coder/websocket"

	"gonethttpvoice/internal/chunk"
	"gonethttpvoice/internal/message"
)

// tell queues an error. The lock is held.
func (s *session) tell(failure *message.Failure) {
	if s.over {
		return
	}
	s.gateway.metrics.Error(failure.Kind)
	s.write(message.Error(failure))
}

// write queues a message. The lock is held.
func (s *session) write(text []byte) {
	if s.over {
		return
	}
	s.out.Text(text, nil)
	s.startDelivery()
}

// startDelivery makes a goroutine write what waits. So a client that does not read holds up nobody: neither who reads its
// messages nor who reads its providers. The lock is held.
func (s *session) startDelivery() {
	if !s.writing {
		s.writing = true
		go s.deliver()
	}
	if !s.watched && s.out.Waiting() > behindBytes {
		s.watched = true
		s.conn.Kick()
	}
}

// deliver writes messages until none waits.
func (s *session) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		item, ok := s.out.Next(s.gateway.door.Clock())
		if !ok {
			break
		}
		if item.Last {
			s.ended(item.Of)
		}
		s.mu.Unlock()
		kind := websocket.MessageBinary
		if item.Text {
			kind = websocket.MessageText
		}
		err := s.socket.Write(context.Background(), kind, item.Payload)
		if !item.Text {
			if err == nil {
				s.gateway.metrics.AudioOut.Add(float64(len(item.Payload)))
			}
			chunk.Put(item.Payload)
		}
		s.mu.Lock()
		if err != nil {
			// The reading goroutine finds the same end, and ends the session.
			return
		}
	}
	s.writing = false
	if s.gateway.door.Draining() && !s.over {
		// It may have been what the drain waits for.
		s.conn.Kick()
	}
}

const (
	// stalledPatience is how long a client that took nothing may take to read its close frame after all.
	stalledPatience = 4 * time.Second
	// stalledLook is how often a socket is looked at that takes nothing.
	stalledLook = 500 * time.Millisecond
)

// stall follows a write that waits for the client.
type stall struct {
	// write is when it began, queued what the kernel held when last looked at, since when that has not fallen.
	write, since time.Duration
	queued       int
}

// lasts says whether the socket has taken nothing for too long. It looks at what the kernel holds, since a client that
// reads slowly takes much longer than that to make room for the next write.
func (st *stall) lasts(now, writingSince time.Duration, queued int) bool {
	switch {
	case writingSince == 0:
		*st = stall{}
		return false
	case writingSince != st.write:
		st.write, st.since = writingSince, writingSince
	case queued < st.queued:
		st.since = now
	}
	st.queued = queued
	return now-st.since >= takesNothing
}
