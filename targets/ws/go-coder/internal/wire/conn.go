// Package wire is the TCP socket under a WebSocket, as github.com/coder/websocket sees it: a net.Conn that adds what the
// contract asks for and the library leaves to its user.
package wire

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// linger is how long a closed socket is read empty.
const linger = time.Second

// ErrTooLarge ends the stream before a message that declares more than it may.
var ErrTooLarge = errors.New("message too large")

// Conn is a TCP connection that
//
//   - ends the stream with [ErrTooLarge] when a frame header declares too much, before the payload comes;
//   - after a close shuts the socket for writing only, and reads on for a while. Closing a socket that holds unread data
//     sends a reset, and a reset makes the peer's kernel forget the close frame that it had received.
//
// The library reads with one goroutine at a time.
type Conn struct {
	*net.TCPConn
	guard guard
	// early is what came with the upgrade request, in the same segment.
	early []byte
	// failed is what every further Read returns.
	failed atomic.Pointer[error]

	closed   atomic.Bool
	onClosed func()
}

// Err is what ended the reading: [ErrTooLarge], io.EOF or the socket's error when the client is gone, or nil.
func (c *Conn) Err() error {
	if failed := c.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Read returns bytes for the library to decode.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.Err(); err != nil {
		return 0, err
	}
	n, err := c.receive(p)
	passed := c.guard.pass(p[:n])
	if passed < n {
		err = ErrTooLarge
	}
	if err != nil {
		c.fail(err)
		if passed == 0 {
			return 0, err
		}
	}
	return passed, nil
}

// fail makes all further reads fail, unless they do already. Its own function, so that a read allocates no error.
func (c *Conn) fail(err error) { c.failed.CompareAndSwap(nil, &err) }

func (c *Conn) receive(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.TCPConn.Read(p)
}

// Refuse makes all further reads fail, so that the library's close handshake does not wait for them, and bounds how
// long its close frame may wait for a client that does not read.
func (c *Conn) Refuse() {
	c.fail(net.ErrClosed)
	_ = c.SetWriteDeadline(time.Now().Add(linger))
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
			_ = c.SetReadDeadline(time.Now().Add(linger))
			_, _ = io.Copy(io.Discard, c.TCPConn)
		}
	}()
	return nil
}
