package gateway

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gonethttp/internal/config"
	"gonethttp/internal/message"
)

const words = "the quick brown fox jumps over lazy dog hello world yes no okay right left stop go wait ready done " +
	"again now later never"

// reference is the contract's computation over a batch.
func reference(pcm []byte, passes int) message.Inference {
	checksum, crossings, squares, previous := uint32(2166136261), uint64(0), 0.0, int16(0)
	for pass := range passes {
		for i := 0; i < len(pcm); i += 2 {
			x := int16(binary.LittleEndian.Uint16(pcm[i:]))
			checksum = (checksum ^ uint32(int32(x)+32768+int32(pass))&0xFFFF) * 16777619
			if (pass > 0 || i > 0) && (x < 0) != (previous < 0) {
				crossings++
			}
			previous = x
			squares += float64(x) * float64(x)
		}
	}
	answer := message.Inference{
		ZeroCrossings: crossings,
		Checksum:      checksum,
		Samples:       uint64(len(pcm) / 2 * passes),
		Transcript:    strings.Fields(words)[checksum%24],
		AudioBytes:    uint64(len(pcm)),
	}
	if answer.Samples > 0 {
		answer.RMS = math.Sqrt(squares / float64(answer.Samples))
	}
	return answer
}

// synthetic is frame seq of a session's synthetic audio.
func synthetic(session, seq int) []byte {
	frame := make([]byte, message.FrameBytes)
	for i := range message.FrameBytes / 2 {
		x := int16((seq*320+session+i)*17%20000 - 10000)
		binary.LittleEndian.PutUint16(frame[2*i:], uint16(x))
	}
	return frame
}

// server is an inference server that can be told to wait.
type server struct {
	base  *url.URL
	delay atomic.Int64
	now   atomic.Int64
	most  atomic.Int64
}

func serveInference(t *testing.T) *server {
	t.Helper()
	s := &server{}
	fake := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inflight := s.now.Add(1)
		defer s.now.Add(-1)
		s.most.Store(max(s.most.Load(), inflight))
		pcm, _ := io.ReadAll(r.Body)
		passes, _ := strconv.Atoi(r.Header.Get("x-cpu-passes"))
		select {
		case <-time.After(time.Duration(s.delay.Load())):
		case <-r.Context().Done():
		}
		_ = json.NewEncoder(w).Encode(reference(pcm, passes))
	}))
	fake.Config.Protocols = new(http.Protocols)
	fake.Config.Protocols.SetUnencryptedHTTP2(true)
	fake.Start()
	t.Cleanup(fake.Close)
	var err error
	if s.base, err = url.Parse(fake.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

// site is a gateway that listens.
type site struct {
	*Gateway
	address   string
	inference *server
}

func start(t *testing.T, variables map[string]string) *site {
	t.Helper()
	inference := serveInference(t)
	settings, err := config.Load(func(name string) (string, bool) {
		if value, ok := variables[name]; ok {
			return value, true
		}
		value, ok := map[string]string{
			"INFERENCE_URL": inference.base.String(), "WORKER_THREADS": "2",
			"FLUSH_INTERVAL_MS": "50", "FLUSH_PHASE_JITTER_MS": "0", "START_TIMEOUT_MS": "300",
		}[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	g := New(settings)
	listener := httptest.NewServer(g)
	t.Cleanup(listener.Close)
	return &site{g, listener.Listener.Addr().String(), inference}
}

// client is a session over a raw socket, so that it can send what no library would.
type client struct {
	t       *testing.T
	socket  net.Conn
	session int
	seq     int
}

func (s *site) connect(t *testing.T) *client {
	t.Helper()
	return s.dial(t, &net.Dialer{})
}

func (s *site) dial(t *testing.T, dialer *net.Dialer) *client {
	t.Helper()
	socket, err := dialer.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	_ = socket.SetDeadline(time.Now().Add(5 * time.Second))
	c := &client{t: t, socket: socket}
	c.write([]byte("GET /ws/stt HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	head := make([]byte, 0, 200)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		head = append(head, c.read(1)...)
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 101") {
		t.Fatalf("refused: %s", head)
	}
	return c
}

func (s *site) started(t *testing.T) *client {
	t.Helper()
	c := s.connect(t)
	c.write(frame(0x81, []byte(`{"type":"start"}`)))
	return c
}

// frame is a masked frame with this first byte.
func frame(first byte, payload []byte) []byte {
	bytes := []byte{first, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		bytes = binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(len(payload)))
	}
	mask := []byte{1, 2, 3, 4}
	bytes = append(bytes, mask...)
	for i, b := range payload {
		bytes = append(bytes, b^mask[i%4])
	}
	return bytes
}

func (c *client) write(bytes []byte) {
	c.t.Helper()
	if _, err := c.socket.Write(bytes); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) read(count int) []byte {
	c.t.Helper()
	bytes := make([]byte, count)
	if _, err := io.ReadFull(c.socket, bytes); err != nil {
		c.t.Fatal(err)
	}
	return bytes
}

// audio sends synthetic frames in one segment.
func (c *client) audio(count int) {
	c.t.Helper()
	var bytes []byte
	for range count {
		c.seq++
		bytes = append(bytes, frame(0x82, synthetic(c.session, c.seq))...)
	}
	c.write(bytes)
}

// next reads one frame.
func (c *client) next() (first byte, payload []byte) {
	c.t.Helper()
	head := c.read(2)
	length := int(head[1])
	if length == 126 {
		length = int(binary.BigEndian.Uint16(c.read(2)))
	}
	return head[0], c.read(length)
}

type reply struct {
	Type   string `json:"type"`
	Kind   string `json:"kind"`
	Oldest int    `json:"oldest_frame_seq"`
	Newest int    `json:"newest_frame_seq"`
	Passes int    `json:"cpu_passes"`
	message.Inference
}

func (c *client) reply() reply {
	c.t.Helper()
	first, payload := c.next()
	var r reply
	if err := json.Unmarshal(payload, &r); first != 0x81 || err != nil {
		c.t.Fatalf("not a message: %#x %q %v", first, payload, err)
	}
	return r
}

// expectClose passes over messages and wants this close code, then the end of the stream.
func (c *client) expectClose(code websocket.StatusCode) {
	c.t.Helper()
	for {
		first, payload := c.next()
		if first == 0x81 || first == 0x8A {
			continue
		}
		if first != 0x88 || len(payload) < 2 || binary.BigEndian.Uint16(payload) != uint16(code) {
			c.t.Fatalf("got %#x %q, want close %d", first, payload, code)
		}
		break
	}
	if n, err := c.socket.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		c.t.Fatalf("after the close: %v", err)
	}
}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 300 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

func vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile("../../../vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []T `json:"cases"`
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(file.Cases), err)
	}
	return file.Cases
}

func drain(s *site, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.Drain(ctx, time.Now().Add(patience*4/5))
}

func statusCode(code int) websocket.StatusCode { return websocket.StatusCode(code) }

// closesWithin says whether all sockets of ended sessions are closed for good in this time.
func closesWithin(s *site, limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		s.door.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
