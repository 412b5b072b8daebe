package gateway

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestReadySaysWhatTheContractWants(t *testing.T) {
	s := start(t, map[string]string{"PROVIDER_KEY": "secret"})
	c := s.connect(t)
	c.say(configFor("deepgram"))
	h := c.expect("ready")
	if h.StreamID != "s" || h.ProtocolVersion != "1.0" {
		t.Errorf("got %+v", h)
	}
	e := s.providers.ear(t, 0)
	if e.header.Get("Authorization") != "Token secret" {
		t.Errorf("got %v", e.header)
	}
	for _, part := range []string{
		"encoding=linear16", "sample_rate=16000", "channels=1", "interim_results=true", "model=nova-3", "language=en-US",
		"punctuate=true",
	} {
		if !strings.Contains("&"+e.query+"&", "&"+part+"&") {
			t.Errorf("no %s in %s", part, e.query)
		}
	}
	c = s.connect(t)
	c.say(`{"type":"config","audio":false}`)
	id := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if h := c.expect("ready"); !id.MatchString(h.StreamID) {
		t.Errorf("%q is no UUID", h.StreamID)
	}
	s.metric(t, `voice_sessions 2`)
	s.metric(t, `voice_sessions_total 2`)
}

// TestEachByteOfACallerArrivesOnce sends audio in messages of many sizes.
func TestEachByteOfACallerArrivesOnce(t *testing.T) {
	s := start(t, nil)
	c := s.ready(t)
	var sent []byte
	for i, size := range []int{2, 640, 3200, 64 << 10, 2, 4864, 4866, 100_000, 640, 2} {
		piece := bytes.Repeat([]byte{byte(i), byte(size)}, size/2)
		sent = append(sent, piece...)
		c.audio(piece)
	}
	e := s.providers.ear(t, 0)
	eventually(t, "all audio", func() bool { return len(e.heard()) >= len(sent) })
	if !bytes.Equal(e.heard(), sent) {
		t.Error("other audio arrived")
	}
	s.metric(t, `voice_audio_bytes_total{direction="in"} 179752`)
	// In fragments.
	w, err := c.socket.Writer(context.Background(), websocket.MessageBinary)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = w.Write([]byte("abc"))
	}
	_, _ = w.Write([]byte("d"))
	_ = w.Close()
	eventually(t, "the fragments", func() bool { return bytes.HasSuffix(e.heard(), []byte("abcabcabcd")) })
	_ = c.socket.Close(websocket.StatusNormalClosure, "")
	eventually(t, "CloseStream", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.commands) == 1 && e.commands[0] == `{"type":"CloseStream"}`
	})
	s.metric(t, `voice_requests_total{outcome="complete",provider="deepgram_stt"} 1`)
	s.metric(t, `voice_sessions 0`)
}

func TestResultsArePassedOn(t *testing.T) {
	s := start(t, nil)
	c := s.ready(t)
	c.audio(make([]byte, 3200))
	e := s.providers.ear(t, 0)
	eventually(t, "audio", func() bool { return len(e.heard()) == 3200 })
	e.say(t, `a "b" <c>`, false, false)
	h := c.expect("stt_result")
	if h.Transcript != `a "b" <c>` || h.IsFinal || h.IsSpeechFinal || h.Confidence != 0.5 || h.ProviderMS == nil || *h.ProviderMS < 0 {
		t.Errorf("got %+v", h)
	}
	e.say(t, "d", true, true)
	if h := c.expect("stt_result"); !h.IsFinal || !h.IsSpeechFinal {
		t.Errorf("got %+v", h)
	}
	s.metric(t, `voice_results_total{final="false"} 1`)
	s.metric(t, `voice_results_total{final="true"} 1`)
}

func TestASpeechFinalIsMadeUp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.ready(t)
	begun := time.Now()
	s.providers.ear(t, 0).say(t, "final", true, false)
	c.expect("stt_result")
	ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
	defer cancel()
	_, text, err := c.socket.Read(ctx)
	took := time.Since(begun)
	if err != nil || took < 4900*time.Millisecond || took > 5500*time.Millisecond {
		t.Fatalf("%v after %v", err, took)
	}
	if !strings.Contains(string(text), `"transcript":"","is_final":true,"is_speech_final":true,"confidence":0`) {
		t.Errorf("got %s", text)
	}
}

func TestARefusedConfigCanBeGivenAgain(t *testing.T) {
	s := start(t, nil)
	s.providers.refuse.Store(true)
	c := s.connect(t)
	c.say(configFor("deepgram"))
	c.expect("stt_failed")
	s.providers.refuse.Store(false)
	c.say(configFor("oracle"))
	c.expect("unsupported")
	c.say(configFor("openai"))
	c.expect("ready")
	s.metric(t, `voice_errors_total{kind="stt_failed"} 1`)
	s.metric(t, `voice_requests_total{outcome="failed",provider="deepgram_stt"} 1`)
}

func TestAProviderThatDoesNotOpenInTime(t *testing.T) {
	s := start(t, map[string]string{"READY_MS": "200"})
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.providers.server.Config.Handler = silent
	c := s.connect(t)
	begun := time.Now()
	c.say(configFor("deepgram"))
	c.expect("stt_failed")
	if took := time.Since(begun); took < 150*time.Millisecond || took > time.Second {
		t.Errorf("after %v", took)
	}
}

func TestViolationsHaveTheirCodes(t *testing.T) {
	s := start(t, nil)
	for name, c := range map[string]struct {
		bytes []byte
		code  websocket.StatusCode
	}{
		"unmasked":       {[]byte{0x82, 2, 0, 0}, 1002},
		"reserved bit":   {[]byte{0xC2, 0x80, 1, 2, 3, 4}, 1002},
		"unknown opcode": {[]byte{0x83, 0x80, 1, 2, 3, 4}, 1002},
		"orphaned":       {[]byte{0x80, 0x80, 1, 2, 3, 4}, 1002},
		"not UTF-8":      {[]byte{0x81, 0x82, 0, 0, 0, 0, 0xC3, 0x28}, 1007},
	} {
		t.Run(name, func(t *testing.T) {
			client := s.ready(t)
			if _, err := client.raw.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			client.expectClose(c.code, time.Second)
		})
	}
}

func TestPingsAreAnsweredWhileAReplyPlays(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 30, 20*time.Millisecond) })
	c := s.ready(t)
	c.speak("hello", "")
	c.expect("audio")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- c.socket.Ping(ctx) }()
	c.reply("tts_playback_complete")
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
