// Package metrics counts what the contract's section 2 names.
package metrics

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// Metrics are the process's counters.
type Metrics struct {
	ConnectionsOpen     atomic.Int64
	ConnectionsAccepted atomic.Uint64
	ConnectionsRefused  atomic.Uint64
	MessagesReceived    atomic.Uint64
	BytesReceived       atomic.Uint64
	MessagesSent        atomic.Uint64
	MessagesDropped     atomic.Uint64
}

// ServeHTTP answers with the Prometheus text format.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.write(w)
}

func (m *Metrics) write(w io.Writer) {
	row := func(name, kind string, value any) {
		// A client that is gone is no concern of the metrics.
		_, _ = fmt.Fprintf(w, "# TYPE %s %s\n%s %d\n", name, kind, name, value)
	}
	row("ws_connections_open", "gauge", m.ConnectionsOpen.Load())
	row("ws_connections_accepted_total", "counter", m.ConnectionsAccepted.Load())
	row("ws_connections_refused_total", "counter", m.ConnectionsRefused.Load())
	row("ws_messages_received_total", "counter", m.MessagesReceived.Load())
	row("ws_bytes_received_total", "counter", m.BytesReceived.Load())
	row("ws_messages_sent_total", "counter", m.MessagesSent.Load())
	row("ws_messages_dropped_total", "counter", m.MessagesDropped.Load())
}
