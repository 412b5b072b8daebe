package message

import (
	"encoding/json"
	"time"
)

// Result is a transcript from a provider.
type Result struct {
	Transcript  string
	Final       bool
	SpeechFinal bool
	Confidence  float64
	Provider    time.Duration
}

// Ready says that a session is open.
func Ready(streamID string) []byte {
	return encode(&struct {
		Type            string `json:"type"`
		StreamID        string `json:"stream_id"`
		ProtocolVersion string `json:"protocol_version"`
	}{"ready", streamID, "1.0"})
}

// STTResult passes a result on.
func STTResult(r *Result) []byte {
	return encode(&struct {
		Type          string  `json:"type"`
		Transcript    string  `json:"transcript"`
		IsFinal       bool    `json:"is_final"`
		IsSpeechFinal bool    `json:"is_speech_final"`
		Confidence    float64 `json:"confidence"`
		ProviderMS    float64 `json:"provider_ms"`
	}{"stt_result", r.Transcript, r.Final, r.SpeechFinal, r.Confidence, milliseconds(r.Provider)})
}

// PlaybackComplete says that a reply is whole, but for what was dropped of it.
func PlaybackComplete(now time.Time, speak int, provider time.Duration, droppedBytes int64) []byte {
	return encode(&struct {
		Type         string  `json:"type"`
		Timestamp    int64   `json:"timestamp"`
		Speak        int     `json:"speak"`
		ProviderMS   float64 `json:"provider_ms"`
		DroppedBytes int64   `json:"dropped_bytes"`
	}{"tts_playback_complete", now.UnixMilli(), speak, milliseconds(provider), droppedBytes})
}

// Error tells a failure.
func Error(f *Failure) []byte {
	return encode(&struct {
		Type      string `json:"type"`
		Message   string `json:"message"`
		Kind      Kind   `json:"kind"`
		Retryable bool   `json:"retryable"`
	}{"error", f.Message, f.Kind, f.Retryable})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func encode(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		// JSON has no NaN and no infinity, so no provider can have told one, and nothing else can fail.
		panic(err)
	}
	return text
}
