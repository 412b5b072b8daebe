package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonethttp/internal/message"
)

func TestReferenceVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID     string
		Passes int
		PCM    *string
		From   *struct {
			Session  int
			FirstSeq int `json:"first_seq"`
			Frames   int
		} `json:"pcm_from"`
		Expect message.Inference
	}](t, "reference.json") {
		t.Run(c.ID, func(t *testing.T) {
			var pcm []byte
			if c.PCM != nil {
				pcm, _ = hex.DecodeString(*c.PCM)
			} else {
				for k := range c.From.Frames {
					pcm = append(pcm, synthetic(c.From.Session, c.From.FirstSeq+k)...)
				}
			}
			got := reference(pcm, c.Passes)
			if math.Abs(got.RMS-c.Expect.RMS) > 1e-9*c.Expect.RMS {
				t.Errorf("rms %v, want %v", got.RMS, c.Expect.RMS)
			}
			if got.RMS = c.Expect.RMS; got != c.Expect {
				t.Errorf("got %+v, want %+v", got, c.Expect)
			}
		})
	}
}

func TestSyntheticVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID           string
		Session, Seq int
		SHA          string `json:"pcm_sha256"`
	}](t, "synthetic.json") {
		sum := sha256.Sum256(synthetic(c.Session, c.Seq))
		if hex.EncodeToString(sum[:]) != c.SHA {
			t.Errorf("%s differs", c.ID)
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

// TestEveryFrameIsNamedOnce talks while the model is slower than the flushes, read by read and at a pace.
func TestEveryFrameIsNamedOnce(t *testing.T) {
	for name, pace := range map[string]string{"by readiness": "0", "at a pace": "30"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, map[string]string{"READ_PACE_MS": pace})
			s.inference.delay.Store(int64(120 * time.Millisecond))
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
					pcm = append(pcm, synthetic(0, seq)...)
				}
				if r.Checksum != reference(pcm, 4).Checksum {
					t.Fatalf("%+v is of other audio", r)
				}
				named = r.Newest
			}
			if most := s.inference.most.Load(); most != 1 {
				t.Errorf("%d requests in flight", most)
			}
			_, text := get(t, s.address, "/metrics")
			if strings.Contains(text, `stt_ticks_deferred_total{reason="inflight"} 0`) {
				t.Error("no tick was deferred")
			}
		})
	}
}

// TestViolations sends each with much more behind it: the close code must survive the data that nobody reads.
func TestViolations(t *testing.T) {
	fill := bytes.Repeat(frame(0x82, make([]byte, 640)), 200)
	for name, c := range map[string]struct {
		bytes []byte
		code  int
	}{
		"unmasked":           {append([]byte{0x82, 126, 2, 128}, make([]byte, 640)...), 1002},
		"reserved bit 1":     {frame(0xC2, make([]byte, 640)), 1002},
		"reserved bit 3":     {frame(0x92, make([]byte, 640)), 1002},
		"opcode 3":           {frame(0x83, nil), 1002},
		"opcode 11":          {frame(0x8B, nil), 1002},
		"a second text":      {frame(0x81, []byte(`{"type":"start"}`)), 1002},
		"orphaned":           {frame(0x80, make([]byte, 640)), 1002},
		"interleaved":        {append(frame(0x02, make([]byte, 320)), frame(0x82, make([]byte, 640))...), 1002},
		"fragmented ping":    {frame(0x09, nil), 1002},
		"long ping":          {frame(0x89, make([]byte, 126)), 1002},
		"short":              {frame(0x82, make([]byte, 639)), 1003},
		"long":               {frame(0x82, make([]byte, 641)), 1003},
		"empty":              {frame(0x82, nil), 1003},
		"fragments":          {append(frame(0x02, make([]byte, 320)), frame(0x80, make([]byte, 321))...), 1003},
		"declared too long":  {[]byte{0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4}, 1009},
		"declared enormous":  {[]byte{0x82, 0xFF, 0xFF, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4}, 1009},
		"text, too long":     {[]byte{0x81, 0xFF, 0, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4}, 1009},
		"an illegal close":   {frame(0x88, []byte{0x03, 0xED}), 1002},
		"fragments too long": {append(frame(0x02, make([]byte, 640)), 0x80, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 1, 2, 3, 4), 1009},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, map[string]string{"MAX_BUFFER_FRAMES": "1000"})
			client := s.started(t)
			client.write(append(append([]byte{}, c.bytes...), fill...))
			begun := time.Now()
			client.expectClose(statusCode(c.code))
			if took := time.Since(begun); took > 450*time.Millisecond {
				t.Errorf("after %v", took)
			}
			_ = client.socket.Close()
			eventually(t, "the socket is closed", func() bool { return closesWithin(s, time.Second) })
		})
	}
}

func TestStart(t *testing.T) {
	s := start(t, nil)
	late := s.connect(t)
	late.expectClose(1002)
	binary := s.connect(t)
	binary.audio(1)
	binary.expectClose(1002)
	pieces := s.connect(t)
	pieces.write(frame(0x01, []byte(`{"type":`)))
	pieces.write(frame(0x89, []byte("p")))
	pieces.write(frame(0x80, []byte(`"start"}`)))
	pieces.audio(1)
	if first, payload := pieces.next(); first != 0x8A || string(payload) != "p" {
		t.Errorf("got %#x %q instead of a pong", first, payload)
	}
	if r := pieces.reply(); r.Newest != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestClientCloseIsAnsweredAtOnce(t *testing.T) {
	s := start(t, nil)
	s.inference.delay.Store(int64(time.Second))
	c := s.started(t)
	c.audio(3)
	eventually(t, "a request", func() bool { return s.inference.now.Load() == 1 })
	c.write(frame(0x88, []byte{0x10, 0xE1}))
	c.expectClose(4321)
	eventually(t, "the request is given up", func() bool { return s.inference.now.Load() == 0 })
	eventually(t, "the place is free", func() bool {
		_, text := get(t, s.address, "/metrics")
		return strings.Contains(text, "stt_sessions 0\n") && strings.Contains(text, "stt_jobs_inflight 0\n")
	})
}

func TestHTTPSurface(t *testing.T) {
	s := start(t, map[string]string{"MAX_SESSIONS": "1", "AUTH_TOKEN": "secret", "START_TIMEOUT_MS": "5000"})
	for path, want := range map[string]int{"/health": 200, "/metrics": 200, "/ws/stt": 426, "/": 404, "/ws/stt/": 404, "//health": 404} {
		if got, _ := get(t, s.address, path); got != want {
			t.Errorf("GET %s: %d", path, got)
		}
	}
	if response, err := http.Post("http://"+s.address+"/health", "text/plain", nil); err != nil || response.StatusCode != 404 {
		t.Errorf("POST /health: %v %v", response, err)
	}
	upgrade := func(authorization string) *http.Response {
		request, _ := http.NewRequest(http.MethodGet, "http://"+s.address+"/ws/stt", nil)
		request.Header = http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Authorization": {authorization},
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	for _, wrong := range []string{"", "Bearer", "Bearer secre", "Bearer secrets", "Basic secret", "secret"} {
		if got := upgrade(wrong).StatusCode; got != 401 {
			t.Errorf("Authorization %q: %d", wrong, got)
		}
	}
	if got := upgrade("bearer secret").StatusCode; got != 101 {
		t.Errorf("with the token: %d", got)
	}
	if r := upgrade("Bearer secret"); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("a second session: %d %v", r.StatusCode, r.Header)
	}
}

func TestDrain(t *testing.T) {
	for name, pace := range map[string]string{"by readiness": "0", "at a pace": "30"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, map[string]string{"READ_PACE_MS": pace})
			s.inference.delay.Store(int64(300 * time.Millisecond))
			idle, busy := s.started(t), s.started(t)
			busy.audio(2)
			eventually(t, "a request", func() bool { return s.inference.now.Load() == 1 })
			drained := make(chan time.Duration)
			go func() {
				begun := time.Now()
				drain(s, 4*time.Second)
				drained <- time.Since(begun)
			}()
			idle.expectClose(1001)
			_ = idle.socket.Close()
			if status, _ := get(t, s.address, "/health"); status != 503 {
				t.Errorf("/health: %d", status)
			}
			if r := busy.reply(); r.Newest != 2 {
				t.Errorf("got %+v", r)
			}
			busy.expectClose(1001)
			_ = busy.socket.Close()
			if took := <-drained; took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestDrainGivesUp(t *testing.T) {
	s := start(t, nil)
	s.inference.delay.Store(int64(time.Minute))
	c := s.started(t)
	c.audio(1)
	eventually(t, "a request", func() bool { return s.inference.now.Load() == 1 })
	go drain(s, 500*time.Millisecond)
	begun := time.Now()
	c.expectClose(1001)
	if took := time.Since(begun); took > 700*time.Millisecond {
		t.Errorf("after %v", took)
	}
}

// TestSlowReader: a client that does not read fills its outbox, then its buffer, and nothing else.
func TestSlowReader(t *testing.T) {
	s := start(t, map[string]string{
		"FLUSH_INTERVAL_MS": "1", "OUTBOX_MESSAGES": "2", "MAX_BUFFER_FRAMES": "50",
	})
	c := s.dial(t, &net.Dialer{Control: smallBuffers})
	c.write(frame(0x81, []byte(`{"type":"start"}`)))
	deferred := func() bool {
		_, text := get(t, s.address, "/metrics")
		return !strings.Contains(text, `stt_ticks_deferred_total{reason="outbox"} 0`)
	}
	for begun := time.Now(); !deferred(); {
		if time.Since(begun) > 4*time.Second {
			t.Fatal("no tick was deferred, though the client read nothing")
		}
		for range 100 {
			c.audio(1)
			time.Sleep(200 * time.Microsecond)
		}
	}
	c.audio(200)
	dropped := false
	for named := 0; named < c.seq; {
		r := c.reply()
		if r.Oldest != named+1 {
			t.Fatalf("%+v after frame %d", r, named)
		}
		named, dropped = r.Newest, dropped || r.Kind == "overflow"
	}
	if !dropped {
		t.Error("200 frames fitted into a buffer of 50")
	}
}

// smallBuffers makes the buffers of both ends small, that of the other by a small segment size.
func smallBuffers(_, _ string, raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		if err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048); err == nil {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536)
		}
	})
	return errors.Join(failed, err)
}
