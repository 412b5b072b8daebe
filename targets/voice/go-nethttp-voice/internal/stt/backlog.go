package stt

import "gonethttpvoice/internal/chunk"

const (
	// bytesPerMS and frameBytes (20 ms) of a caller's audio.
	bytesPerMS = 32
	frameBytes = 20 * bytesPerMS
)

// backlog is audio on its way to the provider. Its user has the lock.
type backlog struct {
	chunks [][]byte
	bytes  int
	// head is where in the caller's audio it begins.
	head int64
	// dropped counts bytes that nobody has been told of.
	dropped int64
	// cut says that a connection was lost, perhaps within a frame.
	cut bool
}

// push takes a buffer over.
func (b *backlog) push(audio []byte) {
	b.bytes += len(audio)
	if last := len(b.chunks) - 1; last >= 0 {
		// Short messages share a buffer.
		if tail := b.chunks[last]; cap(tail) == chunk.Bytes && cap(tail)-len(tail) >= len(audio) {
			b.chunks[last] = append(tail, audio...)
			chunk.Put(audio)
			return
		}
	}
	b.chunks = append(b.chunks, audio)
}

// pop hands the oldest buffer over; nil if there is none.
func (b *backlog) pop() []byte {
	b.align()
	return b.take()
}

func (b *backlog) take() []byte {
	if len(b.chunks) == 0 {
		return nil
	}
	oldest := b.chunks[0]
	b.chunks[0] = nil
	b.chunks = b.chunks[1:]
	if len(b.chunks) == 0 {
		// A session without backlog keeps no array.
		b.chunks = nil
	}
	b.bytes -= len(oldest)
	b.head += int64(len(oldest))
	return oldest
}

// giveBack takes back what was popped, up to this end, and did not arrive. It is dropped if newer audio was meanwhile.
func (b *backlog) giveBack(oldest []byte, end int64) {
	b.cut = true
	if b.head == end {
		b.unpop(oldest)
		return
	}
	b.dropped += int64(len(oldest))
	chunk.Put(oldest)
}

// unpop takes the oldest buffer back.
func (b *backlog) unpop(oldest []byte) {
	b.chunks = append([][]byte{oldest}, b.chunks...)
	b.bytes += len(oldest)
	b.head -= int64(len(oldest))
}

// trim drops the oldest audio until so much is left at most, from the edge of a frame on.
func (b *backlog) trim(limit int) {
	if b.bytes <= limit {
		return
	}
	excess := b.bytes - limit
	if past := int((b.head + int64(excess)) % frameBytes); past > 0 {
		excess += frameBytes - past
	}
	b.drop(min(excess, b.bytes))
}

// align drops the rest of a frame whose beginning went to a lost connection: the next one gets whole frames.
func (b *backlog) align() {
	if !b.cut {
		return
	}
	if past := int(b.head % frameBytes); past > 0 {
		b.drop(min(frameBytes-past, b.bytes))
	}
	b.cut = b.head%frameBytes != 0
}

// drop drops the oldest bytes, of which there are so many.
func (b *backlog) drop(bytes int) {
	b.dropped += int64(bytes)
	for bytes > 0 {
		oldest := b.take()
		if len(oldest) > bytes {
			b.unpop(oldest[bytes:])
			return
		}
		bytes -= len(oldest)
		chunk.Put(oldest)
	}
}

// takeDropped says, once, how many milliseconds were dropped.
func (b *backlog) takeDropped() int64 {
	dropped := (b.dropped + bytesPerMS - 1) / bytesPerMS
	b.dropped = 0
	return dropped
}
