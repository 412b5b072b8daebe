package gateway

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gonethttp/common/wire"
	"gonethttp/internal/message"
	"gonethttp/internal/session"
)

// connection is the rim around a session: it moves bytes, answers and time between it and the world.
//
// One goroutine, serve, reads the socket, keeps the time (see [wire.Conn]) and ends the session. A second one, infer,
// exists only while a request is in flight: a [session.Request] goes in and its answer, or its failure, comes out.
type connection struct {
	gateway *Gateway
	socket  *websocket.Conn
	conn    *wire.Conn
	// ctx ends with the session, and the request in flight with it.
	ctx    context.Context
	cancel context.CancelFunc

	// payload takes one binary message; one byte more than a frame has tells a longer one.
	payload [message.FrameBytes + 1]byte

	// mu guards what follows. It is held for moments only, never while something is read, sent or waited for.
	mu      sync.Mutex
	session *session.Session
	// writing says that a goroutine is in deliver.
	writing bool
	over    bool
}

func newConnection(g *Gateway, jitter time.Duration) *connection {
	c := &connection{gateway: g, session: session.New(&g.config.Session, jitter, g.door.Clock())}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// serve runs the session to its end.
func (c *connection) serve() {
	err := c.receive()

	c.mu.Lock()
	c.over = true
	tally := c.session.TakeTally()
	c.mu.Unlock()
	c.gateway.metrics.Fold(&tally)
	c.cancel()
	// The next client may have this one's place before its close is through.
	c.gateway.door.Leave("", c)
	wire.Finish(c.socket, c.conn, err, wire.Linger)
}

// Kick implements [admission.Kicker].
func (c *connection) Kick() { c.conn.Kick() }

// receive hands the session what the client sends, until it ends.
func (c *connection) receive() error {
	for {
		// The context is never done: the library would otherwise arm and disarm a timer for each header and payload.
		kind, reader, err := c.socket.Reader(context.Background())
		if err != nil {
			return err
		}
		if kind == websocket.MessageText {
			err = c.text(reader)
		} else {
			err = c.binary(reader)
		}
		if err != nil {
			return err
		}
	}
}

func (c *connection) text(reader io.Reader) error {
	c.mu.Lock()
	started := c.session.Started()
	c.mu.Unlock()
	var text []byte
	if !started {
		// At most messageBytesMax. A later text is refused without being read.
		var err error
		if text, err = io.ReadAll(reader); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.session.Text(c.conn.ReadAt(), text); err != nil {
		return err
	}
	// The schedule begins: look at it before the next read.
	c.conn.Kick()
	return nil
}

func (c *connection) binary(reader io.Reader) error {
	size := 0
	for size < len(c.payload) {
		n, err := reader.Read(c.payload[size:])
		size += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Binary(c.conn.ReadAt(), c.payload[:size])
}

// Wake implements [wire.Waker]: it does what is due, between two reads.
func (c *connection) Wake(now time.Duration) (time.Duration, error) {
	c.mu.Lock()
	if until := c.gateway.door.DrainUntil(); until != 0 {
		c.session.Drain(until)
	}
	request, err := c.session.Wake(now, c.gateway.takeJob)
	next := c.session.NextWake()
	deliver := c.session.Unsent() > 0 && !c.writing
	tally := c.session.TakeTally()
	c.mu.Unlock()
	c.gateway.metrics.Fold(&tally)
	if deliver {
		// Reports of dropped frames; writing them may take as long as the client likes.
		go c.deliver()
	}
	if request != nil {
		go c.infer(request)
	}
	return next, err
}

// infer brings a request to the inference server and its answer to the client.
func (c *connection) infer(request *session.Request) {
	answer, failure := c.gateway.inference.Infer(c.ctx, request.PCM())
	c.gateway.jobs.Add(-1)

	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.session.Answer(c.gateway.door.Clock(), request, answer, failure)
	tally := c.session.TakeTally()
	c.mu.Unlock()
	c.gateway.metrics.Fold(&tally)
	c.deliver()
}

// deliver writes messages until none is left. Whoever makes a message calls it; if one goroutine is at it already, that
// one takes the new message as well. So nobody ever waits for a client that does not read but the goroutine of the
// message that it does not read.
func (c *connection) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		return
	}
	c.writing = true
	for {
		text := c.session.NextMessage()
		if text == nil {
			break
		}
		c.mu.Unlock()
		err := c.socket.Write(context.Background(), websocket.MessageText, text)
		c.mu.Lock()
		if err != nil {
			// The reading goroutine finds the same end, and ends the session.
			return
		}
		c.session.MessageSent()
	}
	c.writing = false
	if c.gateway.door.Draining() && !c.over {
		// It may have been the last that was owed.
		c.conn.Kick()
	}
}
