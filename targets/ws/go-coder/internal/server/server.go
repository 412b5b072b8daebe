// Package server is the HTTP surface, the WebSockets behind it, and their end.
package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"gocoder/internal/config"
	"gocoder/internal/hub"
	"gocoder/internal/metrics"
	"gocoder/internal/wire"
)

// Server is one per process.
type Server struct {
	config  *config.Config
	metrics metrics.Metrics
	hub     *hub.Hub

	mu          sync.Mutex
	connections map[*connection]struct{}
	draining    bool
	// sockets are open a little longer than their connections: a close handshake follows.
	sockets sync.WaitGroup
}

// New makes a server without connections.
func New(settings *config.Config) *Server {
	return &Server{config: settings, hub: hub.New(), connections: make(map[*connection]struct{})}
}

// ServeHTTP is the contract's section 2. A plain switch, for http.ServeMux would redirect some paths instead of upgrading
// them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/healthz":
		// A client that is gone is no concern of the answer.
		_, _ = io.WriteString(w, "ok\n")
	case r.Method == http.MethodGet && r.URL.Path == "/metrics":
		s.metrics.ServeHTTP(w, r)
	case asksForWebSocket(r):
		s.open(w, r)
	case r.Method == http.MethodGet:
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Version", "13")
		w.WriteHeader(http.StatusUpgradeRequired)
	default:
		w.Header().Set("Allow", http.MethodGet)
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func asksForWebSocket(r *http.Request) bool {
	for _, field := range r.Header["Upgrade"] {
		if strings.EqualFold(strings.TrimSpace(field), "websocket") {
			return true
		}
	}
	return false
}

// open upgrades a request, and hands the socket to a goroutine of its own.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if !s.admit() {
		s.metrics.ConnectionsRefused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c := &connection{server: s}
	if r.URL.Path == "/fanout" {
		// Before the answer: who has it misses nothing that is published from then on.
		c.queue = s.hub.Join()
	}
	var err error
	c.socket, c.conn, err = wire.Accept(w, r, s.config.MessageBytesMax, s.sockets.Done)
	if err != nil {
		s.metrics.ConnectionsRefused.Add(1)
		c.leaveHub()
		return
	}
	s.metrics.ConnectionsAccepted.Add(1)
	s.metrics.ConnectionsOpen.Add(1)
	s.mu.Lock()
	s.connections[c] = struct{}{}
	draining := s.draining
	s.mu.Unlock()
	if draining {
		go c.goAway()
	}
	// In a goroutine of its own, so that net/http's can end and with it the request, its headers and its stack.
	go c.serve()
}

// admit takes a place for a socket.
func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.sockets.Add(1)
	return true
}

// leave forgets a connection.
func (s *Server) leave(c *connection) {
	s.mu.Lock()
	delete(s.connections, c)
	s.mu.Unlock()
	s.metrics.ConnectionsOpen.Add(-1)
}

// Drain closes all connections with 1001 and returns when the last socket is closed or ctx ends.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	for c := range s.connections {
		go c.goAway()
	}
	s.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		s.sockets.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

func (c *connection) goAway() {
	// It fails for a client that does not answer; the process ends in any case.
	_ = c.socket.Close(websocket.StatusGoingAway, "")
}
