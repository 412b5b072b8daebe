package gateway

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAReplyIsWholeAndInOrder(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 40, time.Millisecond) })
	c := s.ready(t)
	for n := 1; n <= 2; n++ {
		begun := time.Now()
		c.speak("hello", "")
		audio, end := c.reply("tts_playback_complete")
		if !bytes.Equal(audio, wholeReply(n, 40)) {
			t.Errorf("reply %d: %d bytes differ", n, len(audio))
		}
		if end.Speak != n || end.ProviderMS == nil || *end.ProviderMS != 12.5 || end.DroppedBytes == nil || *end.DroppedBytes != 0 ||
			end.Timestamp < begun.UnixMilli() || end.Timestamp > time.Now().UnixMilli() {
			t.Errorf("got %+v", end)
		}
	}
	s.metric(t, `voice_speaks_total{outcome="complete"} 2`)
	s.metric(t, `voice_requests_total{outcome="complete",provider="deepgram_tts"} 2`)
	s.metric(t, fmt.Sprintf(`voice_audio_bytes_total{direction="out"} %d`, 2*40*960))
}

// TestEachProviderGetsItsRequest compares with section 4 of the contract.
func TestEachProviderGetsItsRequest(t *testing.T) {
	for provider, want := range map[string]struct{ path, query, body, key, value string }{
		"deepgram": {
			"/v1/speak", "encoding=linear16&model=m%2F1&sample_rate=24000", `{"text":"hello"}`,
			"Authorization", "Token k",
		},
		"elevenlabs": {
			"/v1/text-to-speech/a%2Fb/stream", "output_format=pcm_24000", `{"model_id":"m/1","text":"hello"}`,
			"xi-api-key", "k",
		},
		"openai": {
			"/v1/audio/speech", "", `{"input":"hello","model":"m/1","response_format":"pcm","voice":"a/b"}`,
			"Authorization", "Bearer k",
		},
		"cartesia": {
			"/tts/bytes", "", `{"model_id":"m/1","output_format":{"container":"raw","encoding":"pcm_s16le","sample_rate":24000},` +
				`"transcript":"hello","voice":{"id":"a/b","mode":"id"}}`,
			"Authorization", "Bearer k",
		},
	} {
		t.Run(provider, func(t *testing.T) {
			s := start(t, map[string]string{"PROVIDER_KEY": "k"})
			c := s.connect(t)
			c.say(strings.Replace(configFor(provider), `"m/1"`, `"m/1","voice_id":"a/b"`, 1))
			c.expect("ready")
			c.speak("hello", "")
			c.reply("tts_playback_complete")
			got := s.providers.got()[0]
			if got.path != want.path || got.query != want.query || got.body != want.body || got.header.Get(want.key) != want.value {
				t.Errorf("got %+v", got)
			}
			s.metric(t, `voice_requests_total{outcome="complete",provider="`+provider+`_tts"} 1`)
		})
	}
}

// TestConnectionsAreUsedAgain counts those that the mock sees.
func TestConnectionsAreUsedAgain(t *testing.T) {
	s := start(t, nil)
	c := s.connect(t)
	opened := map[string]bool{}
	s.providers.speaks(func(w http.ResponseWriter, r *http.Request, n int) {
		opened[r.RemoteAddr] = true
		blocks(w, n, 2, 0)
	})
	c.say(configFor("deepgram"))
	c.expect("ready")
	for range 10 {
		c.speak("hello", "")
		c.reply("tts_playback_complete")
	}
	if len(opened) != 1 {
		t.Errorf("%d connections for 10 requests", len(opened))
	}
}

func TestQueueAndFlush(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 10, 10*time.Millisecond) })
	c := s.ready(t)
	c.speak("one", "")
	c.speak("two", `,"flush":false`)
	c.speak("three", `,"flush":false`)
	for n := 1; n <= 3; n++ {
		audio, end := c.reply("tts_playback_complete")
		if end.Speak != n || !bytes.Equal(audio, wholeReply(n, 10)) {
			t.Errorf("reply %d: %+v, %d bytes", n, end, len(audio))
		}
	}
	// Four plays, five waits; six takes their place.
	c.speak("four", "")
	c.expect("audio")
	c.speak("five", `,"flush":false`)
	c.speak("six", `,"flush":true`)
	audio, end := c.reply("tts_playback_complete")
	if end.Speak != 6 || !bytes.HasSuffix(audio, wholeReply(5, 10)) {
		t.Errorf("got %+v, %d bytes", end, len(audio))
	}
	if got := s.providers.got(); len(got) != 5 || !strings.Contains(got[4].body, "six") {
		t.Errorf("%d requests", len(got))
	}
	s.metric(t, `voice_speaks_total{outcome="dropped"} 2`)
	s.metric(t, `voice_speaks_total{outcome="complete"} 4`)
	s.metric(t, `voice_requests_total{outcome="cancelled",provider="deepgram_tts"} 1`)
}

func TestClearStopsAtOnceAndCancelsUpstream(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 100, 10*time.Millisecond) })
	c := s.ready(t)
	c.speak("one", "")
	c.speak("two", `,"flush":false`)
	c.expect("audio")
	cleared := time.Now()
	c.say(`{"type":"clear"}`)
	// Once the gateway has read the clear it writes nothing of the first; so the answer to what follows is the mark.
	c.say(`{"type":"?"}`)
	c.reply("bad_message")
	if took := time.Since(cleared); took > 100*time.Millisecond {
		t.Errorf("stale audio for up to %v", took)
	}
	eventually(t, "the request is cancelled", func() bool { return s.providers.gaveUp() == 1 })
	if took := s.providers.cancelled[0].Sub(cleared); took > 100*time.Millisecond {
		t.Errorf("cancelled after %v", took)
	}
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 5, 0) })
	c.speak("three", "")
	audio, end := c.reply("tts_playback_complete")
	if end.Speak != 3 || !bytes.Equal(audio, wholeReply(2, 5)) {
		t.Errorf("the next reply: %+v, %d bytes", end, len(audio))
	}
	// STT goes on.
	s.providers.ear(t, 0).say(t, "still here", true, true)
	c.expect("stt_result")
	s.metric(t, `voice_speaks_total{outcome="dropped"} 2`)
}

func TestWhatMustNotBeInterruptedIsNot(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 10, 10*time.Millisecond) })
	c := s.ready(t)
	c.speak("one", `,"allow_interruption":false`)
	c.speak("two", `,"flush":false`)
	c.expect("audio")
	c.say(`{"type":"clear"}`)
	c.speak("three", "")
	audio, end := c.reply("tts_playback_complete")
	if end.Speak != 1 || !bytes.HasSuffix(audio, block(1, 9)) || len(audio) < 960 {
		t.Errorf("got %+v, %d bytes", end, len(audio))
	}
	audio, end = c.reply("tts_playback_complete")
	if end.Speak != 3 || !bytes.Equal(audio, wholeReply(2, 10)) {
		t.Errorf("got %+v, %d bytes", end, len(audio))
	}
	s.metric(t, `voice_speaks_total{outcome="dropped"} 1`)
}

// reset ends a connection with a TCP reset.
func reset(w http.ResponseWriter) {
	raw, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = raw.(*net.TCPConn).SetLinger(0)
		_ = raw.Close()
	}
}

// TestFailuresOfTTS counts the tries and the outcomes. A first reply makes the connection one that is used again.
func TestFailuresOfTTS(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	stall := func(first int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { blocks(w, 9, first, 0); time.Sleep(400 * time.Millisecond) }
	}
	breaks := func(w http.ResponseWriter) { blocks(w, 9, 3, 0); reset(w) }
	good := func(w http.ResponseWriter) { blocks(w, 9, 3, 0) }
	for name, c := range map[string]struct {
		tries []func(http.ResponseWriter)
		end   string
		bytes int
		retry bool
	}{
		"a 500, then good":     {[]func(http.ResponseWriter){status(500), good}, "tts_playback_complete", 3 * 960, false},
		"a reset, then good":   {[]func(http.ResponseWriter){reset, good}, "tts_playback_complete", 3 * 960, false},
		"a 500 twice":          {[]func(http.ResponseWriter){status(500), status(503)}, "tts_failed", 0, true},
		"a reset twice":        {[]func(http.ResponseWriter){reset, reset}, "tts_failed", 0, true},
		"a 400":                {[]func(http.ResponseWriter){status(400)}, "tts_failed", 0, false},
		"a 429":                {[]func(http.ResponseWriter){status(429)}, "tts_rate_limited", 0, true},
		"silence":              {[]func(http.ResponseWriter){stall(0)}, "tts_timeout", 0, true},
		"a stall":              {[]func(http.ResponseWriter){stall(2)}, "tts_timeout", 2 * 960, true},
		"a break in the midst": {[]func(http.ResponseWriter){breaks}, "tts_failed", 3 * 960, true},
		"no audio":             {[]func(http.ResponseWriter){status(200)}, "tts_failed", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, map[string]string{"TTS_FIRST_MS": "200", "TTS_GAP_MS": "150"})
			caller := s.ready(t)
			caller.speak("first", "")
			caller.reply("tts_playback_complete")
			s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) {
				// Tries beyond those that are due find the last.
				c.tries[min(n-2, len(c.tries)-1)](w)
			})
			caller.speak("second", "")
			audio, end := caller.reply(c.end)
			if len(audio) != c.bytes || end.Retryable != nil && *end.Retryable != c.retry {
				t.Errorf("%d bytes, %+v", len(audio), end)
			}
			if got := len(s.providers.got()) - 1; got != len(c.tries) {
				t.Errorf("%d tries, want %d", got, len(c.tries))
			}
			failed, outcome := len(c.tries), "failed"
			if c.end == "tts_playback_complete" {
				failed, outcome = failed-1, "complete"
			}
			s.metric(t, fmt.Sprintf(`voice_requests_total{outcome="failed",provider="deepgram_tts"} %d`, failed))
			s.metric(t, fmt.Sprintf(`voice_speaks_total{outcome=%q} %d`, outcome, map[string]int{"failed": 1, "complete": 2}[outcome]))
			// The session goes on.
			s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 1, 0) })
			caller.speak("third", "")
			if _, end := caller.reply("tts_playback_complete"); end.Speak != 3 {
				t.Errorf("got %+v", end)
			}
		})
	}
}

// TestBothTriesHaveOneTime lets the first fail late and the second be silent.
func TestBothTriesHaveOneTime(t *testing.T) {
	s := start(t, map[string]string{"TTS_FIRST_MS": "400"})
	s.providers.speaks(func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			time.Sleep(300 * time.Millisecond)
			w.WriteHeader(500)
			return
		}
		<-r.Context().Done()
	})
	c := s.ready(t)
	begun := time.Now()
	c.speak("hello", "")
	c.expect("tts_timeout")
	if took := time.Since(begun); took < 390*time.Millisecond || took > 600*time.Millisecond {
		t.Errorf("after %v", took)
	}
	s.metric(t, `voice_requests_total{outcome="failed",provider="deepgram_tts"} 2`)
}

func TestARefusedConnectionIsTriedOnceMore(t *testing.T) {
	s := start(t, nil)
	c := s.ready(t)
	s.providers.server.Close()
	c.speak("hello", "")
	if h := c.expect("tts_failed"); h.Retryable == nil || !*h.Retryable {
		t.Errorf("got %+v", h)
	}
	s.metric(t, `voice_requests_total{outcome="failed",provider="deepgram_tts"} 2`)
	s.metric(t, `voice_speaks_total{outcome="failed"} 1`)
}

func TestASlowReplyIsNoTimeout(t *testing.T) {
	s := start(t, map[string]string{"TTS_FIRST_MS": "100", "TTS_GAP_MS": "100"})
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 8, 60*time.Millisecond) })
	c := s.ready(t)
	c.speak("slowly", "")
	if audio, _ := c.reply("tts_playback_complete"); !bytes.Equal(audio, wholeReply(1, 8)) {
		t.Errorf("%d bytes", len(audio))
	}
}

func TestTooMuchTextMayNotWait(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 100, 10*time.Millisecond) })
	c := s.ready(t)
	long := strings.Repeat("x", 102_400)
	for range 10 {
		c.speak(long, `,"flush":false`)
	}
	c.speak("x", `,"flush":false`)
	c.reply("too_large")
}
