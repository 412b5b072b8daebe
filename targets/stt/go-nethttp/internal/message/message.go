// Package message holds the JSON that crosses the two sockets, strict in what it accepts, and the contract's table of
// failures. It knows nothing of sessions or sockets.
package message

import (
	"encoding/json"
	"time"
)

// FrameBytes is one frame: 20 ms of 16 kHz, mono, 16-bit PCM.
const FrameBytes = 640

// Span is a contiguous range of frames. Times count from an origin that all times of a process share.
type Span struct {
	OldestSeq, NewestSeq uint64
	// When the gateway received the first and the last frame.
	OldestAt, NewestAt time.Duration
}

// Frames is how many frames the span has; the zero Span has none.
func (s Span) Frames() uint64 {
	if s.OldestSeq == 0 {
		return 0
	}
	return s.NewestSeq - s.OldestSeq + 1
}

// Extend takes the frame that follows into the span.
func (s *Span) Extend(seq uint64, at time.Duration) {
	if s.OldestSeq == 0 {
		s.OldestSeq, s.OldestAt = seq, at
	}
	s.NewestSeq, s.NewestAt = seq, at
}

// Inference is what the inference server says about a batch.
type Inference struct {
	RMS           float64 `json:"rms"`
	ZeroCrossings uint64  `json:"zero_crossings"`
	Checksum      uint32  `json:"checksum"`
	Samples       uint64  `json:"samples"`
	Transcript    string  `json:"transcript"`
	AudioBytes    uint64  `json:"audio_bytes"`
}

// Echo holds the configured value that every partial repeats.
type Echo struct {
	CPUPasses uint32 `json:"cpu_passes"`
}

// partial is the contract's section 6, field by field.
type partial struct {
	Type           string `json:"type"`
	OldestFrameSeq uint64 `json:"oldest_frame_seq"`
	NewestFrameSeq uint64 `json:"newest_frame_seq"`
	Frames         uint64 `json:"frames"`
	Inference
	Echo
	FlushLatenessMS float64 `json:"flush_lateness_ms"`
}

// Partial writes the message for an answered batch.
func Partial(span Span, answer *Inference, echo Echo, lateness time.Duration) []byte {
	return encode(&partial{
		Type:            "partial",
		OldestFrameSeq:  span.OldestSeq,
		NewestFrameSeq:  span.NewestSeq,
		Frames:          span.Frames(),
		Inference:       *answer,
		Echo:            echo,
		FlushLatenessMS: milliseconds(lateness),
	})
}

// ErrorContext is what an error message says beside the failure itself.
type ErrorContext struct {
	Span Span
	// Now is when the failure was found; the frames' ages count from it.
	Now      time.Duration
	Lateness time.Duration
	// Elapsed is how long the request took; nil where there was none.
	Elapsed *time.Duration
	// InflightBatches and BufferFrames describe the session at that time.
	InflightBatches, BufferFrames uint64
}

// errorMessage is the contract's section 7, field by field.
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
	InflightGatewayBatches uint64   `json:"inflight_gateway_batches"`
	GatewayBufferFrames    uint64   `json:"gateway_buffer_frames"`
	InferenceStatus        *int     `json:"inference_status"`
	Retryable              bool     `json:"retryable"`
}

// Error writes the message for frames that have no transcript.
func Error(failure *Failure, about *ErrorContext) []byte {
	text := &errorMessage{
		Type:                   "error",
		Stage:                  failure.Kind.Stage(),
		Kind:                   failure.Kind.String(),
		Message:                failure.Message,
		OldestFrameSeq:         about.Span.OldestSeq,
		NewestFrameSeq:         about.Span.NewestSeq,
		Frames:                 about.Span.Frames(),
		AudioBytes:             about.Span.Frames() * FrameBytes,
		OldestAgeMS:            milliseconds(about.Now - about.Span.OldestAt),
		NewestAgeMS:            milliseconds(about.Now - about.Span.NewestAt),
		FlushLatenessMS:        milliseconds(about.Lateness),
		InflightGatewayBatches: about.InflightBatches,
		GatewayBufferFrames:    about.BufferFrames,
		Retryable:              failure.Kind.Retryable(),
	}
	if about.Elapsed != nil {
		elapsedMS := milliseconds(*about.Elapsed)
		text.InferenceElapsedMS = &elapsedMS
	}
	if failure.Status != 0 {
		text.InferenceStatus = &failure.Status
	}
	return encode(text)
}

// milliseconds is never negative: two goroutines may read the clock in one order and take the lock in the other.
func milliseconds(d time.Duration) float64 {
	return float64(max(d, 0)) / float64(time.Millisecond)
}

func encode(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		// Strict parsing lets no NaN or infinity in, and nothing else here can fail.
		panic(err)
	}
	return text
}
