package metrics

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	var m Metrics
	m.ConnectionsOpen.Add(2)
	m.ConnectionsOpen.Add(-1)
	m.ConnectionsAccepted.Add(2)
	m.BytesReceived.Add(1 << 40)
	var text strings.Builder
	m.write(&text)
	want := `# TYPE ws_connections_open gauge
ws_connections_open 1
# TYPE ws_connections_accepted_total counter
ws_connections_accepted_total 2
# TYPE ws_connections_refused_total counter
ws_connections_refused_total 0
# TYPE ws_messages_received_total counter
ws_messages_received_total 0
# TYPE ws_bytes_received_total counter
ws_bytes_received_total 1099511627776
# TYPE ws_messages_sent_total counter
ws_messages_sent_total 0
# TYPE ws_messages_dropped_total counter
ws_messages_dropped_total 0
`
	if text.String() != want {
		t.Errorf("got\n%s", text.String())
	}
}
