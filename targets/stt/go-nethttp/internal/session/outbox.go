package session

// outbox holds the messages that the client has not taken. The first may be on its way into the socket; it stays unsent
// until the kernel has taken its last byte.
type outbox struct {
	waiting [][]byte
	sending bool
}

func (o *outbox) push(text []byte) { o.waiting = append(o.waiting, text) }

func (o *outbox) unsent() int {
	if o.sending {
		return len(o.waiting) + 1
	}
	return len(o.waiting)
}

// begin takes the next message to write; nil if there is none or one is being written.
func (o *outbox) begin() []byte {
	if o.sending || len(o.waiting) == 0 {
		return nil
	}
	text := o.waiting[0]
	o.waiting[0] = nil
	o.waiting = o.waiting[1:]
	if len(o.waiting) == 0 {
		// An idle session keeps no array.
		o.waiting = nil
	}
	o.sending = true
	return text
}

func (o *outbox) end() { o.sending = false }
