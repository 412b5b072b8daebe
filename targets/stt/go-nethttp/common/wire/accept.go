package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

const (
	// readBufferBytes takes six frames: a socket holds more only when the gateway is late.
	readBufferBytes = 4 * 1024
	// pacedFrameBytes is a frame with its header and mask, and pacedFrameTime how often one comes.
	pacedFrameBytes = 648
	pacedFrameTime  = 20 * time.Millisecond
	// writeBufferBytes takes any partial, so that it leaves in one write.
	writeBufferBytes = 1024
)

// Options says how to make a [Conn].
type Options struct {
	// Epoch is the origin of all times.
	Epoch time.Time
	// Pace is the time from one read to the next; 0 reads whenever something has come.
	Pace  time.Duration
	Waker Waker
	// TextBytesMax and BinaryBytesMax are the longest messages that a client may declare.
	TextBytesMax, BinaryBytesMax uint64
	// TooLarge is what reading ends with at a longer one.
	TooLarge error
	// SendBufferBytes is the size of the kernel's send buffer; 0 leaves it to the kernel.
	SendBufferBytes int
	// OnClosed is called once, when the socket is closed for good.
	OnClosed func()
}

// Accept upgrades a request to a WebSocket over a [Conn]. When it fails the request has been answered.
func Accept(w http.ResponseWriter, r *http.Request, options *Options) (*websocket.Conn, *Conn, error) {
	hijacker := &hijacker{ResponseWriter: w, options: options}
	socket, err := websocket.Accept(hijacker, r, &websocket.AcceptOptions{
		// The contract knows no origins; who may come in is a matter of the token, which no browser sends unasked.
		InsecureSkipVerify: true,
		OnPingReceived: func(context.Context, []byte) bool {
			// The pong would have to wait for the client to read, and all of the session with it.
			return !hijacker.conn.Stalled()
		},
	})
	if err != nil {
		if hijacker.conn != nil {
			_ = hijacker.conn.Close()
		} else {
			options.OnClosed()
		}
		return nil, nil, err
	}
	return socket, hijacker.conn, nil
}

// hijacker slips the Conn, and buffers of the right sizes, between net/http and the library.
type hijacker struct {
	http.ResponseWriter
	options *Options
	conn    *Conn
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	netConn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	socket, ok := netConn.(*net.TCPConn)
	if !ok {
		_ = netConn.Close()
		return nil, nil, errors.New("not a TCP connection")
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	h.conn, err = newConn(socket, bytes.Clone(early), h.options)
	if err != nil {
		_ = netConn.Close()
		return nil, nil, err
	}
	reader := bufio.NewReaderSize(h.conn, readBufferSize(h.options.Pace))
	return h.conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(h.conn, writeBufferBytes)), nil
}

// readBufferSize is such that at a pace one read takes all that came since the last, and a few frames more.
func readBufferSize(pace time.Duration) int {
	return readBufferBytes + int(pace/pacedFrameTime)*pacedFrameBytes
}
