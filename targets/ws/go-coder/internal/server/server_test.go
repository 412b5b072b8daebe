package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const mebibyte = 1 << 20

func TestHTTPSurface(t *testing.T) {
	s := start(t, mebibyte)
	for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/": 426, "/fanout": 426} {
		if got, _ := s.get(t, path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	response, err := http.Post("http://"+s.address+"/healthz", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 405 {
		t.Errorf("POST /healthz: %d", response.StatusCode)
	}
	if got := s.metric(t, "ws_connections_refused_total"); got != 0 {
		t.Errorf("%d refused", got)
	}
	request, _ := http.NewRequest(http.MethodGet, "http://"+s.address+"/", nil)
	request.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"8"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	if response, err = http.DefaultTransport.RoundTrip(request); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 400 {
		t.Errorf("version 8: %d", response.StatusCode)
	}
	if got := s.metric(t, "ws_connections_refused_total"); got != 1 {
		t.Errorf("%d refused", got)
	}
}

func TestMessagesOfEverySize(t *testing.T) {
	s := start(t, mebibyte)
	c := s.connect(t, "/any/path?x=1")
	for _, length := range []int{0, 1, 125, 126, 1_000, 65_535, 65_536, 200_000, mebibyte} {
		payload := pattern(length, length)
		c.send(binaries, payload)
		c.expect(binaries, payload)
		words := []byte(strings.Repeat("éx€", length/6))
		c.send(text, words)
		c.expect(text, words)
	}
	c.barrier()
	for name, want := range map[string]int{
		"ws_messages_received_total": 18, "ws_messages_sent_total": 18,
		"ws_connections_open": 1, "ws_connections_accepted_total": 1,
	} {
		if got := s.metric(t, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	_ = c.socket.Close()
	eventually(t, "no connection is open", func() bool { return s.metric(t, "ws_connections_open") == 0 })
}

func TestAStreamOfMessages(t *testing.T) {
	s := start(t, mebibyte)
	sizes := []int{0, 175, 3, 4_000, 70_000, 125, 126, 30_000}
	var talking sync.WaitGroup
	sent := 0
	for seed := range 4 {
		c := s.connect(t, "/")
		var payloads [][]byte
		var stream []byte
		for turn := range 200 {
			payload := pattern(sizes[turn%len(sizes)], turn+seed)
			payloads = append(payloads, payload)
			stream = append(stream, frame(binaries, payload)...)
			sent += len(payload)
		}
		talking.Go(func() { c.write(stream) })
		for _, payload := range payloads {
			c.expect(binaries, payload)
		}
		c.barrier()
	}
	talking.Wait()
	if got := s.metric(t, "ws_messages_received_total"); got != 800 {
		t.Errorf("%d messages", got)
	}
	if got := s.metric(t, "ws_bytes_received_total"); got != sent {
		t.Errorf("%d bytes, want %d", got, sent)
	}
}

func TestFragments(t *testing.T) {
	s := start(t, mebibyte)
	c := s.connect(t, "/")
	long := pattern(300_000, 0)
	c.send(0x02, long[:100_000])
	c.send(ping, []byte("between"))
	c.send(0x00, nil)
	c.write(append(frame(0x80, long[100_000:]), frame(text, []byte("behind"))...))
	c.expect(pong, []byte("between"))
	c.expect(binaries, long)
	c.expect(text, []byte("behind"))
}

// TestViolations sends each with more behind it: the close code must survive the data that nobody reads.
func TestViolations(t *testing.T) {
	s := start(t, 1000)
	for name, c := range map[string]struct {
		bytes []byte
		code  uint16
	}{
		"no mask":               {[]byte{0x82, 2, 0, 0}, 1002},
		"a reserved bit":        {frame(0xC2, []byte("x")), 1002},
		"no opcode":             {frame(0x83, nil), 1002},
		"orphaned":              {frame(0x80, []byte("x")), 1002},
		"interleaved":           {append(frame(0x02, []byte("x")), frame(0x82, []byte("y"))...), 1002},
		"fragmented ping":       {frame(0x09, nil), 1002},
		"long ping":             {frame(ping, make([]byte, 126)), 1002},
		"half a close code":     {frame(closing, []byte{3}), 1002},
		"an illegal close code": {frame(closing, []byte{0x03, 0xED}), 1002},
		"no text":               {frame(text, []byte{0xFF}), 1007},
		"half a character":      {append(frame(0x01, []byte("x")), frame(0x80, []byte{0xC3})...), 1007},
		"declared too long":     {header(binaries, 1001), 1009},
		"declared enormous":     {[]byte{0x82, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 1009},
		"fragments too long":    {append(frame(0x02, make([]byte, 600)), header(0x80, 600)...), 1009},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := s.connect(t, "/")
			client.write(append(append(frame(text, []byte("before")), c.bytes...), make([]byte, 10_000)...))
			client.expect(text, []byte("before"))
			begun := time.Now()
			client.expectClose(c.code)
			if took := time.Since(begun); took > 500*time.Millisecond {
				t.Errorf("after %v", took)
			}
		})
	}
}

// TestTooLongIsKnownFromTheHeader sends nothing behind it.
func TestTooLongIsKnownFromTheHeader(t *testing.T) {
	c := start(t, 1000).connect(t, "/")
	c.write(header(binaries, 1001))
	c.expectClose(1009)
}

func TestClosesAreAnswered(t *testing.T) {
	s := start(t, mebibyte)
	for payload, code := range map[string]uint16{"\x03\xE8": 1000, "\x03\xE9": 1001, "\x10\xE1bye": 4321, "": 0} {
		c := s.connect(t, "/")
		c.send(text, []byte("last words"))
		c.send(closing, []byte(payload))
		c.expect(text, []byte("last words"))
		c.expectClose(code)
	}
}

func TestWhatComesWithTheHandshakeIsNotLost(t *testing.T) {
	c := start(t, mebibyte).connect(t, "/", frame(text, []byte("early"))...)
	c.expect(text, []byte("early"))
	c.barrier()
}

// fill sends bytes again and again until nothing is taken for a while; it returns how many were.
func fill(c *client, bytes []byte) (sent int) {
	for {
		_ = c.socket.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		n, err := c.socket.Write(bytes[sent%len(bytes):])
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.socket.SetWriteDeadline(time.Now().Add(patience))
			return sent
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestWhoDoesNotReadIsNotRead(t *testing.T) {
	s := start(t, mebibyte)
	c := s.connect(t, "/")
	payload := pattern(50_000, 0)
	message := frame(binaries, payload)
	sent := fill(c, message)
	if sent > 100*mebibyte {
		t.Errorf("%d bytes were taken", sent)
	}
	// The rest of a message that was cut.
	messages := (sent + len(message) - 1) / len(message)
	rest := message[len(message)-(messages*len(message)-sent):]
	var writing sync.WaitGroup
	writing.Go(func() { c.write(rest) })
	s.connect(t, "/").barrier()
	for range messages {
		c.expect(binaries, payload)
	}
	writing.Wait()
	c.barrier()
	if got := s.metric(t, "ws_messages_received_total"); got != messages {
		t.Errorf("%d messages, want %d", got, messages)
	}
}

func TestTheHubReachesAllInOneOrder(t *testing.T) {
	const members, each = 6, 50
	s := start(t, mebibyte)
	echo := s.connect(t, "/")
	var clients []*client
	for range members {
		clients = append(clients, s.connect(t, "/fanout"))
	}
	for number, c := range clients {
		var stream []byte
		for turn := range each {
			stream = append(stream, frame(text, fmt.Appendf(nil, "%d/%d", number, turn))...)
		}
		c.write(stream)
	}
	var heard [members][]string
	for number, c := range clients {
		for range members * each {
			_, payload := c.receive()
			heard[number] = append(heard[number], string(payload))
		}
		if strings.Join(heard[number], " ") != strings.Join(heard[0], " ") {
			t.Errorf("client %d has another order", number)
		}
	}
	next := map[string]int{}
	for _, message := range heard[0] {
		sender, turn, _ := strings.Cut(message, "/")
		if turn != fmt.Sprint(next[sender]) {
			t.Fatalf("%s after %d messages", message, next[sender])
		}
		next[sender]++
	}
	clients[3].barrier()
	clients[3].send(closing, []byte{0x03, 0xE8})
	clients[3].expectClose(1000)
	eventually(t, "it has left", func() bool { return s.metric(t, "ws_connections_open") == members })
	clients[0].send(binaries, []byte("to those who are left"))
	for number, c := range clients {
		if number != 3 {
			c.expect(binaries, []byte("to those who are left"))
		}
	}
	echo.barrier()
	if got := s.metric(t, "ws_messages_sent_total"); got != members*each*members+members-1 {
		t.Errorf("%d messages sent", got)
	}
}

func TestTheHubDoesNotWait(t *testing.T) {
	s := start(t, mebibyte)
	s.connect(t, "/fanout")
	c := s.connect(t, "/fanout")
	payload := pattern(mebibyte, 3)
	message := frame(binaries, payload)
	for range 64 {
		c.write(message)
		if first, got := c.receive(); first != binaries || !bytes.Equal(got, payload) {
			t.Fatal("another message")
		}
	}
	// Of 64 the queue keeps 17 or so, and the kernel some.
	if dropped := s.metric(t, "ws_messages_dropped_total"); dropped < 8 || dropped > 48 {
		t.Errorf("%d dropped", dropped)
	}
}

func TestDrain(t *testing.T) {
	s := start(t, mebibyte)
	clients := []*client{s.connect(t, "/"), s.connect(t, "/fanout"), s.connect(t, "/")}
	for _, c := range clients {
		c.barrier()
	}
	drained := make(chan struct{})
	go func() {
		drain(s, 5*time.Second)
		close(drained)
	}()
	for number, c := range clients {
		if first, payload := c.receive(); first != closing || !bytes.Equal(payload, []byte{0x03, 0xE9}) {
			t.Fatalf("client %d got %#x %q", number, first, payload)
		}
		c.send(closing, []byte{0x03, 0xE9})
		if _, err := c.socket.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("client %d: %v", number, err)
		}
		_ = c.socket.Close()
	}
	if status, _ := s.get(t, "/"); status != 426 {
		t.Errorf("HTTP: %d", status)
	}
	select {
	case <-drained:
	case <-time.After(2 * time.Second):
		t.Error("it did not end, though all clients have closed")
	}
}

func TestDrainGivesUp(t *testing.T) {
	s := start(t, mebibyte)
	s.connect(t, "/")
	deaf := s.connect(t, "/")
	fill(deaf, frame(binaries, pattern(50_000, 0)))
	begun := time.Now()
	drain(s, 300*time.Millisecond)
	if took := time.Since(begun); took > 600*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}
