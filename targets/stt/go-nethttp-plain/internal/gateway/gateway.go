// Package gateway is the HTTP surface, what sessions share, and the goroutines of each session.
package gateway

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gonethttpplain/internal/config"
	"gonethttpplain/internal/inference"
)

const (
	// messageBytesMax is the longest message that is read.
	messageBytesMax = 64 * 1024
	// closeTime is for close frames to reach clients whose drain has taken too long.
	closeTime = 300 * time.Millisecond
)

// Gateway is one per process.
type Gateway struct {
	config         *config.Config
	inference      *inference.Client
	metrics        *metrics
	mux            *http.ServeMux
	sessions, jobs limit

	mu          sync.Mutex
	connections map[*connection]struct{}
	draining    bool
	// open counts what is in connections.
	open sync.WaitGroup
}

// New makes a gateway without sessions. It connects nowhere yet.
func New(settings *config.Config) *Gateway {
	g := &Gateway{
		config: settings,
		inference: inference.New(settings.InferenceURL, settings.InferenceClients, settings.InferenceTimeout,
			settings.CPUPasses),
		mux:         http.NewServeMux(),
		sessions:    limit{max: settings.MaxSessions},
		jobs:        limit{max: settings.MaxInflightJobs},
		connections: make(map[*connection]struct{}),
	}
	g.metrics = newMetrics(&g.sessions, &g.jobs)
	g.mux.HandleFunc("GET /health", g.health)
	g.mux.Handle("GET /metrics", g.metrics.handler)
	g.mux.HandleFunc("GET /ws/stt", g.admit)
	return g
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) {
	if g.isDraining() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// admit decides who is let in while it is still HTTP.
func (g *Gateway) admit(w http.ResponseWriter, r *http.Request) {
	switch {
	case !wantsUpgrade(r):
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusUpgradeRequired)
	case !g.authorized(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	case g.isDraining():
		w.WriteHeader(http.StatusServiceUnavailable)
	case !g.sessions.take():
		g.metrics.sessionsRejected.Inc()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		g.serve(w, r)
	}
}

// serve upgrades an admitted request and runs its session to the end.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	// The contract knows no origins; who may come in is a matter of the token, which no browser sends unasked.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		// Accept has answered.
		g.sessions.give()
		return
	}
	conn.SetReadLimit(messageBytesMax)
	c := newConnection(g, conn)
	if !g.enter(c) {
		g.sessions.give()
		_ = conn.Close(websocket.StatusGoingAway, goingAway)
		return
	}
	defer g.leave(c)
	g.metrics.sessions.Inc()
	c.serve()
}

// enter makes a connection one that a drain waits for. It fails when the drain has begun.
func (g *Gateway) enter(c *connection) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return false
	}
	g.connections[c] = struct{}{}
	g.open.Add(1)
	return true
}

func (g *Gateway) leave(c *connection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.connections, c)
	g.open.Done()
}

func (g *Gateway) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// Drain refuses new sessions, answers what is in flight and closes all. When ctx ends first, what is in flight is given
// up.
func (g *Gateway) Drain(ctx context.Context) {
	g.mu.Lock()
	g.draining = true
	for c := range g.connections {
		c.drain()
	}
	g.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		g.open.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		return
	case <-ctx.Done():
	}

	g.mu.Lock()
	for c := range g.connections {
		c.finish()
	}
	g.mu.Unlock()
	select {
	case <-closed:
	case <-time.After(closeTime):
	}
}

// authorized compares the token in a time that does not tell how much of it is right.
func (g *Gateway) authorized(r *http.Request) bool {
	if g.config.AuthToken == "" {
		return true
	}
	want := "Bearer " + g.config.AuthToken
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) == 1
}

// wantsUpgrade says whether a request is one for a WebSocket. Accept would say so, too, but after the refusals.
func wantsUpgrade(r *http.Request) bool {
	return hasToken(r.Header.Values("Connection"), "upgrade") && hasToken(r.Header.Values("Upgrade"), "websocket")
}

func hasToken(fields []string, token string) bool {
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
