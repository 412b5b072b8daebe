package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"gonethttp/common/admission"
	"gonethttp/common/wire"

	"gonethttpvoice/internal/chunk"
	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
	"gonethttpvoice/internal/tts"
)

const (
	// speakBodyBytesMax takes the longest text with every byte of it escaped.
	speakBodyBytesMax = 1 << 20
	// takesNothing is how long a socket may take nothing before it is closed, and how long a body may take to come.
	takesNothing = 10 * time.Second
	// sendBufferBytes is the kernel's share of what waits for a caller, some 700 ms of a reply. Left to itself the
	// kernel takes megabytes from us that a slow caller hears after its `clear`.
	sendBufferBytes = 32 << 10
)

// ServeHTTP is the contract's section 2. A plain switch, for http.ServeMux would redirect some of what must be 404.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, answer := http.MethodGet, g.root
	switch r.URL.Path {
	case "/":
	case "/voices":
		answer = g.listVoices
	case "/speak":
		method, answer = http.MethodPost, g.speak
	case "/ws":
		answer = g.openSession
	case "/metrics":
		answer = g.handler.ServeHTTP
	default:
		refuse(w, http.StatusNotFound, "not_found", "there is nothing here")
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "use "+method)
		return
	}
	answer(w, r)
}

func (g *Gateway) root(w http.ResponseWriter, _ *http.Request) {
	if g.door.Draining() {
		reply(w, http.StatusServiceUnavailable, map[string]string{"status": "DRAINING"})
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "OK"})
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		// Strings in maps.
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func refuse(w http.ResponseWriter, status int, cause, text string) {
	reply(w, status, map[string]string{"error": text, "cause": cause})
}

// denied are the answers of section 2 to those who are not let in.
var denied = map[admission.Cause]struct {
	status int
	text   string
}{
	admission.Capacity:   {http.StatusServiceUnavailable, "there are as many sessions as there may be"},
	admission.Draining:   {http.StatusServiceUnavailable, "the gateway shuts down"},
	admission.PerAddress: {http.StatusTooManyRequests, "this address has as many sessions as it may have"},
	admission.Rate:       {http.StatusTooManyRequests, "this address asks too often"},
	admission.Auth:       {http.StatusUnauthorized, "a bearer token is needed"},
}

func deny(w http.ResponseWriter, cause admission.Cause) {
	answer := denied[cause]
	if cause == admission.Auth {
		w.Header().Set("WWW-Authenticate", "Bearer")
	} else {
		w.Header().Set("Retry-After", "1")
	}
	refuse(w, answer.status, string(cause), answer.text)
}

// openSession decides who is let in while it is still HTTP, then upgrades and hands the socket to a session.
func (g *Gateway) openSession(w http.ResponseWriter, r *http.Request) {
	if !admission.WantsUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Version", "13")
		refuse(w, http.StatusUpgradeRequired, "upgrade_required", "this is a WebSocket")
		return
	}
	address := addressOf(r)
	cause := admission.Auth
	if admission.Authorized(r, g.config.AuthToken) {
		cause = g.door.Enter(address)
	}
	if cause != admission.Admitted {
		g.metrics.Refused(cause)
		deny(w, cause)
		return
	}
	s := newSession(g, address)
	socket, conn, err := wire.Accept(w, r, &wire.Options{
		Epoch:           g.door.Epoch(),
		Waker:           s,
		TextBytesMax:    textBytesMax,
		BinaryBytesMax:  binaryBytesMax,
		TooLarge:        errTooLarge,
		SendBufferBytes: sendBufferBytes,
		OnClosed:        g.door.SocketClosed,
	})
	if err != nil {
		// Not a handshake after all, or a client that left between its request and our answer.
		g.door.Leave(address, s)
		return
	}
	// What is too long, the Conn refuses from its header.
	socket.SetReadLimit(-1)
	g.metrics.Sessions.Inc()
	s.socket, s.conn = socket, conn
	g.door.Upgraded(s)
	// In a goroutine of its own, so that net/http's can end and with it the request, its headers and its stack.
	go s.serve()
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// speak is POST /speak.
func (g *Gateway) speak(w http.ResponseWriter, r *http.Request) {
	if !admission.Authorized(r, g.config.AuthToken) {
		deny(w, admission.Auth)
		return
	}
	if !g.door.Hold() {
		deny(w, admission.Draining)
		return
	}
	defer g.door.SocketClosed()
	request := readSpeak(w, r)
	if request == nil {
		return
	}
	buffer := chunk.Get()
	defer chunk.Put(buffer)
	buffer = buffer[:chunk.Bytes]
	stream, n, err := g.tts.Open(r.Context(), g.provider(), &request.TTS, request.Text, buffer)
	if err != nil {
		g.metrics.Speaks[outcomeOf(err)].Inc()
		refuseSpeak(w, err)
		return
	}
	defer stream.Close()
	header := w.Header()
	header.Set("Content-Type", "audio/pcm")
	header.Set("X-Audio-Format", message.Encoding)
	header.Set("X-Sample-Rate", strconv.Itoa(message.ReplyRate))
	header.Set("X-Provider-Ms", strconv.FormatFloat(stream.ProviderTime().Seconds()*1e3, 'f', 3, 64))
	err = g.pass(w, stream, buffer, n)
	g.metrics.Speaks[outcomeOf(err)].Inc()
	if err != nil {
		// The connection closes without the body's end.
		panic(http.ErrAbortHandler)
	}
}

// readSpeak reads the request, or answers it and returns nil.
func readSpeak(w http.ResponseWriter, r *http.Request) *message.SpeakRequest {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(takesNothing))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, speakBodyBytesMax))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, string(message.LargeText), "the body is too long")
		return nil
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, string(message.BadJSON), "the body did not come whole")
		return nil
	}
	// Otherwise net/http would take the deadline for the end of the client.
	_ = control.SetReadDeadline(time.Time{})
	request, fault, text := message.ParseRequest(body)
	switch {
	case fault == message.LargeText:
		refuse(w, http.StatusRequestEntityTooLarge, string(fault), text)
	case request == nil:
		refuse(w, http.StatusBadRequest, string(fault), text)
	}
	return request
}

// outcomeOf is how a reply ended; that of a client which is gone was dropped.
func outcomeOf(err error) metrics.Outcome {
	var failure *message.Failure
	switch {
	case err == nil:
		return metrics.Complete
	case errors.As(err, &failure):
		return metrics.Failed
	}
	return metrics.Dropped
}

// refuseSpeak answers for a provider that did not speak.
func refuseSpeak(w http.ResponseWriter, err error) {
	var failure *message.Failure
	switch {
	case err == tts.ErrCancelled:
		// The client is gone.
	case errors.As(err, &failure) && failure.Kind == message.TTSTimeout:
		refuse(w, http.StatusGatewayTimeout, "provider_timeout", failure.Message)
	default:
		refuse(w, http.StatusBadGateway, "provider_failed", err.Error())
	}
}

// pass writes audio as it arrives. Its error is a [message.Failure] of the provider, or one of the client.
func (g *Gateway) pass(w http.ResponseWriter, stream *tts.Stream, buffer []byte, n int) error {
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(takesNothing))
		if _, err := w.Write(buffer[:n]); err != nil {
			return err
		}
		if err := control.Flush(); err != nil {
			return err
		}
		g.metrics.AudioOut.Add(float64(n))
		var err error
		if n, err = stream.Read(buffer); err != nil {
			// Lets the next request on this connection have its own time.
			_ = control.SetWriteDeadline(time.Time{})
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}
