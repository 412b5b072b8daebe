package wire

import "encoding/binary"

// guard reads along in the bytes on their way to the WebSocket library, no further than the frame headers, and stops
// them before a message whose declared length is over the limit. See [Conn] for why the library cannot.
type guard struct {
	// textMax and binaryMax are the limits, max that of the unfinished message.
	textMax, binaryMax, max uint64
	// header collects the first bytes of a header, up to the mask; have is how many there are.
	header [10]byte
	have   int
	// skip is what is left of the frame behind the collected header: mask and payload.
	skip uint64
	// message is the length of the unfinished message so far, without the present frame.
	message uint64
}

const (
	finBit      = 0x80
	maskBit     = 0x80
	opcodeBits  = 0x0F
	lengthBits  = 0x7F
	length16    = 126
	length64    = 127
	controlBit  = 0x08
	maskLength  = 4
	continuedOp = 0
	textOp      = 1
)

// newGuard has the binary limit for the rest of a message that never began; the library refuses that.
func newGuard(textMax, binaryMax uint64) guard {
	return guard{textMax: textMax, binaryMax: binaryMax, max: binaryMax}
}

// admit returns how many of the next bytes may pass; when they are not all, the frame behind them is too long.
func (g *guard) admit(p []byte) int {
	for at := 0; at < len(p); {
		if g.skip > 0 {
			step := min(g.skip, uint64(len(p)-at))
			at += int(step)
			g.skip -= step
			continue
		}
		// What an earlier call passed of this header cannot be taken back, nor need it be.
		begin := max(at-g.have, 0)
		g.header[g.have] = p[at]
		g.have++
		at++
		if g.have >= 2 && g.have == headerLength(g.header[1]) && !g.enter() {
			return begin
		}
	}
	return len(p)
}

// headerLength is the length of a header without the mask, from its second byte.
func headerLength(second byte) int {
	switch second & lengthBits {
	case length16:
		return 4
	case length64:
		return 10
	}
	return 2
}

// enter takes the collected header; false when its message is too long.
func (g *guard) enter() bool {
	g.have = 0
	length := uint64(g.header[1] & lengthBits)
	switch length {
	case length16:
		length = uint64(binary.BigEndian.Uint16(g.header[2:]))
	case length64:
		length = binary.BigEndian.Uint64(g.header[2:])
	}
	g.skip = length
	if g.header[1]&maskBit != 0 {
		g.skip += maskLength
	}
	opcode := g.header[0] & opcodeBits
	if opcode&controlBit != 0 {
		// Their length is checked by the library, before it reads the payload.
		return true
	}
	switch opcode {
	case continuedOp:
		length += g.message
	case textOp:
		g.max = g.textMax
	default:
		g.max = g.binaryMax
	}
	g.message = length
	if g.header[0]&finBit != 0 {
		g.message = 0
	}
	return length <= g.max
}
