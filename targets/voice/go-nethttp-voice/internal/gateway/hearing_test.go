package gateway

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// spokenAudio is numbered 20 ms frames.
func spokenAudio(from, to int) []byte {
	var audio []byte
	for i := from; i < to; i++ {
		audio = append(audio, bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 320)...)
	}
	return audio
}

func TestALostConnectionComesBackWithTheBuffer(t *testing.T) {
	s := start(t, map[string]string{"AUDIO_BUFFER_MS": "200"})
	c := s.ready(t)
	c.audio(spokenAudio(0, 5))
	first := s.providers.ear(t, 0)
	eventually(t, "audio", func() bool { return len(first.heard()) == 5*640 })
	s.providers.refuse.Store(true)
	_ = first.socket.CloseNow()
	if h := c.expect("stt_lost"); h.Retryable == nil || !*h.Retryable {
		t.Errorf("got %+v", h)
	}
	// 300 ms for a buffer of 200.
	for i := 5; i < 20; i++ {
		c.audio(spokenAudio(i, i+1))
	}
	s.metric(t, `voice_audio_bytes_total{direction="in"} 12800`)
	s.providers.refuse.Store(false)
	if h := c.expect("audio_dropped"); !strings.HasPrefix(h.Message, "100 ms") {
		t.Errorf("got %q", h.Message)
	}
	second := s.providers.ear(t, 1)
	c.audio(spokenAudio(20, 21))
	eventually(t, "the buffer", func() bool { return bytes.Equal(second.heard(), spokenAudio(10, 21)) })
	second.say(t, "again", true, true)
	c.expect("stt_result")
	s.metric(t, `voice_errors_total{kind="stt_lost"} 1`)
	s.metric(t, `voice_errors_total{kind="audio_dropped"} 1`)
}

func TestNothingIsSaidWhereNothingWasDropped(t *testing.T) {
	s := start(t, nil)
	c := s.ready(t)
	_ = s.providers.ear(t, 0).socket.CloseNow()
	c.expect("stt_lost")
	c.audio(spokenAudio(0, 10))
	second := s.providers.ear(t, 1)
	eventually(t, "the buffer", func() bool { return bytes.Equal(second.heard(), spokenAudio(0, 10)) })
	second.say(t, "again", true, true)
	c.expect("stt_result")
}

// TestAProviderThatIsAwayForLongComesBack is away for the five tries and two of those after them.
func TestAProviderThatIsAwayForLongComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"AUDIO_BUFFER_MS": "110"})
	c := s.ready(t)
	first := s.providers.ear(t, 0)
	s.providers.refuse.Store(true)
	begun := time.Now()
	_ = first.socket.CloseNow()
	c.expect("stt_lost")
	// 200 ms for a buffer of 110, which holds five whole frames.
	c.audio(spokenAudio(0, 10))
	if h := c.expect("audio_dropped"); !strings.HasPrefix(h.Message, "100 ms") {
		t.Errorf("got %q", h.Message)
	}
	if h := c.expect("stt_failed"); h.Retryable == nil || *h.Retryable {
		t.Errorf("got %+v", h)
	}
	if took := time.Since(begun); took < 3100*time.Millisecond || took > 4*time.Second {
		t.Errorf("failed after %v", took)
	}
	s.metric(t, `voice_requests_total{outcome="failed",provider="deepgram_stt"} 6`)
	// Replies go on, and the newest audio is kept.
	c.speak("hello", "")
	c.reply("tts_playback_complete")
	c.audio(spokenAudio(10, 13))
	s.metric(t, `voice_requests_total{outcome="failed",provider="deepgram_stt"} 8`)
	if took := time.Since(begun); took < 7100*time.Millisecond || took > 9*time.Second {
		t.Errorf("the second try in quiet after %v", took)
	}
	s.providers.refuse.Store(false)
	// Nothing was said of these tries; told is what was dropped since the last time, and it is told once.
	if h := c.expect("audio_dropped"); !strings.HasPrefix(h.Message, "60 ms") {
		t.Errorf("got %q", h.Message)
	}
	second := s.providers.ear(t, 1)
	c.audio(spokenAudio(13, 14))
	eventually(t, "the buffer", func() bool { return bytes.Equal(second.heard(), spokenAudio(8, 14)) })
	second.say(t, "again", true, true)
	if h := c.expect("stt_result"); h.Transcript != "again" {
		t.Errorf("got %+v", h)
	}
	s.metric(t, `voice_errors_total{kind="stt_lost"} 1`)
	s.metric(t, `voice_errors_total{kind="stt_failed"} 1`)
	// The next loss begins anew.
	begun = time.Now()
	_ = second.socket.CloseNow()
	c.expect("stt_lost")
	third := s.providers.ear(t, 2)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("back after %v", took)
	}
	third.say(t, "once more", true, true)
	c.expect("stt_result")
}

// TestASessionThatEndsWhileTheProviderIsAwayTriesNoMore ends it during the tries in quiet.
func TestASessionThatEndsWhileTheProviderIsAwayTriesNoMore(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.ready(t)
	s.providers.refuse.Store(true)
	_ = s.providers.ear(t, 0).socket.CloseNow()
	c.expect("stt_lost")
	c.expect("stt_failed")
	_ = c.socket.CloseNow()
	s.metric(t, `voice_sessions 0`)
	tries := s.providers.refused.Load()
	time.Sleep(2500 * time.Millisecond)
	if got := s.providers.refused.Load(); tries != 5 || got != tries {
		t.Errorf("%d tries, then %d", tries, got)
	}
	s.metric(t, `voice_requests_total{outcome="cancelled",provider="deepgram_stt"} 0`)
}

// TestALossWithinAFrameDropsItsRest: the next connection begins with a whole frame.
func TestALossWithinAFrameDropsItsRest(t *testing.T) {
	s := start(t, nil)
	c := s.ready(t)
	whole := spokenAudio(0, 4)
	c.audio(whole[:1000])
	first := s.providers.ear(t, 0)
	eventually(t, "audio", func() bool { return len(first.heard()) == 1000 })
	_ = first.socket.CloseNow()
	c.expect("stt_lost")
	c.audio(whole[1000:1500])
	if h := c.expect("audio_dropped"); !strings.HasPrefix(h.Message, "9 ms") {
		t.Errorf("got %q", h.Message)
	}
	second := s.providers.ear(t, 1)
	c.audio(whole[1500:])
	eventually(t, "the buffer", func() bool { return bytes.Equal(second.heard(), whole[2*640:]) })
}

func TestAPingThatIsNotAnsweredIsALoss(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"STT_PONG_MS": "300"})
	c := s.ready(t)
	s.providers.deaf.Store(true)
	c.audio(spokenAudio(0, 1))
	begun := time.Now()
	h, err := c.next(7 * time.Second)
	if err != nil || h.Kind != "stt_lost" {
		t.Fatalf("%+v, %v", h, err)
	}
	if took := time.Since(begun); took < 4*time.Second || took > 6*time.Second {
		t.Errorf("after %v", took)
	}
}

func TestSilenceIsKeptAlive(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.ready(t)
	e := s.providers.ear(t, 0)
	begun := time.Now()
	for {
		e.mu.Lock()
		commands := len(e.commands)
		e.mu.Unlock()
		if commands > 0 {
			break
		}
		if time.Since(begun) > 7*time.Second {
			t.Fatal("never kept alive")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(begun); e.commands[0] != `{"type":"KeepAlive"}` || took < 4500*time.Millisecond {
		t.Errorf("%q after %v", e.commands, took)
	}
}
