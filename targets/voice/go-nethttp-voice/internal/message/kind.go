// Package message holds the JSON between a caller and the gateway, and what can go wrong. It knows nothing of sessions or
// sockets.
package message

import "fmt"

// Kind is that of an `error`.
type Kind string

// The contract's kinds.
const (
	BadMessage     Kind = "bad_message"
	NotReady       Kind = "not_ready"
	BadConfig      Kind = "bad_config"
	TooLarge       Kind = "too_large"
	Unsupported    Kind = "unsupported"
	STTFailed      Kind = "stt_failed"
	STTLost        Kind = "stt_lost"
	AudioDropped   Kind = "audio_dropped"
	TTSFailed      Kind = "tts_failed"
	TTSTimeout     Kind = "tts_timeout"
	TTSRateLimited Kind = "tts_rate_limited"
)

// Kinds are all of them.
var Kinds = []Kind{
	BadMessage, NotReady, BadConfig, TooLarge, Unsupported, STTFailed, STTLost, AudioDropped, TTSFailed, TTSTimeout,
	TTSRateLimited,
}

// messageBytesMax bounds what a failure quotes from elsewhere.
const messageBytesMax = 200

// Failure is something that the caller is told.
type Failure struct {
	Kind    Kind
	Message string
	// Retryable says that the same may succeed a moment later.
	Retryable bool
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Kind, f.Message) }

// Failed makes a failure that will not pass.
func Failed(kind Kind, format string, arguments ...any) *Failure {
	text := fmt.Sprintf(format, arguments...)
	return &Failure{Kind: kind, Message: text[:min(len(text), messageBytesMax)]}
}

// FailedForNow makes a failure that may pass.
func FailedForNow(kind Kind, format string, arguments ...any) *Failure {
	failure := Failed(kind, format, arguments...)
	failure.Retryable = true
	return failure
}
