package gateway

import (
	"context"
	"encoding/hex"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gonethttpplain/internal/message"
)

// TestReferenceVectors tests the tests' own inference server.
func TestReferenceVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID     string
		Passes int
		PCM    *string
		Expect message.Answer
	}](t, "reference.json") {
		if c.PCM == nil {
			continue
		}
		pcm, _ := hex.DecodeString(*c.PCM)
		got := reference(pcm, c.Passes)
		if math.Abs(got.RMS-c.Expect.RMS) > 1e-9*c.Expect.RMS {
			t.Errorf("%s: rms %v, want %v", c.ID, got.RMS, c.Expect.RMS)
		}
		if got.RMS = c.Expect.RMS; got != c.Expect {
			t.Errorf("%s: got %+v, want %+v", c.ID, got, c.Expect)
		}
	}
}

func TestGoldenFrame(t *testing.T) {
	c := start(t, nil).started(t)
	c.audio(1)
	got := c.reply()
	if got.Type != "partial" || got.Checksum != 1745339397 || got.ZeroCrossings != 7 || got.Samples != 1280 ||
		got.Transcript != "now" || got.AudioBytes != 640 || got.Passes != 4 {
		t.Errorf("got %+v", got)
	}
}

// TestEveryFrameIsNamedOnce talks while the model is slower than the flushes.
func TestEveryFrameIsNamedOnce(t *testing.T) {
	s := start(t, nil)
	s.delay.Store(int64(120 * time.Millisecond))
	c := s.started(t)
	go func() {
		for range 100 {
			c.audio(1)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for named := 0; named < 100; {
		r := c.reply()
		if r.Type != "partial" || r.Oldest != named+1 || r.AudioBytes != uint64(r.Newest-r.Oldest+1)*640 {
			t.Fatalf("%+v after frame %d", r, named)
		}
		var pcm []byte
		for seq := r.Oldest; seq <= r.Newest; seq++ {
			pcm = append(pcm, synthetic(seq)...)
		}
		if r.Checksum != reference(pcm, 4).Checksum {
			t.Fatalf("%+v is of other audio", r)
		}
		named = r.Newest
	}
	if most := s.most.Load(); most != 1 {
		t.Errorf("%d requests in flight", most)
	}
	if _, text := s.get(t, "/metrics"); strings.Contains(text, `stt_ticks_deferred_total{reason="inflight"} 0`) ||
		!strings.Contains(text, "stt_frames_total 100\n") {
		t.Errorf("metrics are %s", text)
	}
}

// TestFrameVectors sends the payload of a message over the limit, up to a mebibyte: the library refuses what it has
// read, not what a header declares.
func TestFrameVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID, Opcode string
		Length     int
		OK         bool
	}](t, "frames.json") {
		t.Run(c.ID, func(t *testing.T) {
			if c.Length > 1<<20 {
				t.Skip("too long to be sent")
			}
			client := start(t, nil).started(t)
			kind := websocket.MessageBinary
			if c.Opcode == "text" {
				kind = websocket.MessageText
			}
			_ = client.conn.Write(client.ctx, kind, make([]byte, c.Length))
			if c.OK {
				if r := client.reply(); r.Newest != 1 {
					t.Errorf("got %+v", r)
				}
				return
			}
			client.expectClose(websocket.StatusProtocolError, websocket.StatusUnsupportedData, websocket.StatusMessageTooBig)
		})
	}
}

func TestFirstMessage(t *testing.T) {
	s := start(t, nil)
	s.connect(t).expectClose(websocket.StatusProtocolError)
	binary := s.connect(t)
	binary.audio(1)
	binary.expectClose(websocket.StatusProtocolError)
	other := s.connect(t)
	other.write(websocket.MessageText, []byte(`{"type":"stop"}`))
	other.expectClose(websocket.StatusProtocolError)
}

func TestOverflowCloses(t *testing.T) {
	s := start(t, map[string]string{"OVERFLOW_POLICY": "close", "MAX_BUFFER_FRAMES": "2", "FLUSH_INTERVAL_MS": "5000"})
	c := s.started(t)
	c.audio(3)
	c.expectClose(websocket.StatusTryAgainLater)
}

func TestFailureNamesItsFrames(t *testing.T) {
	s := start(t, map[string]string{"INFERENCE_TIMEOUT_MS": "400"})
	s.delay.Store(int64(time.Minute))
	c := s.started(t)
	c.audio(3)
	if r := c.reply(); r.Type != "error" || r.Kind != "timeout" || r.Oldest != 1 || r.Newest != 3 {
		t.Errorf("got %+v", r)
	}
	s.delay.Store(0)
	c.audio(1)
	if r := c.reply(); r.Type != "partial" || r.Oldest != 4 {
		t.Errorf("got %+v", r)
	}
}

func TestClientClose(t *testing.T) {
	s := start(t, nil)
	s.delay.Store(int64(time.Minute))
	c := s.started(t)
	c.audio(3)
	eventually(t, "a request", func() bool { return s.now.Load() == 1 })
	begun := time.Now()
	if err := c.conn.Close(websocket.StatusNormalClosure, ""); err != nil || time.Since(begun) > 450*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	eventually(t, "the request is given up", func() bool { return s.now.Load() == 0 })
	eventually(t, "the place is free", func() bool {
		_, text := s.get(t, "/metrics")
		return strings.Contains(text, "stt_sessions 0\n") && strings.Contains(text, "stt_jobs_inflight 0\n")
	})
}

func TestJobsAreLimited(t *testing.T) {
	s := start(t, map[string]string{"MAX_INFLIGHT_JOBS": "1"})
	s.delay.Store(int64(20 * time.Millisecond))
	for range 4 {
		c := s.started(t)
		c.audio(2)
		defer func() {
			if r := c.reply(); r.Type != "partial" {
				t.Errorf("got %+v", r)
			}
			if most := s.most.Load(); most != 1 {
				t.Errorf("%d requests in flight", most)
			}
		}()
	}
}

func TestHTTPSurface(t *testing.T) {
	s := start(t, map[string]string{"MAX_SESSIONS": "1", "AUTH_TOKEN": "secret", "START_TIMEOUT_MS": "5000"})
	for path, want := range map[string]int{"/health": 200, "/metrics": 200, "/ws/stt": 426, "/": 404, "/ws/stt/": 404} {
		if got, _ := s.get(t, path); got != want {
			t.Errorf("GET %s: %d", path, got)
		}
	}
	if response, err := http.Post(s.address+"/health", "text/plain", nil); err != nil || response.StatusCode != 405 {
		t.Errorf("POST /health: %v %v", response, err)
	}
	if got := s.upgrade(t, map[string]string{"Authorization": "Bearer secret"}).StatusCode; got != 101 {
		t.Errorf("with the token: %d", got)
	}
	if r := s.upgrade(t, map[string]string{"Authorization": "Bearer secret"}); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("a second session: %d %v", r.StatusCode, r.Header)
	}
	// A wrong token is told so, also by a gateway that is full; what is no upgrade is told neither.
	for _, wrong := range []string{"", "Bearer", "Bearer secre", "Bearer secrets", "Basic secret", "secret"} {
		if got := s.upgrade(t, map[string]string{"Authorization": wrong}).StatusCode; got != 401 {
			t.Errorf("Authorization %q: %d", wrong, got)
		}
	}
	if got := s.upgrade(t, map[string]string{"Connection": "keep-alive"}).StatusCode; got != 426 {
		t.Errorf("no upgrade: %d", got)
	}
	if _, text := s.get(t, "/metrics"); !strings.Contains(text, "stt_sessions_rejected_total 1\n") {
		t.Errorf("metrics are %s", text)
	}
}

// TestLimitIsExact lets many take at the same time.
func TestLimitIsExact(t *testing.T) {
	l := limit{max: 20}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 1000 {
				if l.take() {
					if l.used.Load() > 20 {
						t.Error("too many")
					}
					l.give()
				}
			}
		})
	}
	all.Wait()
	if l.used.Load() != 0 {
		t.Errorf("%d are left", l.used.Load())
	}
}

func drain(s *site, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.Drain(ctx)
}

func TestDrain(t *testing.T) {
	s := start(t, map[string]string{"START_TIMEOUT_MS": "5000"})
	s.delay.Store(int64(300 * time.Millisecond))
	early, idle, busy := s.connect(t), s.started(t), s.started(t)
	busy.audio(2)
	eventually(t, "a request", func() bool { return s.now.Load() == 1 })
	drained := make(chan time.Duration)
	go func() {
		begun := time.Now()
		drain(s, 4*time.Second)
		drained <- time.Since(begun)
	}()
	early.expectClose(websocket.StatusGoingAway)
	idle.expectClose(websocket.StatusGoingAway)
	if status, _ := s.get(t, "/health"); status != 503 {
		t.Errorf("/health: %d", status)
	}
	if r := s.upgrade(t, nil); r.StatusCode != 503 {
		t.Errorf("an upgrade: %d", r.StatusCode)
	}
	if r := busy.reply(); r.Newest != 2 {
		t.Errorf("got %+v", r)
	}
	busy.expectClose(websocket.StatusGoingAway)
	if took := <-drained; took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestDrainDoesNotWaitForASilentClient: one that does not answer the close is not waited for.
func TestDrainDoesNotWaitForASilentClient(t *testing.T) {
	s := start(t, nil)
	s.started(t)
	eventually(t, "a session", func() bool { return s.sessions.used.Load() == 1 })
	begun := time.Now()
	drain(s, 4*time.Second)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestDrainGivesUp(t *testing.T) {
	s := start(t, nil)
	s.delay.Store(int64(time.Minute))
	c := s.started(t)
	c.audio(1)
	eventually(t, "a request", func() bool { return s.now.Load() == 1 })
	go drain(s, 200*time.Millisecond)
	c.expectClose(websocket.StatusGoingAway)
}
