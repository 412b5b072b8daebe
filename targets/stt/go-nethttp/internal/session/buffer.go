package session

import (
	"sync"
	"time"

	"gonethttp/internal/message"
)

// OverflowPolicy is what happens to a frame that finds the buffer full.
type OverflowPolicy int

// The policies of OVERFLOW_POLICY.
const (
	// DropOldest makes room: the oldest buffered frame goes.
	DropOldest OverflowPolicy = iota
	// DropNewest keeps what is there: the new frame goes.
	DropNewest
	// CloseSession ends the session.
	CloseSession
)

// batch is the audio of consecutive frames and when each was received.
type batch struct {
	pcm []byte
	at  []time.Duration
}

const (
	// pooledFrames is the capacity of a new batch: a second of audio and one frame more. 51 frames are 32,640 bytes,
	// which fit into the allocator's largest small size class (32 KiB); one more frame would take 40 KiB.
	pooledFrames = 51
	// pooledFramesMax keeps what grew in an overload from living on in the pool.
	pooledFramesMax = 2 * pooledFrames
)

// batches are reused because they are nearly all that the gateway allocates: 32 KiB a second and session, which would
// otherwise set the pace of the garbage collector.
var batches = sync.Pool{New: func() any {
	return &batch{
		pcm: make([]byte, 0, pooledFrames*message.FrameBytes),
		at:  make([]time.Duration, 0, pooledFrames),
	}
}}

func (b *batch) recycle() {
	if cap(b.at) <= pooledFramesMax {
		b.pcm, b.at = b.pcm[:0], b.at[:0]
		batches.Put(b)
	}
}

// buffer numbers the frames of a session and holds those that wait.
//
// Frames leave in the order of their numbers, in up to three contiguous ranges: dropped before the buffered ones,
// buffered, dropped behind them. DropOldest drops only before; DropNewest drops behind, which becomes before once the
// buffer has been taken.
type buffer struct {
	policy    OverflowPolicy
	framesMax int
	nextSeq   uint64

	droppedBefore message.Span
	// batch is nil while nothing waits, so that a silent session holds no memory for audio. Its first head frames
	// were dropped.
	batch         *batch
	head          int
	droppedBehind message.Span
}

// push takes in the next frame; it says whether a frame was dropped, this one or the oldest. It fails when the policy
// is to close, and then the frame counts as not accepted.
func (b *buffer) push(now time.Duration, frame []byte) (dropped bool, err error) {
	if b.frames() >= b.framesMax {
		switch b.policy {
		case CloseSession:
			return false, ErrOverflow
		case DropNewest:
			b.droppedBehind.Extend(b.nextSeq, now)
			b.nextSeq++
			return true, nil
		}
		b.dropOldest()
		dropped = true
	}
	if b.batch == nil {
		b.batch = batches.Get().(*batch)
	}
	b.batch.pcm = append(b.batch.pcm, frame...)
	b.batch.at = append(b.batch.at, now)
	b.nextSeq++
	return dropped, nil
}

func (b *buffer) dropOldest() {
	b.droppedBefore.Extend(b.oldestSeq(), b.batch.at[b.head])
	b.head++
	// Moving the rest to the front only now and then costs little per frame and bounds what dropped frames occupy.
	if b.head > b.framesMax/8 {
		b.compact()
	}
}

func (b *buffer) compact() {
	b.batch.pcm = b.batch.pcm[:copy(b.batch.pcm, b.batch.pcm[b.head*message.FrameBytes:])]
	b.batch.at = b.batch.at[:copy(b.batch.at, b.batch.at[b.head:])]
	b.head = 0
}

// frames is how many frames wait.
func (b *buffer) frames() int {
	if b.batch == nil {
		return 0
	}
	return len(b.batch.at) - b.head
}

func (b *buffer) oldestSeq() uint64 {
	return b.nextSeq - b.droppedBehind.Frames() - uint64(b.frames())
}

// waiting says whether a tick would find anything to send or to report.
func (b *buffer) waiting() bool {
	return b.batch != nil || b.droppedBefore.Frames() > 0
}

// takeDropped returns the dropped frames that come before the buffered ones; they must be reported before take.
func (b *buffer) takeDropped() message.Span {
	span := b.droppedBefore
	b.droppedBefore = message.Span{}
	return span
}

// take returns the whole buffer, which must not be empty.
func (b *buffer) take() (*batch, message.Span) {
	if b.droppedBefore.Frames() > 0 {
		panic("session: dropped frames are named before those that follow them")
	}
	if b.head > 0 {
		b.compact()
	}
	taken := b.batch
	span := message.Span{
		OldestSeq: b.oldestSeq(),
		NewestSeq: b.oldestSeq() + uint64(len(taken.at)) - 1,
		OldestAt:  taken.at[0],
		NewestAt:  taken.at[len(taken.at)-1],
	}
	b.batch = nil
	b.droppedBefore, b.droppedBehind = b.droppedBehind, message.Span{}
	return taken, span
}
