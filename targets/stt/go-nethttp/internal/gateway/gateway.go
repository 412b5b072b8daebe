// Package gateway is what sessions share, the HTTP surface, and the goroutines around each session.
package gateway

import (
	"context"
	"crypto/subtle"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gonethttp/internal/config"
	"gonethttp/internal/inference"
	"gonethttp/internal/metrics"
	"gonethttp/internal/wire"
)

// Gateway is one per process. Nothing in it is written to for a mere frame.
type Gateway struct {
	config    *config.Config
	epoch     time.Time
	metrics   *metrics.Metrics
	handler   http.Handler
	inference *inference.Client
	jobs      atomic.Int64

	mu sync.Mutex
	// open counts admitted sessions, connections are those that have been upgraded.
	open        int64
	connections map[*connection]struct{}
	// drainUntil is 0 until draining begins.
	drainUntil atomic.Int64
	// sockets are open a little longer than their sessions: a close handshake follows.
	sockets sync.WaitGroup
}

// New makes a gateway without sessions. It connects nowhere yet.
func New(settings *config.Config) *Gateway {
	g := &Gateway{
		config:      settings,
		epoch:       time.Now(),
		connections: make(map[*connection]struct{}),
		inference: inference.New(settings.InferenceURL, settings.InferenceClients, settings.InferenceTimeout,
			settings.Session.Echo.CPUPasses),
	}
	g.metrics = metrics.New(
		func() float64 { g.mu.Lock(); defer g.mu.Unlock(); return float64(g.open) },
		func() float64 { return float64(g.jobs.Load()) },
	)
	g.handler = g.metrics.Handler()
	return g
}

func (g *Gateway) clock() time.Duration { return time.Since(g.epoch) }

// ServeHTTP is the contract's section 2. A plain switch, for http.ServeMux would redirect some of what must be 404, and
// answer 405 to the rest.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Path == "/ws/stt":
		g.openSession(w, r)
	case r.URL.Path == "/health":
		if g.draining() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case r.URL.Path == "/metrics":
		g.handler.ServeHTTP(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// openSession decides who is let in while it is still HTTP, then upgrades and hands the socket to a session.
func (g *Gateway) openSession(w http.ResponseWriter, r *http.Request) {
	switch {
	case !wantsUpgrade(r):
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Version", "13")
		w.WriteHeader(http.StatusUpgradeRequired)
		return
	case !g.authorized(r):
		w.WriteHeader(http.StatusUnauthorized)
		return
	case !g.admit():
		g.metrics.SessionsRejected.Inc()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c := newConnection(g, time.Duration(rand.Float64()*float64(g.config.FlushPhaseJitter)))
	socket, conn, err := wire.Accept(w, r, &wire.Options{
		Epoch:    g.epoch,
		Pace:     g.config.ReadPace,
		Waker:    c,
		OnClosed: g.sockets.Done,
	})
	if err != nil {
		// Not a handshake after all, or a client that left between its request and our answer.
		g.leave(c)
		return
	}
	g.metrics.Sessions.Inc()
	c.socket, c.conn = socket, conn
	g.mu.Lock()
	g.connections[c] = struct{}{}
	g.mu.Unlock()
	// In a goroutine of its own, so that net/http's can end and with it the request, its headers and its stack.
	go c.serve()
}

func wantsUpgrade(r *http.Request) bool {
	return hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket")
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

// authorized compares in a time that does not tell how much of a token is right.
func (g *Gateway) authorized(r *http.Request) bool {
	if g.config.AuthToken == "" {
		return true
	}
	const scheme = "Bearer "
	field := r.Header.Get("Authorization")
	if len(field) < len(scheme) || !strings.EqualFold(field[:len(scheme)], scheme) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(field[len(scheme):]), []byte(g.config.AuthToken)) == 1
}

// admit takes a place for a session and its socket.
func (g *Gateway) admit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining() || g.config.SessionsMax > 0 && g.open >= g.config.SessionsMax {
		return false
	}
	g.open++
	g.sockets.Add(1)
	return true
}

// leave gives a session's place back; its socket gives back its own.
func (g *Gateway) leave(c *connection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	delete(g.connections, c)
}

// takeJob takes one of MAX_INFLIGHT_JOBS.
func (g *Gateway) takeJob() bool {
	if inflight := g.jobs.Add(1); g.config.InflightJobsMax > 0 && inflight > g.config.InflightJobsMax {
		g.jobs.Add(-1)
		return false
	}
	return true
}

func (g *Gateway) draining() bool { return g.drainUntil.Load() != 0 }

// Drain refuses new sessions, lets the open ones answer what is in flight, and returns when the last socket is closed
// or ctx ends. Sessions give up at until, so that they can still say so.
func (g *Gateway) Drain(ctx context.Context, until time.Time) {
	g.mu.Lock()
	g.drainUntil.Store(max(int64(until.Sub(g.epoch)), 1))
	for c := range g.connections {
		c.conn.Kick()
	}
	g.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		g.sockets.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}
