package inference

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonethttpplain/internal/message"
)

const goodAnswer = `{"rms":0,"zero_crossings":7,"checksum":1,"samples":1280,"transcript":"now","audio_bytes":640}`

// serve starts a server that speaks HTTP/2 without encryption and nothing else.
func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *url.URL) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return server, base
}

func TestRequest(t *testing.T) {
	_, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		pcm, _ := io.ReadAll(r.Body)
		h := r.Header
		seen := fmt.Sprintf("%s %s %s %s %s %d", r.Method, r.URL.Path, r.Proto, h.Get("content-type"), h.Get("x-cpu-passes"), len(pcm))
		if want := "POST /base/infer HTTP/2.0 application/octet-stream 7 32000"; seen != want {
			t.Errorf("got %s, want %s", seen, want)
		}
		fmt.Fprint(w, goodAnswer)
	})
	base.Path = "/base/"
	answer, failure := New(base, 1, time.Second, 7).Infer(t.Context(), make([]byte, 32000))
	if failure != nil || answer.Transcript != "now" || answer.Samples != 1280 {
		t.Errorf("got %+v, %+v", answer, failure)
	}
}

func TestFailures(t *testing.T) {
	var next atomic.Pointer[http.HandlerFunc]
	_, base := serve(t, func(w http.ResponseWriter, r *http.Request) { (*next.Load())(w, r) })
	client := New(base, 1, 300*time.Millisecond, 4)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    message.Kind
		status  int
	}{
		"429": {status(429), message.TooManyRequests, 429},
		"503": {status(503), message.ServerError, 503},
		"404": {status(404), message.ClientError, 404},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/infer", http.StatusTemporaryRedirect)
		}, message.ParseError, 307},
		"garbage":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "busy") }, message.ParseError, 200},
		"too long": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100_000)) }, message.ParseError, 200},
		"reset":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, message.ConnectionReset, 0},
		"never":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, message.Timeout, 0},
		"half an answer": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, goodAnswer[:20])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, message.Timeout, 0},
	} {
		t.Run(name, func(t *testing.T) {
			next.Store(&c.handler)
			answer, failure := client.Infer(t.Context(), make([]byte, 640))
			if failure == nil || failure.Kind != c.kind || failure.Status != c.status || failure.Message == "" {
				t.Fatalf("got %+v, %+v", answer, failure)
			}
			good := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, goodAnswer) })
			next.Store(&good)
			if _, failure := client.Infer(t.Context(), make([]byte, 640)); failure != nil {
				t.Errorf("and then %+v", failure)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	base, _ := url.Parse("http://127.0.0.1:1")
	_, failure := New(base, 1, time.Second, 4).Infer(t.Context(), make([]byte, 640))
	if failure == nil || failure.Kind != message.ConnectionReset {
		t.Errorf("got %+v", failure)
	}
}

// TestConnections: a burst opens as many connections as configured, and a lost one is made anew.
func TestConnections(t *testing.T) {
	var peers sync.Map
	server, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		peers.Store(r.RemoteAddr, true)
		time.Sleep(20 * time.Millisecond)
		fmt.Fprint(w, goodAnswer)
	})
	client := New(base, 2, 10*time.Second, 4)
	burst := func() {
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, failure := client.Infer(t.Context(), make([]byte, 640)); failure != nil {
					t.Errorf("got %+v", failure)
				}
			})
		}
		group.Wait()
	}
	count := func() (n int) {
		peers.Range(func(any, any) bool { n++; return true })
		return n
	}
	burst()
	if count() != 2 {
		t.Errorf("%d connections", count())
	}
	server.CloseClientConnections()
	time.Sleep(20 * time.Millisecond)
	burst()
	if count() != 4 {
		t.Errorf("%d connections after both were lost", count())
	}
}
