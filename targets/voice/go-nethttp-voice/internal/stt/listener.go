package stt

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gonethttpvoice/internal/chunk"
	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
)

// Events are what a session is told. They come from goroutines of the listener, none of which holds its lock.
type Events interface {
	// Opened or Refused comes once, first. After Refused nothing comes: there is no connection, and there will be none.
	Opened()
	Refused(*message.Failure)
	Result(*message.Result)
	// Trouble is an error for the caller.
	Trouble(*message.Failure)
}

// Listener is a session's connection.
//
// One goroutine, run, connects and reads. Others exist for moments only: write while audio waits, tend at each ping.
type Listener struct {
	client   *Client
	endpoint string
	events   Events
	// ctx ends when a session ends that has no connection, and with it the wait for one.
	ctx    context.Context
	cancel context.CancelFunc

	// mu guards what follows. It is held for moments only, never while something is read, sent or waited for.
	mu sync.Mutex
	// socket is nil while there is no connection.
	socket  *websocket.Conn
	backlog backlog
	// writing says that a goroutine is in write.
	writing bool
	// closing says that the session has ended.
	closing bool
	pingAt  time.Duration
	// keptAliveAt is when audio or a KeepAlive was last sent.
	keptAliveAt time.Duration
	sent        sent
}

// Open begins to connect. The session hears of it by events.
func (c *Client) Open(endpoint string, events Events) *Listener {
	l := &Listener{client: c, endpoint: endpoint, events: events}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.run()
	return l
}

// Push takes a buffer of audio over.
func (l *Listener) Push(audio []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		chunk.Put(audio)
		return
	}
	l.backlog.push(audio)
	if l.socket == nil {
		l.backlog.trim(l.client.BacklogBytes)
		return
	}
	l.backlog.trim(l.client.BacklogBytes + openBacklogBytesMax)
	l.startWriting()
}

// startWriting makes a goroutine send what waits. The lock is held.
func (l *Listener) startWriting() {
	if !l.writing {
		l.writing = true
		go l.write(l.socket)
	}
}

// Close ends the connection once all audio is sent, and does not wait for that.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	l.cancel()
	if l.socket != nil {
		socket := l.socket
		time.AfterFunc(closePatience, func() { _ = socket.CloseNow() })
		l.startWriting()
	}
}

// Tick does what is due, and returns when it is next due.
func (l *Listener) Tick(now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socket == nil || l.closing {
		return now + tendEvery
	}
	ping, keepAlive := now >= l.pingAt, now >= l.keptAliveAt+tendEvery
	if ping {
		l.pingAt = now + tendEvery
	}
	if keepAlive {
		l.keptAliveAt = now
	}
	if ping || keepAlive {
		go l.tend(l.socket, ping, keepAlive)
	}
	return min(l.pingAt, l.keptAliveAt+tendEvery)
}

// tend sends a KeepAlive, or a ping and waits for its answer.
func (l *Listener) tend(socket *websocket.Conn, ping, keepAlive bool) {
	if keepAlive {
		_ = socket.Write(context.Background(), websocket.MessageText, []byte(`{"type":"KeepAlive"}`))
	}
	if ping {
		patience, cancel := context.WithTimeout(context.Background(), l.client.Pong)
		defer cancel()
		if socket.Ping(patience) != nil {
			_ = socket.CloseNow()
		}
	}
}

// run is the life of the connection.
func (l *Listener) run() {
	socket, err := l.client.dial(l.ctx, l.endpoint)
	if err != nil {
		l.events.Refused(message.FailedForNow(message.STTFailed, "speech to text: %v", err))
		return
	}
	for l.opened(socket) {
		l.listen(socket)
		if !l.lost() {
			l.client.Metrics.Request(metrics.STT, metrics.Complete)
			return
		}
		l.client.Metrics.Request(metrics.STT, metrics.Failed)
		l.events.Trouble(message.FailedForNow(message.STTLost, "the connection to speech to text was lost"))
		if socket = l.reconnect(); socket == nil {
			return
		}
	}
}

// opened begins to use a connection; false if nobody needs it any more.
func (l *Listener) opened(socket *websocket.Conn) bool {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		_ = socket.CloseNow()
		l.client.Metrics.Request(metrics.STT, metrics.Cancelled)
		return false
	}
	now := l.client.Clock()
	first := l.keptAliveAt == 0
	l.socket, l.sent = socket, sent{}
	l.pingAt, l.keptAliveAt = now+tendEvery, now
	// Now, so that the caller is told of all that was dropped at once.
	l.backlog.align()
	if l.backlog.bytes > 0 {
		l.startWriting()
	}
	l.mu.Unlock()
	if first {
		l.events.Opened()
	} else {
		l.tellDropped()
	}
	return true
}

// tellDropped tells the caller, once, how much audio was dropped.
func (l *Listener) tellDropped() {
	l.mu.Lock()
	dropped := l.backlog.takeDropped()
	l.mu.Unlock()
	if dropped > 0 {
		l.events.Trouble(message.Failed(message.AudioDropped, "%d ms of audio were dropped", dropped))
	}
}

// lost stops using the connection; false if the session had ended.
func (l *Listener) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.socket = nil
	l.backlog.cut = true
	l.backlog.trim(l.client.BacklogBytes)
	return !l.closing
}

// reconnect tries to connect again until it succeeds; nil when the session ended first. After the quick tries the caller
// is told, and no more after that.
func (l *Listener) reconnect() *websocket.Conn {
	for try := 0; ; try++ {
		if try == quickTries {
			l.tellDropped()
			l.events.Trouble(message.Failed(message.STTFailed, "no connection to speech to text after %d tries", quickTries))
		}
		select {
		case <-l.ctx.Done():
			return nil
		case <-time.After(pauseBefore(try)):
		}
		if socket, err := l.client.dial(l.ctx, l.endpoint); err == nil {
			return socket
		}
	}
}

// listen hands over results until the connection ends.
func (l *Listener) listen(socket *websocket.Conn) {
	defer func() { _ = socket.CloseNow() }()
	buffer := make([]byte, 0, 1024)
	for {
		// The context is never done: the library would otherwise arm a timer for each header and payload.
		kind, reader, err := socket.Reader(context.Background())
		if err != nil {
			return
		}
		if buffer, err = readInto(buffer[:0], reader); err != nil {
			return
		}
		if kind != websocket.MessageText {
			continue
		}
		if result, end := parseResult(buffer); result != nil {
			l.mu.Lock()
			result.Provider = l.sent.since(end, l.client.Clock())
			closing := l.closing
			l.mu.Unlock()
			if !closing {
				l.events.Result(result)
			}
		}
	}
}

// write sends audio until none waits. There is one such goroutine at most, so a provider that does not read holds up
// nobody.
func (l *Listener) write(socket *websocket.Conn) {
	l.mu.Lock()
	failed := false
	for l.socket == socket {
		audio := l.backlog.pop()
		if audio == nil {
			break
		}
		end := l.backlog.head
		l.mu.Unlock()
		now := l.client.Clock()
		failed = socket.Write(context.Background(), websocket.MessageBinary, audio) != nil
		l.mu.Lock()
		if failed {
			// It may not have arrived; the next connection gets it again.
			l.backlog.giveBack(audio, end)
			if l.socket == nil {
				l.backlog.trim(l.client.BacklogBytes)
			}
			break
		}
		l.keptAliveAt = now
		l.sent.add(len(audio), now)
		chunk.Put(audio)
	}
	l.writing = false
	closing, dropped, open := l.closing, l.backlog.dropped > 0, l.socket == socket
	if !open && l.socket != nil && l.backlog.bytes > 0 {
		// A new connection is there already.
		l.startWriting()
	}
	l.mu.Unlock()
	switch {
	case failed:
		// Ends listen as well.
		_ = socket.CloseNow()
	case closing && open:
		_ = socket.Write(context.Background(), websocket.MessageText, []byte(`{"type":"CloseStream"}`))
	case dropped && open:
		l.tellDropped()
	}
}
