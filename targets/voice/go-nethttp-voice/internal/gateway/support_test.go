package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gonethttpvoice/internal/config"
)

// patience is for everything that must come.
const patience = 5 * time.Second

// asked is a request that the mock got.
type asked struct {
	path, query, body string
	header            http.Header
}

// providers are mocks of all providers at one address.
type providers struct {
	server *httptest.Server
	// speak answers a request for a reply; number counts from 1.
	speak atomic.Pointer[func(w http.ResponseWriter, r *http.Request, number int)]
	// refuse makes STT answer 503; refused counts how often.
	refuse  atomic.Bool
	refused atomic.Int64
	// deaf makes STT not read, so not answer pings.
	deaf atomic.Bool

	mu        sync.Mutex
	requests  []asked
	cancelled []time.Time
	ears      []*ear
}

// ear is an STT connection.
type ear struct {
	socket   *websocket.Conn
	header   http.Header
	query    string
	mu       sync.Mutex
	audio    []byte
	commands []string
}

func (e *ear) heard() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Clone(e.audio)
}

// say sends a result.
func (e *ear) say(t *testing.T, transcript string, final, speechFinal bool) {
	t.Helper()
	text := fmt.Sprintf(`{"type":"Results","start":0,"duration":0.1,"is_final":%v,"speech_final":%v,`+
		`"channel":{"alternatives":[{"transcript":%q,"confidence":0.5,"words":[]}]}}`, final, speechFinal, transcript)
	if err := e.socket.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func mockProviders(t *testing.T) *providers {
	t.Helper()
	p := &providers{}
	p.speaks(func(w http.ResponseWriter, _ *http.Request, number int) { blocks(w, number, 5, 0) })
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		for _, e := range p.all() {
			_ = e.socket.CloseNow()
		}
		p.server.Close()
	})
	return p
}

func (p *providers) speaks(how func(w http.ResponseWriter, r *http.Request, number int)) {
	p.speak.Store(&how)
}

func (p *providers) all() []*ear {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*ear{}, p.ears...)
}

// ear waits for STT connection number i, from 0.
func (p *providers) ear(t *testing.T, i int) *ear {
	t.Helper()
	eventually(t, "an STT connection", func() bool { return len(p.all()) > i })
	return p.all()[i]
}

func (p *providers) got() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked{}, p.requests...)
}

func (p *providers) gaveUp() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cancelled)
}

func (p *providers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/listen":
		p.listen(w, r)
	case r.URL.Path == "/v1/voices":
		p.note(r)
		_, _ = io.WriteString(w, `{"voices":[{"voice_id":"v1","name":"Ada","labels":{"language":"en","gender":"female","accent":"none"},"preview_url":"p"}]}`)
	default:
		number := p.note(r)
		(*p.speak.Load())(w, r, number)
		if r.Context().Err() != nil {
			p.mu.Lock()
			p.cancelled = append(p.cancelled, time.Now())
			p.mu.Unlock()
		}
	}
}

func (p *providers) note(r *http.Request) int {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, asked{r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header})
	return len(p.requests)
}

func (p *providers) listen(w http.ResponseWriter, r *http.Request) {
	if p.refuse.Load() {
		p.refused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	socket.SetReadLimit(-1)
	e := &ear{socket: socket, header: r.Header, query: r.URL.RawQuery}
	p.mu.Lock()
	p.ears = append(p.ears, e)
	p.mu.Unlock()
	for !p.deaf.Load() {
		kind, text, err := socket.Read(context.Background())
		if err != nil {
			return
		}
		e.mu.Lock()
		if kind == websocket.MessageBinary {
			e.audio = append(e.audio, text...)
		} else {
			e.commands = append(e.commands, string(text))
		}
		e.mu.Unlock()
		if strings.Contains(string(text), "CloseStream") {
			_ = socket.Close(websocket.StatusNormalClosure, "")
			return
		}
	}
}

// block is one of a reply; no two are equal.
func block(number, i int) []byte {
	b := bytes.Repeat([]byte{byte(number), byte(i)}, 480)
	copy(b, fmt.Sprintf("request %d block %d.", number, i))
	return b
}

// wholeReply is what blocks sends.
func wholeReply(number, count int) []byte {
	var all []byte
	for i := range count {
		all = append(all, block(number, i)...)
	}
	return all
}

// blocks answers with audio, until the client is gone.
func blocks(w http.ResponseWriter, number, count int, pause time.Duration) {
	w.Header().Set("x-mock-provider-ms", "12.5")
	for i := range count {
		if _, err := w.Write(block(number, i)); err != nil {
			return
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		time.Sleep(pause)
	}
}

// site is a gateway that listens.
type site struct {
	*Gateway
	address   string
	providers *providers
}

func start(t *testing.T, variables map[string]string) *site {
	t.Helper()
	p := mockProviders(t)
	settings, err := config.Load(func(name string) (string, bool) {
		if value, ok := variables[name]; ok {
			return value, true
		}
		return p.server.URL, name == "PROVIDER_URLS"
	})
	if err != nil {
		t.Fatal(err)
	}
	g := New(settings)
	listener := httptest.NewServer(g)
	t.Cleanup(listener.Close)
	return &site{g, listener.Listener.Addr().String(), p}
}

// client is a caller.
type client struct {
	t      *testing.T
	socket *websocket.Conn
	// raw is the socket below, to send what no library would.
	raw net.Conn
}

func (s *site) dial(t *testing.T, dialer *net.Dialer, header http.Header) (*client, *http.Response) {
	t.Helper()
	c := &client{t: t}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dialer.DialContext(ctx, network, address)
		c.raw = raw
		return raw, err
	}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	socket, response, err := websocket.Dial(ctx, "ws://"+s.address+"/ws", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header,
	})
	if err != nil {
		if response == nil {
			t.Fatal(err)
		}
		return nil, response
	}
	socket.SetReadLimit(-1)
	c.socket = socket
	t.Cleanup(func() { _ = socket.CloseNow() })
	return c, response
}

func (s *site) connect(t *testing.T) *client {
	t.Helper()
	c, response := s.dial(t, &net.Dialer{}, nil)
	if c == nil {
		t.Fatalf("refused: %d", response.StatusCode)
	}
	return c
}

const (
	goodSTT = `{"provider":"deepgram","language":"en-US","sample_rate":16000,"channels":1,"punctuation":true,"encoding":"linear16","model":"nova-3"}`
	goodTTS = `{"provider":"deepgram","model":"aura-2"}`
)

func configFor(provider string) string {
	return `{"type":"config","stream_id":"s","stt_config":` + goodSTT + `,"tts_config":{"provider":"` + provider + `","model":"m/1"}}`
}

// ready is a client whose session is open.
func (s *site) ready(t *testing.T) *client {
	t.Helper()
	c := s.connect(t)
	c.say(configFor("deepgram"))
	c.expect("ready")
	return c
}

func (c *client) say(text string) {
	c.t.Helper()
	if err := c.socket.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) speak(text, more string) {
	c.t.Helper()
	c.say(`{"type":"speak","text":"` + text + `"` + more + `}`)
}

func (c *client) audio(bytes []byte) {
	c.t.Helper()
	if err := c.socket.Write(context.Background(), websocket.MessageBinary, bytes); err != nil {
		c.t.Fatal(err)
	}
}

// heard is a message of the gateway.
type heard struct {
	Type            string
	Kind            string
	Message         string
	Retryable       *bool
	StreamID        string `json:"stream_id"`
	ProtocolVersion string `json:"protocol_version"`
	Transcript      string
	IsFinal         bool    `json:"is_final"`
	IsSpeechFinal   bool    `json:"is_speech_final"`
	Confidence      float64 `json:"confidence"`
	Speak           int
	Timestamp       int64
	ProviderMS      *float64 `json:"provider_ms"`
	DroppedBytes    *int64   `json:"dropped_bytes"`
	audio           []byte
}

// next reads one message.
func (c *client) next(limit time.Duration) (*heard, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	kind, text, err := c.socket.Read(ctx)
	if err != nil {
		return nil, err
	}
	h := &heard{Type: "audio", audio: text}
	if kind == websocket.MessageText {
		if err := json.Unmarshal(text, h); err != nil {
			c.t.Fatalf("not JSON: %q", text)
		}
	}
	return h, nil
}

// expect wants a message of this type, or an error of this kind, next.
func (c *client) expect(what string) *heard {
	c.t.Helper()
	h, err := c.next(patience)
	if err != nil {
		c.t.Fatalf("%v instead of %s", err, what)
	}
	if h.Type != what && (h.Type != "error" || h.Kind != what) {
		c.t.Fatalf("%s %s %q instead of %s", h.Type, h.Kind, h.Message, what)
	}
	return h
}

// reply collects audio up to the message of this type or kind, which it returns.
func (c *client) reply(end string) ([]byte, *heard) {
	c.t.Helper()
	var audio []byte
	for {
		h, err := c.next(patience)
		if err != nil {
			c.t.Fatalf("%v instead of %s", err, end)
		}
		if h.Type != "audio" {
			if h.Type != end && h.Kind != end {
				c.t.Fatalf("%+v instead of %s", h, end)
			}
			return audio, h
		}
		audio = append(audio, h.audio...)
	}
}

// expectClose passes over messages and wants this close code.
func (c *client) expectClose(code websocket.StatusCode, limit time.Duration) {
	c.t.Helper()
	for begun := time.Now(); ; {
		_, err := c.next(limit - time.Since(begun))
		if err == nil {
			continue
		}
		if got := websocket.CloseStatus(err); got != code {
			c.t.Fatalf("close %d (%v), want %d", got, err, code)
		}
		return
	}
}

func get(t *testing.T, address, path string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response, string(body)
}

// metric waits for a line of GET /metrics.
func (s *site) metric(t *testing.T, line string) {
	t.Helper()
	var text string
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(10 * time.Millisecond) {
		if _, text = get(t, s.address, "/metrics"); strings.Contains("\n"+text, "\n"+line+"\n") {
			return
		}
	}
	name, _, _ := strings.Cut(line, "{")
	for other := range strings.Lines(text) {
		if strings.HasPrefix(other, name) {
			t.Log(strings.TrimSpace(other))
		}
	}
	t.Fatalf("no metric %s", line)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatal("never: " + what)
}
