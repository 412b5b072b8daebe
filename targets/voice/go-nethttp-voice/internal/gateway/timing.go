package gateway

import (
	"time"

	"golang.org/x/sys/unix"

	"gonethttpvoice/internal/message"
)

const (
	// configPatience is how long a client may take for its config.
	configPatience = 10 * time.Second
	// lookEvery bounds how long a session sleeps.
	lookEvery = 5 * time.Second
)

// Wake implements [wire.Waker]: it does what is due, between two reads.
func (s *session) Wake(now time.Duration) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := now + lookEvery
	idleAt := s.conn.HeardAt() + s.gateway.config.Idle
	if now >= idleAt {
		return 0, errIdle
	}
	next = min(next, idleAt)
	if !s.configured {
		configAt := s.openedAt + configPatience
		if now >= configAt {
			return 0, errNoConfig
		}
		next = min(next, configAt)
	}
	if until := s.gateway.door.DrainUntil(); until != 0 {
		if now >= until || len(s.replies.all) == 0 && s.out.Empty() && !s.writing {
			return 0, errGoingAway
		}
		next = min(next, until)
	}
	if s.finalAt != 0 {
		if now >= s.finalAt {
			s.finalAt = 0
			s.pass(now, &message.Result{Final: true, SpeechFinal: true})
		} else {
			next = min(next, s.finalAt)
		}
	}
	if s.phase == ready {
		next = min(next, s.listener.Tick(now))
	}
	// A write that has just begun is not worth a look into the kernel.
	if since := s.conn.WritingSince(); since == 0 || now-since < stalledLook {
		s.stall, s.watched = stall{}, false
		if since != 0 {
			next = min(next, now+stalledLook)
		}
	} else {
		s.watched = true
		next = min(next, now+stalledLook)
		if s.stall.lasts(now, since, s.queuedInKernel()) {
			return 0, errTakesNothing
		}
	}
	return next, nil
}

// queuedInKernel is how many bytes the client's kernel has not acknowledged.
func (s *session) queuedInKernel() (queued int) {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { queued, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return queued
}

// floodMessages bad ones within floodTime end a session.
const (
	floodMessages = 100
	floodTime     = 10 * time.Second
)

// flood remembers when the last bad messages came. There is nothing to remember of most clients.
type flood struct {
	times []time.Duration
	next  int
}

// add says whether this one was one too many.
func (f *flood) add(now time.Duration) bool {
	if len(f.times) < floodMessages {
		f.times = append(f.times, now)
	} else {
		f.times[f.next] = now
		f.next = (f.next + 1) % floodMessages
	}
	return len(f.times) == floodMessages && now-f.times[f.next] <= floodTime
}
