// Package gateway is what sessions share, the HTTP surface, and the goroutines around each session.
package gateway

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"gonethttp/common/admission"

	"gonethttpvoice/internal/config"
	"gonethttpvoice/internal/metrics"
	"gonethttpvoice/internal/stt"
	"gonethttpvoice/internal/tts"
)

// Gateway is one per process.
type Gateway struct {
	config  *config.Config
	door    *admission.Door
	metrics *metrics.Metrics
	handler http.Handler
	stt     *stt.Client
	tts     *tts.Client
	voices  voices
	// turn counts who has taken a provider.
	turn atomic.Uint64
}

// New makes a gateway without sessions. It connects nowhere yet.
func New(settings *config.Config) *Gateway {
	g := &Gateway{config: settings, door: admission.New(settings.Limits)}
	g.metrics = metrics.New(func() float64 { return float64(g.door.Open()) })
	g.handler = g.metrics.Handler()

	g.stt = stt.NewClient()
	g.stt.Key, g.stt.Metrics, g.stt.Clock = settings.ProviderKey, g.metrics, g.door.Clock
	g.stt.Ready, g.stt.Pong, g.stt.BacklogBytes = settings.Ready, settings.STTPong, settings.AudioBufferBytes

	g.tts = tts.NewClient()
	g.tts.Key, g.tts.Metrics = settings.ProviderKey, g.metrics
	g.tts.First, g.tts.Gap = settings.TTSFirst, settings.TTSGap
	return g
}

// provider is the base of the providers whose turn it is.
func (g *Gateway) provider() *url.URL {
	turn := g.turn.Add(1) - 1
	return g.config.ProviderURLs[turn%uint64(len(g.config.ProviderURLs))]
}

// Drain is [admission.Door.Drain].
func (g *Gateway) Drain(ctx context.Context, until time.Time) { g.door.Drain(ctx, until) }
