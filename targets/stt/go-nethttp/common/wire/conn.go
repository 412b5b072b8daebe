// Package wire is the TCP socket under a WebSocket, as github.com/coder/websocket sees it: a net.Conn that adds what the
// contract asks for and the library leaves to its user.
package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Linger is how long a closed socket is read empty.
const Linger = time.Second

// stalledAfter is how long a write may take before the client counts as not reading.
const stalledAfter = 100 * time.Millisecond

// A Waker has things to do at times. Wake is called from Read, between two reads, so that it needs no lock against what
// the reading goroutine does and finds all that has arrived already taken in.
type Waker interface {
	// Wake does what is due and returns when it is next due. Its error ends the connection: all later reads return it.
	Wake(now time.Duration) (next time.Duration, err error)
}

// Conn is a TCP connection that
//
//   - lets a [Waker] work between reads, by a read deadline: one goroutine per connection both reads and keeps time;
//   - ends the stream with [Options.TooLarge] before a frame header that declares too much. The library's own read
//     limit counts the bytes that it has read, so it would wait for, and read, what nobody wants;
//   - after a close shuts the socket for writing only, and reads on for a while. Closing a socket that holds unread data
//     sends a reset, and a reset makes the peer's kernel forget the close frame that it had received;
//   - if asked to, reads at a pace instead of whenever something has come.
//
// Read and the fields it uses belong to one goroutine.
type Conn struct {
	*net.TCPConn
	// raw is for reads that do not wait; set when reading at a pace.
	raw   syscall.RawConn
	pace  time.Duration
	epoch time.Time
	waker Waker
	guard guard
	// tooLarge is the error at a frame that the guard does not admit.
	tooLarge error
	// early is what came with the upgrade request, in the same segment.
	early []byte
	// err is what every further Read returns.
	err error
	// now is when the last read returned, wakeAt when the Waker is due, heardAt when the client last sent something.
	now, wakeAt, heardAt time.Duration
	// behind says that the last read did not take all there was.
	behind bool

	kicked    atomic.Bool
	closed    atomic.Bool
	writingAt atomic.Int64
	onClosed  func()
}

func newConn(socket *net.TCPConn, early []byte, options *Options) (*Conn, error) {
	c := &Conn{
		TCPConn:  socket,
		pace:     options.Pace,
		epoch:    options.Epoch,
		waker:    options.Waker,
		guard:    newGuard(options.TextBytesMax, options.BinaryBytesMax),
		tooLarge: options.TooLarge,
		early:    early,
		onClosed: options.OnClosed,
	}
	c.now = c.clock()
	c.heardAt = c.now
	if options.SendBufferBytes > 0 {
		if err := socket.SetWriteBuffer(options.SendBufferBytes); err != nil {
			return nil, err
		}
	}
	if c.pace > 0 {
		raw, err := socket.SyscallConn()
		if err != nil {
			return nil, err
		}
		c.raw = raw
	}
	return c, nil
}

func (c *Conn) clock() time.Duration { return time.Since(c.epoch) }

// ReadAt is when what is being read arrived, as far as the gateway can know.
func (c *Conn) ReadAt() time.Duration { return c.now }

// HeardAt is when the client last sent something, be it a ping. It is for the reading goroutine, so for a [Waker].
func (c *Conn) HeardAt() time.Duration { return c.heardAt }

// Err is what ended the reading: io.EOF or the socket's error when the client is gone, the error of a [Waker], or nil.
func (c *Conn) Err() error { return c.err }

// Kick makes the Waker be called soon. Any goroutine may call it.
func (c *Conn) Kick() {
	c.kicked.Store(true)
	// A read at a pace looks again by itself.
	if c.pace == 0 {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// Read returns bytes for the library to decode. It does not return because of a deadline.
func (c *Conn) Read(p []byte) (int, error) {
	for c.err == nil {
		if c.kicked.Swap(false) || c.now >= c.wakeAt {
			c.wake()
			continue
		}
		if c.behind {
			// Who is behind lets others go first: a goroutine that may read for as long as there is something to read,
			// a thousand of them, would leave no turn to the requests, and nothing would be answered at all.
			runtime.Gosched()
		}
		n, err := c.receive(p)
		c.now, c.behind = c.clock(), n == len(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		admitted := c.guard.admit(p[:n])
		switch {
		case admitted < n:
			c.err = c.tooLarge
		case err != nil:
			c.err = err
		}
		if admitted > 0 {
			c.heardAt = c.now
			return admitted, nil
		}
	}
	return 0, c.err
}

func (c *Conn) wake() {
	c.now = c.clock()
	c.wakeAt, c.err = c.waker.Wake(c.now)
	if c.pace > 0 || c.err != nil {
		return
	}
	// Undoes the deadline of a Kick, but not its flag, which is looked at once more before the next read.
	c.err = c.SetReadDeadline(c.epoch.Add(c.wakeAt))
}

func (c *Conn) receive(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	if c.pace > 0 {
		return c.receivePaced(p)
	}
	return c.TCPConn.Read(p)
}

// receivePaced sleeps until the pace or the Waker has its turn, then takes what has come meanwhile, if anything.
func (c *Conn) receivePaced(p []byte) (n int, err error) {
	time.Sleep(min(c.now+c.pace, c.wakeAt) - c.clock())
	failed := c.raw.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), p)
			if err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == syscall.EAGAIN:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write notes for Stalled how long it takes.
func (c *Conn) Write(p []byte) (int, error) {
	c.writingAt.Store(int64(c.clock()))
	n, err := c.TCPConn.Write(p)
	c.writingAt.Store(0)
	return n, err
}

// Stalled says whether a write has been waiting for the client for long.
func (c *Conn) Stalled() bool {
	since := c.WritingSince()
	return since != 0 && c.clock()-since > stalledAfter
}

// WritingSince is when the present write began; 0 when there is none.
func (c *Conn) WritingSince() time.Duration { return time.Duration(c.writingAt.Load()) }

// Refuse makes all further reads fail, so that the library's close handshake does not wait for them, and bounds how
// long its close frame may wait for a client that does not read. It is for the reading goroutine.
func (c *Conn) Refuse(patience time.Duration) {
	if c.err == nil {
		c.err = net.ErrClosed
	}
	_ = c.SetWriteDeadline(time.Now().Add(patience))
}

// Close shuts the socket for writing at once and does the rest behind the caller's back: it reads and drops what still
// comes until the client has closed, too, or its time is up.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	// Ends a write that is still waiting.
	_ = c.SetWriteDeadline(time.Unix(1, 0))
	err := c.CloseWrite()
	go func() {
		defer c.onClosed()
		defer c.TCPConn.Close()
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(Linger))
			_, _ = io.Copy(io.Discard, c.TCPConn)
		}
	}()
	return nil
}
