package wire

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

const (
	// readBufferBytes takes some 45 messages of 175 bytes with one read.
	readBufferBytes = 8 * 1024
	// writeBufferBytes takes a message of that length, so that it leaves in one write.
	writeBufferBytes = 4 * 1024
)

// Accept upgrades a request to a WebSocket over a [Conn]. onClosed is called once, when the socket is closed for good.
// When it fails the request has been answered, or its client is gone.
func Accept(w http.ResponseWriter, r *http.Request, messageBytesMax int, onClosed func()) (*websocket.Conn, *Conn, error) {
	hijacker := &hijacker{ResponseWriter: w, limit: uint64(messageBytesMax), onClosed: onClosed}
	socket, err := websocket.Accept(hijacker, r, &websocket.AcceptOptions{
		// The contract knows no origins.
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		if hijacker.conn != nil {
			_ = hijacker.conn.Close()
		} else {
			onClosed()
		}
		return nil, nil, err
	}
	// The guard's limit is the stricter one.
	socket.SetReadLimit(-1)
	return socket, hijacker.conn, nil
}

// hijacker slips the Conn, and buffers of the right sizes, between net/http and the library.
type hijacker struct {
	http.ResponseWriter
	limit    uint64
	onClosed func()
	conn     *Conn
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
	// net/http's reader holds what it has read beyond the request.
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	h.conn = &Conn{
		TCPConn:  socket,
		guard:    guard{limit: h.limit},
		early:    bytes.Clone(early),
		onClosed: h.onClosed,
	}
	reader := bufio.NewReaderSize(h.conn, readBufferBytes)
	return h.conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(h.conn, writeBufferBytes)), nil
}
