package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// json.Unmarshal matches names regardless of case, takes the last of two equal names and does not miss absent ones. The
// contract wants none of that. json.Decoder's tokens would do, at five times the cost; so json.Valid judges the grammar
// and what is valid is then cut into fields, which needs to know little of it.

var (
	errNotAnObject = errors.New("not a JSON object")
	errNested      = errors.New("neither a string nor a number")
)

// strictObject hands the fields of a flat JSON object to field, each once, by their index in names and with the value as
// it is written. It fails unless every name occurs and nothing else does.
func strictObject(text []byte, names []string, field func(index int, value []byte) error) error {
	text = bytes.Trim(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' || !utf8.Valid(text) || !json.Valid(text) {
		return errNotAnObject
	}
	seen := uint(0)
	for rest := skipSpace(text[1:]); rest[0] != '}'; {
		end := scalarEnd(rest)
		name, err := unquote(rest[:end])
		if err != nil {
			return err
		}
		index := slices.Index(names, name)
		if index < 0 {
			return fmt.Errorf("unknown field %q", name)
		}
		if seen&(1<<index) != 0 {
			return fmt.Errorf("field %q twice", name)
		}
		seen |= 1 << index
		// Behind the colon.
		rest = skipSpace(skipSpace(rest[end:])[1:])
		end = scalarEnd(rest)
		if end == 0 {
			return fmt.Errorf("field %q: %w", name, errNested)
		}
		if err := field(index, rest[:end]); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
		rest = skipSpace(rest[end:])
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	if missing := bits.TrailingZeros(^seen); missing < len(names) {
		return fmt.Errorf("field %q is missing", names[missing])
	}
	return nil
}

func skipSpace(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

// scalarEnd is the length of the string, number or word that valid JSON begins with; 0 for anything else.
func scalarEnd(text []byte) int {
	if text[0] != '"' {
		return max(bytes.IndexAny(text, " \t\r\n,}{["), 0)
	}
	for end := 1; ; end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			return end + 1
		}
	}
}

func unquote(value []byte) (string, error) {
	if value[0] != '"' {
		return "", errors.New("not a string")
	}
	if plain := value[1 : len(value)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain), nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err
}

var startNames = []string{"type"}

// IsStart says whether text is the start message, however it is spaced or escaped.
func IsStart(text []byte) bool {
	err := strictObject(text, startNames, func(_ int, value []byte) error {
		kind, err := unquote(value)
		if err == nil && kind != "start" {
			err = errors.New("not a start")
		}
		return err
	})
	return err == nil
}

var inferenceNames = []string{"rms", "zero_crossings", "checksum", "samples", "transcript", "audio_bytes"}

// ParseInference reads the body of a 200.
func ParseInference(body []byte) (*Inference, error) {
	answer := new(Inference)
	err := strictObject(body, inferenceNames, func(index int, value []byte) (err error) {
		switch index {
		case 0:
			answer.RMS, err = float(value)
		case 1:
			answer.ZeroCrossings, err = strconv.ParseUint(string(value), 10, 64)
		case 2:
			var checksum uint64
			checksum, err = strconv.ParseUint(string(value), 10, 32)
			answer.Checksum = uint32(checksum)
		case 3:
			answer.Samples, err = strconv.ParseUint(string(value), 10, 64)
		case 4:
			answer.Transcript, err = unquote(value)
		case 5:
			answer.AudioBytes, err = strconv.ParseUint(string(value), 10, 64)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// float reads a JSON number; strconv alone would also read a word like NaN, if JSON had one.
func float(value []byte) (float64, error) {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, errors.New("not a number")
	}
	return strconv.ParseFloat(string(value), 64)
}
