// Package gateway is what sessions share, the HTTP surface, and the goroutines around each session.
package gateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"gonethttp/common/admission"
	"gonethttp/common/wire"
	"gonethttp/internal/config"
	"gonethttp/internal/inference"
	"gonethttp/internal/metrics"
	"gonethttp/internal/session"
)

// messageBytesMax is the longest message, in bytes, that a client may declare.
const messageBytesMax = 64 * 1024

// Gateway is one per process. Nothing in it is written to for a mere frame.
type Gateway struct {
	config    *config.Config
	door      *admission.Door
	metrics   *metrics.Metrics
	handler   http.Handler
	inference *inference.Client
	jobs      atomic.Int64
}

// New makes a gateway without sessions. It connects nowhere yet.
func New(settings *config.Config) *Gateway {
	g := &Gateway{
		config: settings,
		door:   admission.New(admission.Limits{Sessions: settings.SessionsMax}),
		inference: inference.New(settings.InferenceURL, settings.InferenceClients, settings.InferenceTimeout,
			settings.Session.Echo.CPUPasses),
	}
	g.metrics = metrics.New(
		func() float64 { return float64(g.door.Open()) },
		func() float64 { return float64(g.jobs.Load()) },
	)
	g.handler = g.metrics.Handler()
	return g
}

// ServeHTTP is the contract's section 2. A plain switch, for http.ServeMux would redirect some of what must be 404, and
// answer 405 to the rest.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Path == "/ws/stt":
		g.openSession(w, r)
	case r.URL.Path == "/health":
		if g.door.Draining() {
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
	case !admission.WantsUpgrade(r):
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Version", "13")
		w.WriteHeader(http.StatusUpgradeRequired)
		return
	case !admission.Authorized(r, g.config.AuthToken):
		w.WriteHeader(http.StatusUnauthorized)
		return
	case g.door.Enter("") != admission.Admitted:
		g.metrics.SessionsRejected.Inc()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c := newConnection(g, time.Duration(rand.Float64()*float64(g.config.FlushPhaseJitter)))
	socket, conn, err := wire.Accept(w, r, &wire.Options{
		Epoch:          g.door.Epoch(),
		Pace:           g.config.ReadPace,
		Waker:          c,
		TextBytesMax:   messageBytesMax,
		BinaryBytesMax: messageBytesMax,
		TooLarge:       session.ErrTooLarge,
		OnClosed:       g.door.SocketClosed,
	})
	if err != nil {
		// Not a handshake after all, or a client that left between its request and our answer.
		g.door.Leave("", c)
		return
	}
	g.metrics.Sessions.Inc()
	c.socket, c.conn = socket, conn
	g.door.Upgraded(c)
	// In a goroutine of its own, so that net/http's can end and with it the request, its headers and its stack.
	go c.serve()
}

// takeJob takes one of MAX_INFLIGHT_JOBS.
func (g *Gateway) takeJob() bool {
	if inflight := g.jobs.Add(1); g.config.InflightJobsMax > 0 && inflight > g.config.InflightJobsMax {
		g.jobs.Add(-1)
		return false
	}
	return true
}

// Drain is [admission.Door.Drain].
func (g *Gateway) Drain(ctx context.Context, until time.Time) { g.door.Drain(ctx, until) }
