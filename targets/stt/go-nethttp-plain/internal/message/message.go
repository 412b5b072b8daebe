// Package message holds the JSON that crosses the two sockets, and the contract's table of failures.
package message

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// FrameBytes is one frame: 20 ms of 16 kHz, mono, 16-bit PCM.
const FrameBytes = 640

// Span is a contiguous range of frames, and when the first and the last of them came. The zero Span has none.
type Span struct {
	OldestSeq, NewestSeq uint64
	OldestAt, NewestAt   time.Time
}

// Frames is how many frames the span has.
func (s Span) Frames() uint64 {
	if s.OldestSeq == 0 {
		return 0
	}
	return s.NewestSeq - s.OldestSeq + 1
}

// Extend takes the frame that follows into the span.
func (s *Span) Extend(seq uint64, at time.Time) {
	if s.OldestSeq == 0 {
		s.OldestSeq, s.OldestAt = seq, at
	}
	s.NewestSeq, s.NewestAt = seq, at
}

// Kind is a row of the contract's table of failures.
type Kind struct {
	Stage, Name string
	// Retryable says whether the same audio could have been answered a moment later.
	Retryable bool
}

// The rows.
var (
	Timeout         = Kind{"inference_request", "timeout", true}
	ConnectionReset = Kind{"inference_request", "connection_reset", true}
	TooManyRequests = Kind{"inference_request", "http_429", true}
	ServerError     = Kind{"inference_request", "http_5xx", true}
	ClientError     = Kind{"inference_request", "http_4xx", false}
	ParseError      = Kind{"inference_response_parse", "parse_error", false}
	Overflow        = Kind{"input_buffer", "overflow", false}
)

// Kinds is the whole table.
var Kinds = []Kind{Timeout, ConnectionReset, TooManyRequests, ServerError, ClientError, ParseError, Overflow}

// Failure is why frames have no transcript.
type Failure struct {
	Kind    Kind
	Message string
	// Status of the answer; 0 when there was none.
	Status int
	// Elapsed is how long the request took. It means nothing for Overflow, which has no request.
	Elapsed time.Duration
}

// BadStatus makes the failure for an answer with a status other than 200.
func BadStatus(status int) *Failure {
	// A status that is neither 200 nor an error has not the strict JSON for its body.
	kind := ParseError
	switch {
	case status == http.StatusTooManyRequests:
		kind = TooManyRequests
	case status >= 500 && status <= 599:
		kind = ServerError
	case status >= 400 && status <= 499:
		kind = ClientError
	}
	return &Failure{Kind: kind, Message: fmt.Sprintf("the inference server answered %d", status), Status: status}
}

// Answer is what the inference server says about a batch.
type Answer struct {
	RMS           float64 `json:"rms"`
	ZeroCrossings uint64  `json:"zero_crossings"`
	Checksum      uint32  `json:"checksum"`
	Samples       uint64  `json:"samples"`
	Transcript    string  `json:"transcript"`
	AudioBytes    uint64  `json:"audio_bytes"`
}

type partial struct {
	Type           string `json:"type"`
	OldestFrameSeq uint64 `json:"oldest_frame_seq"`
	NewestFrameSeq uint64 `json:"newest_frame_seq"`
	Frames         uint64 `json:"frames"`
	Answer
	CPUPasses       uint32  `json:"cpu_passes"`
	FlushLatenessMS float64 `json:"flush_lateness_ms"`
}

// Partial writes the message for an answered batch.
func Partial(span Span, answer *Answer, cpuPasses uint32, lateness time.Duration) []byte {
	return encode(partial{
		Type:            "partial",
		OldestFrameSeq:  span.OldestSeq,
		NewestFrameSeq:  span.NewestSeq,
		Frames:          span.Frames(),
		Answer:          *answer,
		CPUPasses:       cpuPasses,
		FlushLatenessMS: milliseconds(lateness),
	})
}

// Surroundings is what an error message says beside the failure and its frames.
type Surroundings struct {
	// Now is when the failure was found; the frames' ages count from it.
	Now             time.Time
	Lateness        time.Duration
	InflightBatches int64
	BufferFrames    int
}

// Error writes the message for frames that have no transcript.
func Error(failure *Failure, span Span, around Surroundings) []byte {
	var elapsedMS, status any
	if failure.Kind != Overflow {
		elapsedMS = milliseconds(failure.Elapsed)
	}
	if failure.Status != 0 {
		status = failure.Status
	}
	return encode(map[string]any{
		"type":                     "error",
		"stage":                    failure.Kind.Stage,
		"kind":                     failure.Kind.Name,
		"message":                  failure.Message,
		"oldest_frame_seq":         span.OldestSeq,
		"newest_frame_seq":         span.NewestSeq,
		"frames":                   span.Frames(),
		"audio_bytes":              span.Frames() * FrameBytes,
		"oldest_age_ms":            milliseconds(around.Now.Sub(span.OldestAt)),
		"newest_age_ms":            milliseconds(around.Now.Sub(span.NewestAt)),
		"flush_lateness_ms":        milliseconds(around.Lateness),
		"inference_elapsed_ms":     elapsedMS,
		"inflight_gateway_batches": around.InflightBatches,
		"gateway_buffer_frames":    around.BufferFrames,
		"inference_status":         status,
		"retryable":                failure.Kind.Retryable,
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func encode(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		// JSON has no NaN and no infinity, so an answer has none, and nothing else here can fail.
		panic(err)
	}
	return text
}
