package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestAdmission asks twice as often as allowed, all at once.
func TestAdmission(t *testing.T) {
	for cause, c := range map[string]struct {
		variable string
		status   int
	}{
		"capacity":    {"MAX_SESSIONS", 503},
		"per_address": {"MAX_SESSIONS_PER_ADDRESS", 429},
		"rate":        {"RATE_LIMIT_RPS", 429},
	} {
		t.Run(cause, func(t *testing.T) {
			s := start(t, map[string]string{c.variable: "20"})
			var in, out atomic.Int64
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					client, response := s.dial(t, &net.Dialer{}, nil)
					if client != nil {
						in.Add(1)
					} else if response.StatusCode == c.status && response.Header.Get("Retry-After") != "" {
						out.Add(1)
					}
				})
			}
			all.Wait()
			if in.Load() != 20 || out.Load() != 20 {
				t.Errorf("%d in, %d out", in.Load(), out.Load())
			}
			s.metric(t, `voice_refused_total{cause="`+cause+`"} 20`)
		})
	}
}

func TestPlacesComeBackAfterResets(t *testing.T) {
	s := start(t, map[string]string{"MAX_SESSIONS": "1"})
	for range 100 {
		var c *client
		eventually(t, "the place is free", func() bool { c, _ = s.dial(t, &net.Dialer{}, nil); return c != nil })
		_ = c.raw.(*net.TCPConn).SetLinger(0)
		_ = c.raw.Close()
	}
	s.metric(t, `voice_sessions 0`)
}

func TestToken(t *testing.T) {
	s := start(t, map[string]string{"AUTH_TOKEN": "secret"})
	for _, wrong := range []string{"", "Bearer", "Bearer secre", "Basic secret"} {
		if c, response := s.dial(t, &net.Dialer{}, http.Header{"Authorization": {wrong}}); c != nil || response.StatusCode != 401 {
			t.Errorf("%q: %v", wrong, response)
		}
	}
	if c, response := s.dial(t, &net.Dialer{}, http.Header{"Authorization": {"Bearer secret"}}); c == nil {
		t.Errorf("with the token: %d", response.StatusCode)
	}
	s.metric(t, `voice_refused_total{cause="auth"} 4`)
}

func TestIdleAndFloodAreClosed(t *testing.T) {
	s := start(t, map[string]string{"IDLE_MS": "600"})
	c := s.ready(t)
	// A ping is not nothing.
	time.Sleep(300 * time.Millisecond)
	reading := c.socket.CloseRead(context.Background())
	if err := c.socket.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	<-reading.Done()
	if took := time.Since(begun); took < 540*time.Millisecond || took > 700*time.Millisecond {
		t.Errorf("idle after %v", took)
	}
	c = s.connect(t)
	for range 99 {
		c.say("x")
		c.expect("bad_message")
	}
	c.say("x")
	c.expectClose(1008, time.Second)
}

func TestNoConfigInTime(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.connect(t)
	begun := time.Now()
	c.expectClose(1008, 12*time.Second)
	if took := time.Since(begun); took < 9900*time.Millisecond || took > 11*time.Second {
		t.Errorf("after %v", took)
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

// slow is a caller with small buffers whose session is open.
func (s *site) slow(t *testing.T) *client {
	t.Helper()
	c, _ := s.dial(t, &net.Dialer{Control: smallBuffers}, nil)
	c.say(configFor("deepgram"))
	c.expect("ready")
	return c
}

// TestASlowReaderHurtsOnlyItself lets one caller not read while another has a reply.
func TestASlowReaderHurtsOnlyItself(t *testing.T) {
	s := start(t, map[string]string{"OUT_BUFFER_BYTES": "50000"})
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 300, time.Millisecond) })
	slow, other := s.slow(t), s.ready(t)
	slow.speak("one", "")
	eventually(t, "the request", func() bool { return len(s.providers.got()) == 1 })
	other.speak("two", "")
	audio, end := other.reply("tts_playback_complete")
	if len(audio) != 300*960 || *end.DroppedBytes != 0 {
		t.Errorf("the other: %d bytes, %+v", len(audio), end)
	}
	s.metric(t, `voice_requests_total{outcome="complete",provider="deepgram_tts"} 2`)
	audio, end = slow.reply("tts_playback_complete")
	if *end.DroppedBytes == 0 || int64(len(audio))+*end.DroppedBytes != 300*960 || *end.DroppedBytes%960 != 0 {
		t.Errorf("%d bytes, %d dropped", len(audio), *end.DroppedBytes)
	}
	// What is left are whole blocks.
	for at := 0; at < len(audio); at += 960 {
		if string(audio[at:at+10]) != "request 1 " {
			t.Fatalf("at %d: %q", at, audio[at:at+10])
		}
	}
	slow.speak("three", "")
	slow.expect("audio")
}

// TestClearReachesASlowReader: what waits for it is not written any more.
func TestClearReachesASlowReader(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 500, 0) })
	c := s.slow(t)
	c.speak("one", "")
	s.metric(t, `voice_requests_total{outcome="complete",provider="deepgram_tts"} 1`)
	c.say(`{"type":"clear"}`)
	s.metric(t, `voice_speaks_total{outcome="dropped"} 1`)
	c.say(`{"type":"?"}`)
	if audio, _ := c.reply("bad_message"); len(audio) > 200_000 {
		t.Errorf("%d bytes of what was dropped", len(audio))
	}
}

func TestASocketThatTakesNothingIsClosed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 500, 0) })
	c := s.slow(t)
	c.speak("one", "")
	begun := time.Now()
	for s.door.Open() > 0 {
		if time.Since(begun) > 13*time.Second {
			t.Fatal("it stays open")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if took := time.Since(begun); took < 9500*time.Millisecond {
		t.Errorf("after %v", took)
	}
	c.expectClose(1008, patience)
}

// TestASlowReaderIsNotStuck reads 8 KiB a second for longer than a socket may take nothing.
func TestASlowReaderIsNotStuck(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 500, 0) })
	c := s.slow(t)
	c.speak("one", "")
	for range 22 {
		if _, err := c.next(patience); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond)
	}
}

func TestStallNeedsNoProgress(t *testing.T) {
	var st stall
	for _, step := range []struct {
		at, write time.Duration
		queued    int
		want      bool
	}{
		{1 * time.Second, time.Second, 100, false},
		{10 * time.Second, time.Second, 100, false},
		{11 * time.Second, time.Second, 100, true},
		{12 * time.Second, time.Second, 90, false},
		{21 * time.Second, time.Second, 90, false},
		{22 * time.Second, time.Second, 90, true},
		{23 * time.Second, 22500 * time.Millisecond, 500, false},
		{32 * time.Second, 22500 * time.Millisecond, 500, false},
		{33 * time.Second, 22500 * time.Millisecond, 500, true},
		{34 * time.Second, 0, 0, false},
	} {
		if got := st.lasts(step.at, step.write, step.queued); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
}

func TestDrain(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 30, 10*time.Millisecond) })
	idle, busy := s.ready(t), s.ready(t)
	busy.speak("hello", "")
	busy.expect("audio")
	drained := make(chan time.Duration)
	go func() {
		begun := time.Now()
		s.drain(4 * time.Second)
		drained <- time.Since(begun)
	}()
	idle.expectClose(1001, time.Second)
	if response, body := get(t, s.address, "/"); response.StatusCode != 503 || body != `{"status":"DRAINING"}` {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	if c, response := s.dial(t, &net.Dialer{}, nil); c != nil || response.StatusCode != 503 {
		t.Errorf("a new session: %v", response)
	}
	s.metric(t, `voice_refused_total{cause="draining"} 1`)
	audio, _ := busy.reply("tts_playback_complete")
	if len(audio) < 28*960 {
		t.Errorf("%d bytes", len(audio))
	}
	busy.expectClose(1001, time.Second)
	if took := <-drained; took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestDrainGivesUp(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 300, 20*time.Millisecond) })
	c := s.ready(t)
	c.speak("hello", "")
	c.expect("audio")
	begun := time.Now()
	go s.drain(500 * time.Millisecond)
	c.expectClose(websocket.StatusGoingAway, time.Second)
	if took := time.Since(begun); took < 400*time.Millisecond || took > 700*time.Millisecond {
		t.Errorf("after %v", took)
	}
	eventually(t, "the request is cancelled", func() bool { return s.providers.gaveUp() == 1 })
}

func (s *site) drain(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.Drain(ctx, time.Now().Add(limit*19/20))
}
