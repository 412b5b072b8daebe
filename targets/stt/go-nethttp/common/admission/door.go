// Package admission decides who is let in while a request is still HTTP, and sees everybody out in a drain. The gateways
// of both workloads use it.
package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Cause is why somebody is not let in; empty for those who are.
type Cause string

// The causes.
const (
	Admitted   Cause = ""
	Capacity   Cause = "capacity"
	Draining   Cause = "draining"
	PerAddress Cause = "per_address"
	Rate       Cause = "rate"
	Auth       Cause = "auth"
)

// Limits of a gateway; 0 is no limit.
type Limits struct {
	Sessions, SessionsPerAddress int64
	// AsksPerSecond is how many sessions an address may ask for within a second of the first that it asks for.
	AsksPerSecond int64
}

// A Kicker is a session that looks again whether there is something to do.
type Kicker interface{ Kick() }

// Door counts who is inside. Nothing in it is written to for a mere message.
type Door struct {
	limits Limits
	epoch  time.Time

	mu sync.Mutex
	// open counts admitted sessions, inside are those that have been upgraded.
	open      int64
	inside    map[Kicker]struct{}
	addresses map[string]*visitor
	// sweepAt is how many addresses there may be before those without a reason to be kept are removed.
	sweepAt int
	// drainUntil is 0 until draining begins.
	drainUntil atomic.Int64
	// sockets are open a little longer than their sessions: a close handshake follows.
	sockets sync.WaitGroup
}

// visitor is an address.
type visitor struct {
	sessions int64
	// asked counts what it asked for since.
	asked int64
	since time.Duration
}

const addressesKept = 1024

// New makes a door that nobody has passed. Its clock begins now.
func New(limits Limits) *Door {
	return &Door{
		limits:    limits,
		epoch:     time.Now(),
		inside:    make(map[Kicker]struct{}),
		addresses: make(map[string]*visitor),
		sweepAt:   addressesKept,
	}
}

// Epoch is the origin of all times.
func (d *Door) Epoch() time.Time { return d.epoch }

// Clock is the time since the epoch.
func (d *Door) Clock() time.Duration { return time.Since(d.epoch) }

// Enter takes a place for a session and its socket, or says why there is none.
func (d *Door) Enter(address string) Cause { return d.enterAt(address, d.Clock()) }

func (d *Door) enterAt(address string, now time.Duration) Cause {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Draining() {
		return Draining
	}
	var from *visitor
	if d.limits.AsksPerSecond > 0 || d.limits.SessionsPerAddress > 0 {
		from = d.visitor(address, now)
		if from.asked++; d.limits.AsksPerSecond > 0 && from.asked > d.limits.AsksPerSecond {
			return Rate
		}
	}
	if d.limits.Sessions > 0 && d.open >= d.limits.Sessions {
		return Capacity
	}
	if from != nil {
		if d.limits.SessionsPerAddress > 0 && from.sessions >= d.limits.SessionsPerAddress {
			return PerAddress
		}
		from.sessions++
	}
	d.open++
	d.sockets.Add(1)
	return Admitted
}

// visitor finds an address, with a second of its own that has not passed.
func (d *Door) visitor(address string, now time.Duration) *visitor {
	if len(d.addresses) >= d.sweepAt {
		for other, v := range d.addresses {
			if v.sessions == 0 && now-v.since >= time.Second {
				delete(d.addresses, other)
			}
		}
		d.sweepAt = max(2*len(d.addresses), addressesKept)
	}
	from := d.addresses[address]
	if from == nil {
		from = &visitor{since: now}
		d.addresses[address] = from
	}
	if now-from.since >= time.Second {
		from.since, from.asked = now, 0
	}
	return from
}

// Upgraded says that an admitted session is open.
func (d *Door) Upgraded(session Kicker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside[session] = struct{}{}
}

// Leave gives a session's place back; its socket gives back its own with SocketClosed. The session may be one that was
// never upgraded.
func (d *Door) Leave(address string, session Kicker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	delete(d.inside, session)
	if from := d.addresses[address]; from != nil && from.sessions > 0 {
		from.sessions--
	}
}

// Hold makes a drain wait for something that is no session, until SocketClosed. It fails while draining.
func (d *Door) Hold() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Draining() {
		return false
	}
	d.sockets.Add(1)
	return true
}

// SocketClosed gives back what Enter or Hold took for a socket.
func (d *Door) SocketClosed() { d.sockets.Done() }

// Open is how many sessions there are.
func (d *Door) Open() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// Draining says whether a drain has begun.
func (d *Door) Draining() bool { return d.drainUntil.Load() != 0 }

// DrainUntil is when sessions give up what they wait for; 0 until a drain begins.
func (d *Door) DrainUntil() time.Duration { return time.Duration(d.drainUntil.Load()) }

// Drain refuses new sessions, lets the open ones end what they are at, and returns when the last socket is closed or ctx
// ends. Sessions give up at until, so that they can still say so.
func (d *Door) Drain(ctx context.Context, until time.Time) {
	d.mu.Lock()
	d.drainUntil.Store(max(int64(until.Sub(d.epoch)), 1))
	for session := range d.inside {
		session.Kick()
	}
	d.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		d.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// Wait returns when no socket is open.
func (d *Door) Wait() { d.sockets.Wait() }
