package gateway

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gonethttpplain/internal/message"
	"gonethttpplain/internal/session"
)

const goingAway = "the gateway shuts down"

// violation is an error that ends a session with a code of ours.
type violation struct {
	code   websocket.StatusCode
	reason string
}

func (v violation) Error() string { return v.reason }

var (
	errNoStart   = violation{websocket.StatusProtocolError, "the first message is not a start"}
	errText      = violation{websocket.StatusProtocolError, "a text message after the start"}
	errFrameSize = violation{websocket.StatusUnsupportedData, "a binary message that is not one frame"}
	errOverflow  = violation{websocket.StatusTryAgainLater, "the input buffer is full"}
)

// connection is one client. One goroutine reads from it, another writes to it, and a timer runs the ticks of its
// schedule. A tick that sends a batch stays with it until the answer is in the outbox.
type connection struct {
	gateway *Gateway
	conn    *websocket.Conn
	// outbox holds what is to be written. It never blocks, because a tick asks for its room first.
	outbox chan []byte

	// mu guards what follows, and is never held while anything is read, written or waited for.
	mu sync.Mutex
	// session and timer are nil until the start message.
	session *session.Session
	timer   *time.Timer
	// unsent counts the messages in the outbox and the one that is being written.
	unsent   int
	draining bool
	finished bool
}

func newConnection(g *Gateway, conn *websocket.Conn) *connection {
	return &connection{gateway: g, conn: conn, outbox: make(chan []byte, g.config.OutboxMessages)}
}

// serve runs the session to its end.
func (c *connection) serve() {
	// The request in flight is given up with the session.
	ctx, giveUp := context.WithCancel(context.Background())
	go c.write()
	err := c.read(ctx)

	c.finish()
	giveUp()
	// The next client may have this one's place before its close is through.
	c.gateway.sessions.give()
	var reason violation
	if errors.As(err, &reason) {
		_ = c.conn.Close(reason.code, reason.reason)
	} else {
		// The client has closed, or has gone, or the library has refused what it sent.
		_ = c.conn.CloseNow()
	}
}

// read takes what the client sends, until the session ends. It has no deadline: closing the connection ends it.
func (c *connection) read(ctx context.Context) error {
	if err := c.awaitStart(ctx); err != nil {
		return err
	}
	// One byte more than a frame has tells a longer message.
	var frame [message.FrameBytes + 1]byte
	for {
		kind, reader, err := c.conn.Reader(context.Background())
		if err != nil {
			return err
		}
		if kind != websocket.MessageBinary {
			return errText
		}
		n, err := io.ReadFull(reader, frame[:])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if n != message.FrameBytes {
			return errFrameSize
		}
		if err := c.offer(frame[:n]); err != nil {
			return err
		}
	}
}

// awaitStart reads the start message and begins the schedule.
func (c *connection) awaitStart(ctx context.Context) error {
	timer := time.AfterFunc(c.gateway.config.StartTimeout, func() {
		_ = c.conn.Close(websocket.StatusProtocolError, "no start message in time")
	})
	defer timer.Stop()
	kind, text, err := c.conn.Read(context.Background())
	if err != nil {
		return err
	}
	if kind != websocket.MessageText || !message.IsStart(text) {
		return errNoStart
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	jitter := time.Duration(rand.Float64() * float64(c.gateway.config.FlushPhaseJitter))
	c.session = session.New(&c.gateway.config.Session, time.Now().Add(jitter))
	if !c.finished {
		c.timer = time.AfterFunc(time.Until(c.session.NextTick()), func() { c.tick(ctx) })
	}
	return nil
}

// offer gives the session a frame. While draining, no frame is accepted any more.
func (c *connection) offer(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return nil
	}
	dropped, err := c.session.Offer(frame, time.Now())
	if err != nil {
		return errOverflow
	}
	c.gateway.metrics.frames.Inc()
	if dropped {
		c.gateway.metrics.framesDropped.Inc()
	}
	return nil
}

// tick is a tick of the schedule, on the timer's goroutine.
func (c *connection) tick(ctx context.Context) {
	c.mu.Lock()
	if c.finished || c.draining {
		c.mu.Unlock()
		return
	}
	metrics := c.gateway.metrics
	room := c.gateway.config.OutboxMessages - c.unsent
	tick := c.session.Tick(time.Now(), room, c.gateway.jobs.take)
	c.timer.Reset(time.Until(c.session.NextTick()))
	if tick.Dropped.Frames() > 0 {
		c.fail(&message.Failure{Kind: message.Overflow, Message: errOverflow.reason}, tick.Dropped, tick.Lateness)
	}
	c.mu.Unlock()

	if tick.Deferred != "" {
		metrics.ticksDeferred.WithLabelValues(string(tick.Deferred)).Inc()
	}
	if tick.Batch != nil {
		metrics.bufferFrames.Observe(float64(tick.Batch.Frames()))
		metrics.flushLateness.Observe(tick.Lateness.Seconds())
		c.infer(ctx, tick.Batch, tick.Lateness)
	}
}

// infer brings a batch to the inference server and its answer to the client.
func (c *connection) infer(ctx context.Context, batch *session.Batch, lateness time.Duration) {
	since := time.Now()
	answer, failure := c.gateway.inference.Infer(ctx, batch.PCM)
	elapsed := time.Since(since)
	c.gateway.jobs.give()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.Answered()
	if c.finished {
		return
	}
	c.gateway.metrics.inference.Observe(elapsed.Seconds())
	if failure != nil {
		failure.Elapsed = elapsed
		c.fail(failure, batch.Span, lateness)
	} else {
		c.gateway.metrics.partials.Inc()
		c.send(message.Partial(batch.Span, answer, c.gateway.config.CPUPasses, lateness))
	}
	if c.draining {
		c.finishLocked()
	}
}

// fail names frames that will have no transcript. The caller holds mu.
func (c *connection) fail(failure *message.Failure, span message.Span, lateness time.Duration) {
	c.gateway.metrics.errors.WithLabelValues(failure.Kind.Stage, failure.Kind.Name).Inc()
	c.send(message.Error(failure, span, message.Surroundings{
		Now:             time.Now(),
		Lateness:        lateness,
		InflightBatches: c.gateway.jobs.used.Load(),
		BufferFrames:    c.session.Waiting(),
	}))
}

// send puts a message into the outbox. The caller holds mu.
func (c *connection) send(text []byte) {
	c.unsent++
	c.outbox <- text
}

// write is the writing goroutine. In a drain it closes the connection, if nobody else has.
func (c *connection) write() {
	c.writeOutbox()
	c.gateway.writing.Done()
	if c.gateway.draining.Load() {
		_ = c.conn.Close(websocket.StatusGoingAway, goingAway)
	}
}

// writeOutbox writes until the outbox is closed and empty, or the connection is lost.
func (c *connection) writeOutbox() {
	for text := range c.outbox {
		if err := c.conn.Write(context.Background(), websocket.MessageText, text); err != nil {
			// The reading goroutine finds the same end.
			return
		}
		c.mu.Lock()
		c.unsent--
		c.mu.Unlock()
	}
}

// drain ends the session after the answer to what is in flight.
func (c *connection) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if c.session == nil || !c.session.Inflight() {
		c.finishLocked()
	}
}

// finish ends the ticks, and the writing after what is in the outbox.
func (c *connection) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishLocked()
}

func (c *connection) finishLocked() {
	if c.finished {
		return
	}
	c.finished = true
	if c.timer != nil {
		c.timer.Stop()
	}
	close(c.outbox)
}
