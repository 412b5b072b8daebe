package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHTTPSurface(t *testing.T) {
	s := start(t, nil)
	for path, want := range map[string]int{
		"/": 200, "/metrics": 200, "/voices": 200, "/ws": 426, "/speak": 405, "/ws/": 404, "//": 404, "/health": 404,
	} {
		if got, body := get(t, s.address, path); got.StatusCode != want {
			t.Errorf("GET %s: %d %s", path, got.StatusCode, body)
		}
	}
	for _, path := range []string{"/", "/voices", "/ws", "/metrics"} {
		response, err := http.Post("http://"+s.address+path, "text/plain", nil)
		if err != nil || response.StatusCode != 405 {
			t.Errorf("POST %s: %v %v", path, response, err)
		}
	}
	if _, body := get(t, s.address, "/"); body != `{"status":"OK"}` {
		t.Errorf("got %s", body)
	}
}

func TestVoicesAreKept(t *testing.T) {
	s := start(t, nil)
	want := `{"cartesia":[],"deepgram":[],"elevenlabs":[{"id":"v1","name":"Ada","language":"en","gender":"female","accent":"none","sample":"p"}],"openai":[]}`
	for range 3 {
		if response, body := get(t, s.address, "/voices"); body != want || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s", body)
		}
	}
	if got := len(s.providers.got()); got != 1 {
		t.Errorf("%d requests", got)
	}
}

func TestVoicesOfAProviderThatIsOut(t *testing.T) {
	s := start(t, nil)
	s.providers.server.Close()
	if response, body := get(t, s.address, "/voices"); response.StatusCode != 502 || !strings.Contains(body, `"cause":"provider_failed"`) {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func (s *site) post(t *testing.T, body string) (*http.Response, []byte, error) {
	t.Helper()
	response, err := http.Post("http://"+s.address+"/speak", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return response, got, err
}

const goodSpeak = `{"text":"hello","tts_config":` + goodTTS + `}`

func TestSpeak(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 20, 10*time.Millisecond) })
	response, err := http.Post("http://"+s.address+"/speak", "application/json", strings.NewReader(goodSpeak))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for name, want := range map[string]string{
		"Content-Type": "audio/pcm", "X-Audio-Format": "linear16", "X-Sample-Rate": "24000", "X-Provider-Ms": "12.500",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	begun := time.Now()
	first := make([]byte, 960)
	if _, err := io.ReadFull(response.Body, first); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(response.Body)
	if took := time.Since(begun); err != nil || took < 100*time.Millisecond {
		t.Errorf("%v; the rest came within %v of the first block", err, took)
	}
	if !bytes.Equal(append(first, rest...), wholeReply(1, 20)) {
		t.Error("other audio")
	}
	s.metric(t, `voice_speaks_total{outcome="complete"} 1`)
	s.metric(t, `voice_audio_bytes_total{direction="out"} 19200`)
}

func TestBadSpeaks(t *testing.T) {
	s := start(t, nil)
	long := strings.Repeat("x", 102_401)
	for body, want := range map[string]struct {
		status int
		cause  string
	}{
		`x`:                              {400, "bad_json"},
		`[]`:                             {400, "bad_json"},
		`{"tts_config":` + goodTTS + `}`: {400, "bad_field"},
		`{"text":7,"tts_config":{}}`:     {400, "bad_field"},
		`{"text":"a"}`:                   {400, "bad_field"},
		`{"text":"a","tts_config":{"provider":"oracle","model":"m"}}`: {400, "bad_field"},
		`{"text":"","tts_config":` + goodTTS + `}`:                    {400, "empty_text"},
		`{"text":"` + long + `","tts_config":` + goodTTS + `}`:        {413, "too_large"},
		strings.Repeat(long, 11):                                      {413, "too_large"},
		`{"text":"` + long[1:] + `","tts_config":` + goodTTS + `}`:    {200, ""},
	} {
		response, got, err := s.post(t, body)
		if err != nil || response.StatusCode != want.status || !strings.Contains(string(got), `"cause":"`+want.cause) && want.status != 200 {
			t.Errorf("%.40s: %d %.80s %v", body, response.StatusCode, got, err)
		}
	}
	// Refused ones are none.
	s.metric(t, `voice_speaks_total{outcome="complete"} 1`)
	s.metric(t, `voice_speaks_total{outcome="failed"} 0`)
	s.metric(t, `voice_speaks_total{outcome="dropped"} 0`)
}

func TestSpeakWhenTheProviderIsNotWell(t *testing.T) {
	s := start(t, map[string]string{"TTS_FIRST_MS": "100"})
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500) })
	if response, body, _ := s.post(t, goodSpeak); response.StatusCode != 502 || !strings.Contains(string(body), "provider_failed") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	s.providers.speaks(func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	if response, body, _ := s.post(t, goodSpeak); response.StatusCode != 504 || !strings.Contains(string(body), "provider_timeout") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 3, 0); reset(w) })
	if response, body, err := s.post(t, goodSpeak); response.StatusCode != 200 || err != io.ErrUnexpectedEOF || len(body) != 3*960 {
		t.Errorf("%d, %d bytes, %v", response.StatusCode, len(body), err)
	}
	s.metric(t, `voice_speaks_total{outcome="failed"} 3`)
	s.metric(t, `voice_audio_bytes_total{direction="out"} 2880`)
}

func TestSpeakNeedsTheToken(t *testing.T) {
	s := start(t, map[string]string{"AUTH_TOKEN": "secret"})
	if response, body, _ := s.post(t, goodSpeak); response.StatusCode != 401 || !strings.Contains(string(body), `"cause":"auth"`) {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestSpeakIsCancelledWithItsClient(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 200, 10*time.Millisecond) })
	response, err := http.Post("http://"+s.address+"/speak", "application/json", strings.NewReader(goodSpeak))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	eventually(t, "the request is cancelled", func() bool { return s.providers.gaveUp() == 1 })
	s.metric(t, `voice_requests_total{outcome="cancelled",provider="deepgram_tts"} 1`)
	s.metric(t, `voice_speaks_total{outcome="dropped"} 1`)
}

// TestSpeakDuringADrain finishes the one under way and refuses the next.
func TestSpeakDuringADrain(t *testing.T) {
	s := start(t, nil)
	s.providers.speaks(func(w http.ResponseWriter, _ *http.Request, n int) { blocks(w, n, 30, 10*time.Millisecond) })
	underWay, err := http.Post("http://"+s.address+"/speak", "application/json", strings.NewReader(goodSpeak))
	if err != nil {
		t.Fatal(err)
	}
	defer underWay.Body.Close()
	go s.drain(4 * time.Second)
	eventually(t, "it drains", s.door.Draining)
	response, body, _ := s.post(t, goodSpeak)
	if response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || !strings.Contains(string(body), `"cause":"draining"`) {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	if audio, err := io.ReadAll(underWay.Body); err != nil || !bytes.Equal(audio, wholeReply(1, 30)) {
		t.Errorf("%d bytes, %v", len(audio), err)
	}
}
