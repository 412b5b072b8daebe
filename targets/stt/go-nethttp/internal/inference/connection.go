package inference

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// slot is a place for one connection.
type slot struct {
	mu   sync.Mutex
	dial *dial
}

// dial is one attempt to connect, and then its connection. Many requests may wait for it, each no longer than it wants.
type dial struct {
	done       chan struct{}
	connection *http.ClientConn
	err        error
}

func (d *dial) lost() bool {
	select {
	case <-d.done:
		return d.err != nil || d.connection.Err() != nil
	default:
		return false
	}
}

// connection returns the slot's connection, which is made if there is none.
func (s *slot) connection(ctx context.Context, c *Client) (*http.ClientConn, error) {
	s.mu.Lock()
	attempt := s.dial
	if attempt == nil || attempt.lost() {
		attempt = &dial{done: make(chan struct{})}
		s.dial = attempt
		// In nobody's context: the others that wait for it must not lose it with the one that asked first.
		go attempt.run(c)
	}
	s.mu.Unlock()
	select {
	case <-attempt.done:
		return attempt.connection, attempt.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *dial) run(c *Client) {
	defer close(d.done)
	d.connection, d.err = c.transport.NewClientConn(context.Background(), "http", c.address)
}

// body is a request's body that can be taken away from the transport. http.RoundTripper may go on reading a body after
// it has returned, and the memory of this one is about to be used again.
type body struct {
	mu     sync.Mutex
	pcm    []byte
	offset int
	closed bool
}

// Read implements io.Reader; the last bytes come with io.EOF, which saves the transport a DATA frame.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, io.ErrClosedPipe
	}
	n := copy(p, b.pcm[b.offset:])
	b.offset += n
	if b.offset == len(b.pcm) {
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer; nothing is read after it.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// touched says whether anything was read.
func (b *body) touched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offset > 0
}

func (b *body) reopen() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = false
}
