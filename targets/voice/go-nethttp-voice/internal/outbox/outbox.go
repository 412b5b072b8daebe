// Package outbox holds what waits to be written to a caller, and says what is dropped when the caller reads too slowly.
// It does no I/O, and its user has the lock.
package outbox

import (
	"time"

	"gonethttpvoice/internal/chunk"
)

const (
	// blockBytes is 20 ms of a reply. Audio is dropped from the edge of a block to the edge of a block, so that what is
	// left are whole samples, and whole marks where there are any.
	blockBytes = 960
	// resultPatience is how long a result waits when too much waits.
	resultPatience = 500 * time.Millisecond
)

// Reply is what the outbox knows of a reply.
type Reply struct {
	// Dropped counts bytes that there was no room for.
	Dropped int64
	// position counts all its bytes so far.
	position int64
	dropping bool
}

// Item is a message to write.
type Item struct {
	// Text says that it is a text message, else it is audio.
	Text    bool
	Payload []byte
	// Of is the reply that it belongs to; nil for other messages.
	Of *Reply
	// Last says that it ends its reply.
	Last bool
	// until is when the message is worth nothing any more; 0 for never.
	until time.Duration
}

// Outbox is a queue.
type Outbox struct {
	// LimitBytes is how much may wait before audio is dropped.
	LimitBytes int

	items []Item
	// next is the first item that waits.
	next    int
	waiting int
}

// Waiting is how many bytes wait.
func (o *Outbox) Waiting() int { return o.waiting }

// Empty says whether nothing waits.
func (o *Outbox) Empty() bool { return o.next == len(o.items) }

// Text adds a message that is never dropped. Of is the reply that it ends, or nil.
func (o *Outbox) Text(text []byte, of *Reply) {
	o.push(Item{Text: true, Payload: text, Of: of, Last: of != nil})
}

// Result adds a message that is dropped if there is no room for it in time.
func (o *Outbox) Result(now time.Duration, text []byte) {
	item := Item{Text: true, Payload: text}
	if o.waiting+len(text) > o.LimitBytes {
		item.until = now + resultPatience
	}
	o.push(item)
}

// Audio adds a copy of a piece of a reply, or of the part of it that there is room for.
func (o *Outbox) Audio(of *Reply, audio []byte) {
	for len(audio) > 0 {
		take := len(audio)
		if full := o.waiting+len(audio) > o.LimitBytes; full != of.dropping {
			toEdge := int(-of.position % blockBytes)
			if toEdge < 0 {
				toEdge += blockBytes
			}
			if toEdge == 0 {
				of.dropping = full
			} else {
				take = min(toEdge, len(audio))
			}
		}
		if of.dropping {
			of.Dropped += int64(take)
		} else {
			o.copy(of, audio[:take])
		}
		of.position += int64(take)
		audio = audio[take:]
	}
}

// copy puts audio behind that of the same reply where there is room in its buffer: who is behind sends longer messages.
func (o *Outbox) copy(of *Reply, audio []byte) {
	for len(audio) > 0 {
		if o.Empty() || !o.last().extends(of) {
			o.push(Item{Payload: chunk.Get(), Of: of})
		}
		tail := o.last()
		take := min(cap(tail.Payload)-len(tail.Payload), len(audio))
		tail.Payload = append(tail.Payload, audio[:take]...)
		o.waiting += take
		audio = audio[take:]
	}
}

func (o *Outbox) last() *Item { return &o.items[len(o.items)-1] }

// extends says whether more audio of a reply fits in an item.
func (i *Item) extends(of *Reply) bool {
	return !i.Text && i.Of == of && len(i.Payload) < cap(i.Payload)
}

func (o *Outbox) push(item Item) {
	o.items = append(o.items, item)
	o.waiting += len(item.Payload)
}

// Next takes the next message to write; false if there is none. The payload of audio is the taker's, to give back to the
// pool.
func (o *Outbox) Next(now time.Duration) (Item, bool) {
	for !o.Empty() {
		item := o.items[o.next]
		o.items[o.next] = Item{}
		o.next++
		o.waiting -= len(item.Payload)
		if o.Empty() {
			o.reset()
		}
		if item.until == 0 || now < item.until {
			return item, true
		}
	}
	return Item{}, false
}

// itemsKept is the room for items that an empty outbox keeps.
const itemsKept = 8

func (o *Outbox) reset() {
	o.next = 0
	o.items = o.items[:0]
	if cap(o.items) > itemsKept {
		o.items = nil
	}
}

// Remove drops all that waits of a reply.
func (o *Outbox) Remove(of *Reply) {
	kept := o.items[:o.next]
	for _, item := range o.items[o.next:] {
		if item.Of != of {
			kept = append(kept, item)
			continue
		}
		o.waiting -= len(item.Payload)
		if !item.Text {
			chunk.Put(item.Payload)
		}
	}
	clear(o.items[len(kept):])
	o.items = kept
	if o.Empty() {
		o.reset()
	}
}

// Clear drops everything.
func (o *Outbox) Clear() {
	for _, item := range o.items[o.next:] {
		if !item.Text {
			chunk.Put(item.Payload)
		}
	}
	o.items, o.next, o.waiting = nil, 0, 0
}
