package hub

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func text(payload string) Message { return Message{websocket.MessageText, []byte(payload)} }

func TestAllGetAllInOneOrder(t *testing.T) {
	const senders, each = 4, 200
	h := New()
	queues := []*Queue{h.Join(), h.Join(), h.Join()}
	var sending sync.WaitGroup
	for sender := range senders {
		sending.Go(func() {
			for turn := range each {
				if h.Publish(text(fmt.Sprint(sender, turn))) != 0 {
					t.Error("dropped")
				}
			}
		})
	}
	var heard [3][]string
	for i, q := range queues {
		var batch []Message
		for len(heard[i]) < senders*each {
			batch = q.Take(batch)
			for _, message := range batch {
				heard[i] = append(heard[i], string(message.Payload))
				q.Sent(message)
			}
		}
	}
	sending.Wait()
	for i := range heard[0] {
		if heard[0][i] != heard[1][i] || heard[0][i] != heard[2][i] {
			t.Fatalf("message %d: %q, %q, %q", i, heard[0][i], heard[1][i], heard[2][i])
		}
	}
}

func TestAQueueThatIsTooLongTakesNothing(t *testing.T) {
	h := New()
	slow := h.Join()
	message := Message{websocket.MessageBinary, make([]byte, 4<<20)}
	dropped := 0
	for range 10 {
		dropped += h.Publish(message)
	}
	if dropped != 6 {
		t.Errorf("%d dropped; four are kept: the one that goes over the limit, too", dropped)
	}
	batch := slow.Take(nil)
	if h.Publish(message) != 1 {
		t.Error("taken out is not sent")
	}
	for _, message := range batch {
		slow.Sent(message)
	}
	if h.Publish(message) != 0 || slow.bytes != message.weight() {
		t.Errorf("%d bytes in the queue", slow.bytes)
	}
}

func TestEmptyMessagesTakeRoomToo(t *testing.T) {
	const published = 300_000
	h := New()
	slow := h.Join()
	dropped := 0
	for range published {
		dropped += h.Publish(Message{Kind: websocket.MessageBinary})
	}
	if kept := len(slow.Take(nil)); dropped == 0 || dropped+kept != published {
		t.Errorf("%d dropped, %d kept", dropped, kept)
	}
}

func TestWhoWaitsSeesTheEnd(t *testing.T) {
	h := New()
	q := h.Join()
	taken := make(chan []Message)
	go func() { taken <- q.Take(nil) }()
	time.Sleep(10 * time.Millisecond)
	h.Leave(q)
	if batch := <-taken; batch != nil {
		t.Errorf("got %v", batch)
	}
	if h.Publish(text("for nobody")) != 0 {
		t.Error("dropped by one that has left")
	}
}
