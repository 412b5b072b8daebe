package gateway

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gonethttpplain/internal/config"
	"gonethttpplain/internal/message"
)

const words = "the quick brown fox jumps over lazy dog hello world yes no okay right left stop go wait ready done " +
	"again now later never"

// reference is the contract's computation over a batch.
func reference(pcm []byte, passes int) message.Answer {
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
	answer := message.Answer{
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

// synthetic is frame seq of session 0 of the synthetic audio.
func synthetic(seq int) []byte {
	frame := make([]byte, message.FrameBytes)
	for i := range message.FrameBytes / 2 {
		x := int16((seq*320+i)*17%20000 - 10000)
		binary.LittleEndian.PutUint16(frame[2*i:], uint16(x))
	}
	return frame
}

// site is a gateway that listens, and its inference server, which can be told to wait.
type site struct {
	*Gateway
	address   string
	delay     atomic.Int64
	now, most atomic.Int64
}

func (s *site) infer(w http.ResponseWriter, r *http.Request) {
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
}

func start(t *testing.T, variables map[string]string) *site {
	t.Helper()
	s := &site{}
	inference := httptest.NewUnstartedServer(http.HandlerFunc(s.infer))
	inference.Config.Protocols = new(http.Protocols)
	inference.Config.Protocols.SetUnencryptedHTTP2(true)
	inference.Start()
	t.Cleanup(inference.Close)
	settings, err := config.Load(func(name string) (string, bool) {
		if value, ok := variables[name]; ok {
			return value, true
		}
		value, ok := map[string]string{
			"INFERENCE_URL": inference.URL, "WORKER_THREADS": "2",
			"FLUSH_INTERVAL_MS": "50", "FLUSH_PHASE_JITTER_MS": "0", "START_TIMEOUT_MS": "300",
		}[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Gateway = New(settings)
	listener := httptest.NewServer(s.Gateway)
	t.Cleanup(listener.Close)
	s.address = listener.URL
	return s
}

// client is a session over a WebSocket.
type client struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
	seq  int
}

// connect opens a WebSocket; the session waits for its start.
func (s *site) connect(t *testing.T) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, s.address+"/ws/stt", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: t, ctx: ctx, conn: conn}
}

func (s *site) started(t *testing.T) *client {
	t.Helper()
	c := s.connect(t)
	c.write(websocket.MessageText, []byte(`{"type":"start"}`))
	return c
}

func (c *client) write(kind websocket.MessageType, payload []byte) {
	c.t.Helper()
	if err := c.conn.Write(c.ctx, kind, payload); err != nil {
		c.t.Fatal(err)
	}
}

// audio sends synthetic frames.
func (c *client) audio(count int) {
	c.t.Helper()
	for range count {
		c.seq++
		c.write(websocket.MessageBinary, synthetic(c.seq))
	}
}

type reply struct {
	Type   string `json:"type"`
	Kind   string `json:"kind"`
	Oldest int    `json:"oldest_frame_seq"`
	Newest int    `json:"newest_frame_seq"`
	Passes int    `json:"cpu_passes"`
	message.Answer
}

func (c *client) reply() reply {
	c.t.Helper()
	kind, text, err := c.conn.Read(c.ctx)
	if err != nil || kind != websocket.MessageText {
		c.t.Fatalf("not a message: %v %q %v", kind, text, err)
	}
	var r reply
	if err := json.Unmarshal(text, &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// expectClose passes over messages and wants one of these close codes within 500 ms.
func (c *client) expectClose(codes ...websocket.StatusCode) {
	c.t.Helper()
	begun := time.Now()
	for {
		_, _, err := c.conn.Read(c.ctx)
		if err == nil {
			continue
		}
		got := websocket.CloseStatus(err)
		for _, code := range codes {
			if got == code {
				if took := time.Since(begun); took > 450*time.Millisecond {
					c.t.Errorf("after %v", took)
				}
				return
			}
		}
		c.t.Fatalf("got %v, want close %v", err, codes)
	}
}

func (s *site) get(t *testing.T, path string) (int, string) {
	t.Helper()
	response, err := http.Get(s.address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// upgrade asks for a WebSocket with these headers beside the usual ones.
func (s *site) upgrade(t *testing.T, headers map[string]string) *http.Response {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, s.address+"/ws/stt", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
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
		t.Fatalf("%s: %d cases, %v", name, len(file.Cases), err)
	}
	return file.Cases
}
