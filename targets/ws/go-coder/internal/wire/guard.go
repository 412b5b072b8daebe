package wire

import "encoding/binary"

// guard reads along in the bytes on their way to the WebSocket library, no further than the frame headers, and stops
// them before a message that declares too much. The library's own limit counts bytes that have come: it would wait for,
// and read, a mebibyte that nobody wants.
type guard struct {
	// limit is the longest message.
	limit uint64
	// header is the beginning of a frame's header, up to the mask, and have how much of it there is.
	header [10]byte
	have   int
	// skip is what has still to come of the frame: mask and payload.
	skip uint64
	// message is how long the message is whose fragments are coming.
	message uint64
}

const (
	finBit      = 0x80
	maskBit     = 0x80
	controlBit  = 0x08
	opcodeBits  = 0x0F
	lengthBits  = 0x7F
	opContinued = 0
	length16    = 126
	length64    = 127
	maskLength  = 4
)

// pass returns how many of the next bytes may pass: all, or those before the end of a header that declares too much.
func (g *guard) pass(bytes []byte) int {
	for at := 0; at < len(bytes); {
		if g.skip > 0 {
			step := min(g.skip, uint64(len(bytes)-at))
			at += int(step)
			g.skip -= step
			continue
		}
		g.header[g.have] = bytes[at]
		g.have++
		if g.have == headerLength(g.header[:g.have]) && !g.enter() {
			return at
		}
		at++
	}
	return len(bytes)
}

// headerLength is how long the header that begins so is, without its mask; 2 as long as that is unknown.
func headerLength(header []byte) int {
	if len(header) >= 2 {
		switch header[1] & lengthBits {
		case length16:
			return 4
		case length64:
			return 10
		}
	}
	return 2
}

// enter takes a whole header; false when its message is too long.
func (g *guard) enter() bool {
	g.have = 0
	length := uint64(g.header[1] & lengthBits)
	switch length {
	case length16:
		length = uint64(binary.BigEndian.Uint16(g.header[2:]))
	case length64:
		length = binary.BigEndian.Uint64(g.header[2:])
	}
	// Longer than any limit before it is added to, so that no sum overflows.
	if isControl := g.header[0]&controlBit != 0; !isControl {
		if length > g.limit {
			return false
		}
		if g.header[0]&opcodeBits != opContinued {
			g.message = 0
		}
		g.message += length
		if g.message > g.limit {
			return false
		}
		if g.header[0]&finBit != 0 {
			g.message = 0
		}
	} else if length >= length16 {
		// The library refuses it by its header and reads no further.
		length = 0
	}
	g.skip = length
	if g.header[1]&maskBit != 0 {
		g.skip += maskLength
	}
	return true
}
