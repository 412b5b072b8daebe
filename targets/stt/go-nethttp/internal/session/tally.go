package session

import (
	"time"

	"gonethttp/internal/message"
)

// Deferral is why a tick with audio to flush did nothing.
type Deferral int

// The reasons, in the contract's order.
const (
	// DeferredInflight: the session's request has not come back.
	DeferredInflight Deferral = iota
	// DeferredJobs: the gateway has MAX_INFLIGHT_JOBS requests in flight.
	DeferredJobs
	// DeferredOutbox: the client has not taken OUTBOX_MESSAGES messages.
	DeferredOutbox

	// Deferrals is how many reasons there are.
	Deferrals = int(DeferredOutbox) + 1
)

// String is the reason's label in the metrics.
func (d Deferral) String() string { return [Deferrals]string{"inflight", "jobs", "outbox"}[d] }

// Tally is what a session counted since the last Tally was taken. It is folded into the metrics after each tick and
// each answer, so that a frame touches no memory which sessions share.
type Tally struct {
	Frames, FramesDropped, Partials uint64
	Errors                          [message.Kinds]uint64
	Deferred                        [Deferrals]uint64

	// A flush, if Flushed is above 0: its frames and its lateness.
	Flushed  uint64
	Lateness time.Duration
	// The duration of a request that ended, if Answered.
	Answered  bool
	Inference time.Duration
}
