// Package message holds the JSON that crosses the two sockets, and the contract's table of failures.
package message

import (
	"encoding/json"
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

type errorMessage struct {
	Type                   string   `json:"type"`
	Stage                  string   `json:"stage"`
	Kind                   string   `json:"kind"`
	Message                string   `json:"message"`
	OldestFrameSeq         uint64   `json:"oldest_frame_seq"`
	NewestFrameSeq         uint64   `json:"newest_frame_seq"`
	Frames                 uint64   `json:"frames"`
	AudioBytes             uint64   `json:"audio_bytes"`
	OldestAgeMS            float64  `json:"oldest_age_ms"`
	NewestAgeMS            float64  `json:"newest_age_ms"`
	FlushLatenessMS        float64  `json:"flush_lateness_ms"`
	InferenceElapsedMS     *float64 `json:"inference_elapsed_ms"`
	InflightGatewayBatches int64    `json:"inflight_gateway_batches"`
	GatewayBufferFrames    int      `json:"gateway_buffer_frames"`
	InferenceStatus        *int     `json:"inference_status"`
	Retryable              bool     `json:"retryable"`
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
	text := errorMessage{
		Type:                   "error",
		Stage:                  failure.Kind.Stage,
		Kind:                   failure.Kind.Name,
		Message:                failure.Message,
		OldestFrameSeq:         span.OldestSeq,
		NewestFrameSeq:         span.NewestSeq,
		Frames:                 span.Frames(),
		AudioBytes:             span.Frames() * FrameBytes,
		OldestAgeMS:            milliseconds(around.Now.Sub(span.OldestAt)),
		NewestAgeMS:            milliseconds(around.Now.Sub(span.NewestAt)),
		FlushLatenessMS:        milliseconds(around.Lateness),
		InflightGatewayBatches: around.InflightBatches,
		GatewayBufferFrames:    around.BufferFrames,
		Retryable:              failure.Kind.Retryable,
	}
	if failure.Kind != Overflow {
		elapsedMS := milliseconds(failure.Elapsed)
		text.InferenceElapsedMS = &elapsedMS
	}
	if failure.Status != 0 {
		text.InferenceStatus = &failure.Status
	}
	return encode(text)
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
