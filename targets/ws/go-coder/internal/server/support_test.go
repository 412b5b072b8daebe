package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gocoder/internal/config"
)

const (
	text     = 0x81
	binaries = 0x82
	closing  = 0x88
	ping     = 0x89
	pong     = 0x8A
	patience = 20 * time.Second
)

// site is a server that listens.
type site struct {
	*Server
	address string
}

func start(t *testing.T, messageBytesMax int) *site {
	t.Helper()
	s := New(&config.Config{MessageBytesMax: messageBytesMax, DrainTimeout: time.Second})
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return &site{s, listener.Listener.Addr().String()}
}

func (s *site) get(t *testing.T, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + s.address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// metric reads one of the metrics.
func (s *site) metric(t *testing.T, name string) int {
	t.Helper()
	_, body := s.get(t, "/metrics")
	found := regexp.MustCompile("(?m)^" + name + " ([0-9]+)$").FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no %s in\n%s", name, body)
	}
	value, _ := strconv.Atoi(found[1])
	return value
}

// client is a WebSocket over a raw socket, so that it can send what no library would.
type client struct {
	t      *testing.T
	socket net.Conn
}

func (s *site) connect(t *testing.T, path string, more ...byte) *client {
	t.Helper()
	socket, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	_ = socket.SetDeadline(time.Now().Add(patience))
	c := &client{t, socket}
	c.write(append([]byte("GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"), more...))
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		head = append(head, c.read(1)...)
	}
	answer := strings.ToLower(string(head))
	// The example of RFC 6455, section 1.3.
	if !strings.HasPrefix(answer, "http/1.1 101 ") || !strings.Contains(answer, "s3pplmbitxaq9kygzzhzrbk+xoo=") ||
		strings.Contains(answer, "sec-websocket-extensions") {
		t.Fatalf("got %s", head)
	}
	return c
}

// header is a client's header, without its mask.
func header(first byte, length int) []byte {
	switch {
	case length > 0xFFFF:
		return binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, uint64(length))
	case length > 125:
		return binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(length))
	}
	return []byte{first, 0x80 | byte(length)}
}

// frame is a masked frame with any first byte.
func frame(first byte, payload []byte) []byte {
	mask := []byte{9, 8, 7, 6}
	whole := append(header(first, len(payload)), mask...)
	for i, b := range payload {
		whole = append(whole, b^mask[i%4])
	}
	return whole
}

func (c *client) write(bytes []byte) {
	c.t.Helper()
	if _, err := c.socket.Write(bytes); err != nil {
		c.t.Error(err)
	}
}

func (c *client) send(first byte, payload []byte) {
	c.t.Helper()
	c.write(frame(first, payload))
}

func (c *client) read(count int) []byte {
	c.t.Helper()
	bytes := make([]byte, count)
	if _, err := io.ReadFull(c.socket, bytes); err != nil {
		c.t.Fatal(err)
	}
	return bytes
}

// receive reads one frame.
func (c *client) receive() (first byte, payload []byte) {
	c.t.Helper()
	head := c.read(2)
	length := int(head[1])
	switch length {
	case 126:
		length = int(binary.BigEndian.Uint16(c.read(2)))
	case 127:
		length = int(binary.BigEndian.Uint64(c.read(8)))
	}
	return head[0], c.read(length)
}

func (c *client) expect(first byte, payload []byte) {
	c.t.Helper()
	gotFirst, got := c.receive()
	if gotFirst != first || !bytes.Equal(got, payload) {
		c.t.Fatalf("got %#x with %d bytes, want %#x with %d", gotFirst, len(got), first, len(payload))
	}
}

// expectClose wants a close with this code, 0 for none, and then the end of the stream.
func (c *client) expectClose(code uint16) {
	c.t.Helper()
	first, payload := c.receive()
	got := uint16(0)
	if len(payload) >= 2 {
		got = binary.BigEndian.Uint16(payload)
	}
	if first != closing || got != code {
		c.t.Fatalf("got %#x %q, want a close with %d", first, payload, code)
	}
	if n, err := c.socket.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		c.t.Fatalf("after the close: %v", err)
	}
}

// barrier returns when all that was sent has been answered, and nothing but that.
func (c *client) barrier() {
	c.t.Helper()
	c.send(ping, []byte("barrier"))
	c.expect(pong, []byte("barrier"))
}

// pattern is a payload in which every byte's place shows.
func pattern(length, seed int) []byte {
	payload := make([]byte, length)
	for i := range payload {
		payload[i] = byte((i + seed) * 31 % 251)
	}
	return payload
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 500 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

func drain(s *site, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.Drain(ctx)
}
