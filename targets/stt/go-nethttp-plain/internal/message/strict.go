package message

import (
	"encoding/json"
	"fmt"
)

// IsStart says whether text is the start message, however it is spaced or escaped.
func IsStart(text []byte) bool {
	var kind string
	err := strictObject(text, map[string]any{"type": &kind})
	return err == nil && kind == "start"
}

// ParseAnswer reads the body of a 200.
func ParseAnswer(body []byte) (*Answer, error) {
	answer := new(Answer)
	err := strictObject(body, map[string]any{
		"rms":            &answer.RMS,
		"zero_crossings": &answer.ZeroCrossings,
		"checksum":       &answer.Checksum,
		"samples":        &answer.Samples,
		"transcript":     &answer.Transcript,
		"audio_bytes":    &answer.AudioBytes,
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// strictObject reads a JSON object that has exactly these fields. It goes through a map, because the fields of a struct
// may be missing, and are found whatever the case of their names. A repeated field is not seen: the last one counts.
func strictObject(text []byte, fields map[string]any) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	if len(object) != len(fields) {
		return fmt.Errorf("%d fields instead of %d", len(object), len(fields))
	}
	for name, field := range fields {
		value, ok := object[name]
		if !ok {
			return fmt.Errorf("field %q is missing", name)
		}
		// json.Unmarshal takes a null for any type.
		if string(value) == "null" {
			return fmt.Errorf("field %q is null", name)
		}
		if err := json.Unmarshal(value, field); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	return nil
}
