// Package chunk lends buffers for audio on its way through the gateway. They are free of pointers, so the collector does
// not look into them.
package chunk

import "sync"

// Bytes is the size of a buffer: five blocks of a reply, or 150 ms of a caller. It is one of the allocator's own sizes.
const Bytes = 4864

var pool = sync.Pool{New: func() any { return new([Bytes]byte) }}

// Get lends an empty buffer with room for Bytes.
func Get() []byte { return pool.Get().(*[Bytes]byte)[:0] }

// Put takes a buffer back. What is not a whole buffer of this package is left to the collector.
func Put(buffer []byte) {
	if cap(buffer) == Bytes {
		pool.Put((*[Bytes]byte)(buffer[:Bytes]))
	}
}
