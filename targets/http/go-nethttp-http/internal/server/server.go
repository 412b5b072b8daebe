// Package server answers requests and counts them.
package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"gohttp/internal/config"
)

const (
	// bytesMax is the most that /bytes/N answers with.
	bytesMax = 1 << 20
	// itemMax is the last whole number that every JSON library reads exactly.
	itemMax = 1<<53 - 1
	// pieceBytes is how much of a body is read at once.
	pieceBytes = 32 << 10
)

// Server is one per process.
type Server struct {
	mux          *http.ServeMux
	bodyBytesMax int64
	// pattern is what /bytes/N answers the beginning of.
	pattern []byte
	// pieces are buffers for bodies.
	pieces sync.Pool

	requests            atomic.Uint64
	connectionsAccepted atomic.Uint64
	connectionsOpen     atomic.Int64
}

// item is what /json/K answers with.
type item struct {
	ID   uint64 `json:"id"`
	Name string `json:"name"`
	Even bool   `json:"even"`
}

// New makes the server.
func New(settings *config.Config) *Server {
	s := &Server{
		mux:          http.NewServeMux(),
		bodyBytesMax: int64(settings.BodyBytesMax),
		pattern:      bytes.Repeat([]byte("0123456789abcdef"), bytesMax/16),
		pieces:       sync.Pool{New: func() any { return new([pieceBytes]byte) }},
	}
	// A pattern for GET takes HEAD, too.
	s.mux.HandleFunc("GET /{$}", ok)
	s.mux.HandleFunc("GET /healthz", ok)
	s.mux.HandleFunc("GET /metrics", s.metrics)
	s.mux.HandleFunc("GET /bytes/{count}", s.bytes)
	s.mux.HandleFunc("GET /json/{number}", number)
	s.mux.HandleFunc("POST /sum", s.sum)
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.mux.ServeHTTP(w, r)
}

// ConnState counts connections; it is http.Server's.
func (s *Server) ConnState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.connectionsAccepted.Add(1)
		s.connectionsOpen.Add(1)
	case http.StateClosed:
		s.connectionsOpen.Add(-1)
	}
}

// answer sends a whole body. Its length is set here because net/http would send a long body in chunks.
func answer(w http.ResponseWriter, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	// A client that is gone is no concern of the answer.
	_, _ = w.Write(body)
}

func ok(w http.ResponseWriter, _ *http.Request) {
	answer(w, "text/plain; charset=utf-8", []byte("ok"))
}

func (s *Server) bytes(w http.ResponseWriter, r *http.Request) {
	count, found := whole(r.PathValue("count"), bytesMax)
	if !found || count == 0 {
		http.NotFound(w, r)
		return
	}
	answer(w, "application/octet-stream", s.pattern[:count])
}

func number(w http.ResponseWriter, r *http.Request) {
	id, found := whole(r.PathValue("number"), itemMax)
	if !found {
		http.NotFound(w, r)
		return
	}
	text, err := json.Marshal(item{ID: id, Name: "item " + strconv.FormatUint(id, 10), Even: id%2 == 0})
	if err != nil {
		panic(err)
	}
	answer(w, "application/json", text)
}

// whole reads a number of digits alone, without leading zeros.
func whole(digits string, most uint64) (uint64, bool) {
	value, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || value > most || (digits[0] == '0' && len(digits) > 1) {
		return 0, false
	}
	return value, true
}

// sum keeps nothing of the body.
func (s *Server) sum(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > s.bodyBytesMax {
		// Not worth waiting for.
		endConnection(w, r)
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		return
	}
	piece := s.pieces.Get().(*[pieceBytes]byte)
	defer s.pieces.Put(piece)
	hash := crc32.NewIEEE()
	// The struct hides the hash's other methods, by which CopyBuffer would do without the buffer.
	length, err := io.CopyBuffer(struct{ io.Writer }{hash}, http.MaxBytesReader(w, r.Body, s.bodyBytesMax), piece[:])
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
	case err != nil:
		// Cut off, or not in chunks as it should be: what follows cannot be told from it.
		endConnection(w, r)
		http.Error(w, "bad body", http.StatusBadRequest)
	default:
		answer(w, "text/plain; charset=utf-8", fmt.Appendf(nil, "%08x %d", hash.Sum32(), length))
	}
}

// endConnection makes the answer the last one of its connection. In HTTP/2 a broken request ends only its own stream.
func endConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// metrics answers with the Prometheus text format.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var text []byte
	row := func(name, kind string, value any) {
		text = fmt.Appendf(text, "# TYPE %s %s\n%s %d\n", name, kind, name, value)
	}
	row("http_requests_total", "counter", s.requests.Load())
	row("http_connections_accepted_total", "counter", s.connectionsAccepted.Load())
	row("http_connections_open", "gauge", s.connectionsOpen.Load())
	answer(w, "text/plain; version=0.0.4; charset=utf-8", text)
}
