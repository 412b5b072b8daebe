package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"unicode/utf8"

	"github.com/coder/websocket"

	"gocoder/internal/hub"
	"gocoder/internal/wire"
)

var errNotUTF8 = errors.New("text that is not UTF-8")

// buffers hold a message from its beginning until it has been dealt with, so that a connection at rest holds none.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// connection is one WebSocket.
type connection struct {
	server *Server
	socket *websocket.Conn
	conn   *wire.Conn
	// queue is what comes from the hub; nil for an echo.
	queue *hub.Queue
}

// serve runs a WebSocket to its end.
func (c *connection) serve() {
	var err error
	if c.queue != nil {
		err = c.fanout()
	} else {
		err = c.echo()
	}
	c.leaveHub()
	c.server.leave(c)
	c.close(err)
}

func (c *connection) leaveHub() {
	if c.queue != nil {
		c.server.hub.Leave(c.queue)
	}
}

// echo sends back what comes. Writing waits for a client that does not read, and so does reading on.
func (c *connection) echo() error {
	return c.receive(func(kind websocket.MessageType, payload []byte) error {
		c.server.metrics.MessagesSent.Add(1)
		return c.socket.Write(context.Background(), kind, payload)
	})
}

// receive hands take what comes, message by message; the payload is take's until it returns.
func (c *connection) receive(take func(websocket.MessageType, []byte) error) error {
	for {
		// The context is never done: the library would otherwise arm and disarm a timer for each header and payload.
		kind, reader, err := c.socket.Reader(context.Background())
		if err != nil {
			return err
		}
		if err := c.receiveOne(kind, reader, take); err != nil {
			return err
		}
	}
}

func (c *connection) receiveOne(
	kind websocket.MessageType, reader io.Reader, take func(websocket.MessageType, []byte) error,
) error {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(reader); err != nil {
		return err
	}
	payload := buffer.Bytes()
	if err := c.count(kind, payload); err != nil {
		return err
	}
	return take(kind, payload)
}

// count takes note of a whole message, unless it is none.
func (c *connection) count(kind websocket.MessageType, payload []byte) error {
	if kind == websocket.MessageText && !utf8.Valid(payload) {
		return errNotUTF8
	}
	c.server.metrics.MessagesReceived.Add(1)
	c.server.metrics.BytesReceived.Add(uint64(len(payload)))
	return nil
}

// fanout sends what comes to the hub; another goroutine sends the client what comes from there.
func (c *connection) fanout() error {
	go c.passOn()
	return c.receive(func(kind websocket.MessageType, payload []byte) error {
		// In memory of its own, which the queues share.
		dropped := c.server.hub.Publish(hub.Message{Kind: kind, Payload: bytes.Clone(payload)})
		c.server.metrics.MessagesDropped.Add(uint64(dropped))
		return nil
	})
}

func (c *connection) passOn() {
	for batch := c.queue.Take(nil); batch != nil; batch = c.queue.Take(batch) {
		for _, message := range batch {
			c.server.metrics.MessagesSent.Add(1)
			if err := c.socket.Write(context.Background(), message.Kind, message.Payload); err != nil {
				// The reading goroutine finds the same end.
				return
			}
			c.queue.Sent(message)
		}
	}
}

// close ends the socket as the reason wants it.
func (c *connection) close(err error) {
	code := websocket.StatusProtocolError
	switch ended := c.conn.Err(); {
	case errors.Is(ended, wire.ErrTooLarge):
		code = websocket.StatusMessageTooBig
	case ended != nil, errors.Is(err, net.ErrClosed), websocket.CloseStatus(err) != -1:
		// The client is gone, or has closed and been answered, or this end closes already.
		_ = c.socket.CloseNow()
		return
	case errors.Is(err, errNotUTF8):
		code = websocket.StatusInvalidFramePayloadData
	}
	// What remains was found by the library, which names a violation only in words, and has said 1002 already or says
	// nothing (an unmasked frame): then this does.
	c.conn.Refuse()
	_ = c.socket.Close(code, "")
}
