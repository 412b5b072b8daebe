// Package gateway is the HTTP surface, what sessions share, and the goroutines of each session.
package gateway

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"gonethttpplain/internal/config"
	"gonethttpplain/internal/inference"
)

const (
	// messageBytesMax is the longest message that is read.
	messageBytesMax = 64 * 1024
	// closeTime is how long a drain waits for clients to answer its close frames.
	closeTime = 500 * time.Millisecond
)

// Gateway is one per process. It answers HTTP as its mux does.
type Gateway struct {
	*http.ServeMux

	config         *config.Config
	inference      *inference.Client
	metrics        *metrics
	sessions, jobs limit
	draining       atomic.Bool

	// mu guards connections. A drain begins under it, so that no session enters behind the drain's back.
	mu          sync.Mutex
	connections map[*connection]struct{}
	// open counts what is in connections, writing those of them that have not written all of their outbox.
	open, writing sync.WaitGroup
}

// New makes a gateway without sessions. It connects nowhere yet.
func New(settings *config.Config) *Gateway {
	g := &Gateway{
		ServeMux: http.NewServeMux(),
		config:   settings,
		inference: inference.New(settings.InferenceURL, settings.InferenceClients, settings.InferenceTimeout,
			settings.CPUPasses),
		sessions:    limit{max: settings.MaxSessions},
		jobs:        limit{max: settings.MaxInflightJobs},
		connections: make(map[*connection]struct{}),
	}
	g.metrics = newMetrics(&g.sessions, &g.jobs)
	g.HandleFunc("GET /health", g.health)
	g.Handle("GET /metrics", g.metrics.handler)
	g.HandleFunc("GET /ws/stt", g.admit)
	return g
}

func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) {
	if g.draining.Load() {
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
	case g.draining.Load():
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
	if g.draining.Load() {
		return false
	}
	g.connections[c] = struct{}{}
	g.open.Add(1)
	g.writing.Add(1)
	return true
}

func (g *Gateway) leave(c *connection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.connections, c)
	g.open.Done()
}

// Drain refuses new sessions, answers what is in flight and closes all. When ctx ends first, what is in flight is given
// up.
func (g *Gateway) Drain(ctx context.Context) {
	g.mu.Lock()
	g.draining.Store(true)
	for c := range g.connections {
		c.drain()
	}
	g.mu.Unlock()
	select {
	case <-done(&g.writing):
	case <-ctx.Done():
		g.mu.Lock()
		for c := range g.connections {
			c.finish()
		}
		g.mu.Unlock()
	}
	select {
	case <-done(&g.open):
	case <-time.After(closeTime):
	}
}

// done is closed when the group is.
func done(group *sync.WaitGroup) <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		group.Wait()
		close(closed)
	}()
	return closed
}

// authorized compares the token in a time that does not tell how much of it is right.
func (g *Gateway) authorized(r *http.Request) bool {
	if g.config.AuthToken == "" {
		return true
	}
	want := "Bearer " + g.config.AuthToken
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) == 1
}

// wantsUpgrade says whether a request is one for a WebSocket. Accept looks closer, but only after the refusals.
func wantsUpgrade(r *http.Request) bool {
	connection := strings.ToLower(strings.Join(r.Header.Values("Connection"), ","))
	return strings.Contains(connection, "upgrade") && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}
