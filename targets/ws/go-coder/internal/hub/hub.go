// Package hub is what /fanout passes on: what one connection sends goes to all, in one order.
package hub

import (
	"sync"

	"github.com/coder/websocket"
)

// QueueBytesMax is what a queue may hold, in bytes, and still take a message.
const QueueBytesMax = 16 << 20

// messageOverheadBytes is what a message in a queue takes beside its payload, about: without it a queue of empty messages
// would have no end.
const messageOverheadBytes = 64

// Message is shared by all queues that it is in; nobody writes to its payload.
type Message struct {
	Kind    websocket.MessageType
	Payload []byte
}

// weight is what a message counts for in a queue.
func (m Message) weight() int { return len(m.Payload) + messageOverheadBytes }

// Hub is one per process.
type Hub struct {
	// mu is held while all queues get a message, so that all have messages in the same order.
	mu     sync.Mutex
	queues map[*Queue]struct{}
}

// New makes a hub without connections.
func New() *Hub {
	return &Hub{queues: make(map[*Queue]struct{})}
}

// Join makes a queue for one more connection.
func (h *Hub) Join() *Queue {
	q := &Queue{}
	q.changed.L = &q.mu
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queues[q] = struct{}{}
	return q
}

// Leave takes a queue out and ends it.
func (h *Hub) Leave(q *Queue) {
	h.mu.Lock()
	delete(h.queues, q)
	h.mu.Unlock()
	q.end()
}

// Publish puts a message into all queues and returns how many had no room.
func (h *Hub) Publish(message Message) (dropped int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.queues {
		if !q.offer(message) {
			dropped++
		}
	}
	return dropped
}

// Queue is what a connection has still to send.
type Queue struct {
	mu       sync.Mutex
	changed  sync.Cond
	messages []Message
	// bytes counts what was taken out and not yet sent, too.
	bytes int
	ended bool
}

func (q *Queue) offer(message Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes > QueueBytesMax {
		return false
	}
	q.messages = append(q.messages, message)
	q.bytes += message.weight()
	q.changed.Signal()
	return true
}

func (q *Queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Signal()
}

// Take waits for messages and takes all there are, into a slice whose memory may be that of spare. It returns none when
// the queue has ended.
func (q *Queue) Take(spare []Message) []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.messages) == 0 && !q.ended {
		q.changed.Wait()
	}
	if q.ended {
		return nil
	}
	messages := q.messages
	clear(spare)
	q.messages = spare[:0]
	return messages
}

// Sent says that a message which was taken out has been sent.
func (q *Queue) Sent(message Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= message.weight()
}
