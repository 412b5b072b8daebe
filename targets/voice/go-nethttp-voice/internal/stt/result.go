package stt

import (
	"encoding/json"
	"io"
	"time"

	"gonethttpvoice/internal/message"
)

// parseResult reads a provider's message; nil for one that is no result. The second value is where in the audio of the
// connection, in bytes, the result ends.
func parseResult(text []byte) (*message.Result, int64) {
	var m struct {
		Type        string  `json:"type"`
		Start       float64 `json:"start"`
		Duration    float64 `json:"duration"`
		Final       bool    `json:"is_final"`
		SpeechFinal bool    `json:"speech_final"`
		Channel     struct {
			Alternatives []struct {
				Transcript string  `json:"transcript"`
				Confidence float64 `json:"confidence"`
			} `json:"alternatives"`
		} `json:"channel"`
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Type != "Results" {
		return nil, 0
	}
	result := &message.Result{Final: m.Final, SpeechFinal: m.SpeechFinal}
	if len(m.Channel.Alternatives) > 0 {
		best := &m.Channel.Alternatives[0]
		result.Transcript, result.Confidence = best.Transcript, best.Confidence
	}
	return result, int64((m.Start + m.Duration) * 1000 * bytesPerMS)
}

// readInto reads all there is behind what a buffer holds.
func readInto(buffer []byte, reader io.Reader) ([]byte, error) {
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
		n, err := reader.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if err == io.EOF {
			return buffer, nil
		}
		if err != nil {
			return buffer, err
		}
	}
}

// sent remembers when the last pieces of a connection's audio were sent, so that a result's time is known.
type sent struct {
	bytes int64
	marks [64]struct {
		end int64
		at  time.Duration
	}
	count int
}

func (s *sent) add(bytes int, at time.Duration) {
	s.bytes += int64(bytes)
	mark := &s.marks[s.count%len(s.marks)]
	mark.end, mark.at = s.bytes, at
	s.count++
}

// since is how long ago the audio up to end was sent. It counts from the newest piece where that one is not known:
// providers need not count from the beginning of the connection.
func (s *sent) since(end int64, now time.Duration) time.Duration {
	if s.count == 0 {
		return 0
	}
	at := s.marks[(s.count-1)%len(s.marks)].at
	for back := 2; back <= min(s.count, len(s.marks)); back++ {
		mark := &s.marks[(s.count-back)%len(s.marks)]
		if mark.end < end {
			break
		}
		at = mark.at
	}
	return now - at
}
