package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

const limit = 70_000

// header is a client's header with any first byte, with its mask.
func header(first byte, length uint64) []byte {
	head := []byte{first, 0}
	switch {
	case length > 0xFFFF:
		head[1] = length64
		head = binary.BigEndian.AppendUint64(head, length)
	case length >= length16:
		head[1] = length16
		head = binary.BigEndian.AppendUint16(head, uint16(length))
	default:
		head[1] = byte(length)
	}
	head[1] |= maskBit
	return append(head, 1, 2, 3, 4)
}

func TestTheHeaderAloneIsEnough(t *testing.T) {
	before := append(header(0x82, 640), make([]byte, 640)...)
	for name, c := range map[string]struct {
		stream []byte
		passes bool
	}{
		"at the limit":    {header(0x82, limit), true},
		"one over":        {header(0x82, limit+1), false},
		"text":            {header(0x81, limit+1), false},
		"a fragment":      {header(0x02, limit+1), false},
		"64 bits":         {header(0x82, 1<<64-1), false},
		"a long ping":     {header(0x89, 1<<20), true},
		"an endless ping": {header(0x89, 1<<64-1), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard{limit: limit}
			stream := append(append([]byte{}, before...), c.stream...)
			got := g.pass(stream)
			if c.passes && got != len(stream) {
				t.Errorf("stopped at %d of %d", got, len(stream))
			}
			// The last byte of the length must not pass; that of the mask need not have come.
			if !c.passes && got != len(stream)-maskLength-1 {
				t.Errorf("stopped at %d, want %d", got, len(stream)-maskLength-1)
			}
		})
	}
}

// TestCutsMakeNoDifference stops random streams of frames, cut anywhere, within the header that takes a message over the
// limit, and nowhere else.
func TestCutsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		begin, end, message := -1, -1, uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "frames") {
			opcode := rapid.SampledFrom([]byte{0, 1, 2, 9, 10}).Draw(t, "opcode")
			sizes := []uint64{0, 1, 125, 126, 640, 20_000, 0xFFFF, limit, limit + 1}
			if opcode&controlBit != 0 {
				sizes = sizes[:3]
			}
			length := rapid.SampledFrom(sizes).Draw(t, "length")
			first := opcode
			if opcode&controlBit != 0 || rapid.Bool().Draw(t, "fin") {
				first |= finBit
			}
			head := header(first, length)
			if opcode&controlBit == 0 {
				if opcode != opContinued {
					message = 0
				}
				if message += length; message > limit && begin < 0 {
					begin, end = len(stream), len(stream)+len(head)-maskLength
				}
				if first&finBit != 0 {
					message = 0
				}
			}
			stream = append(stream, head...)
			// What is in a payload must not matter.
			stream = append(stream, bytes.Repeat([]byte{0xFF}, int(length))...)
		}
		g := guard{limit: limit}
		for at := 0; at < len(stream); {
			step := rapid.SampledFrom([]int{1, 3, 14, 1000, 40_000}).Draw(t, "step")
			piece := stream[at:min(at+step, len(stream))]
			passed := g.pass(piece)
			at += passed
			if passed < len(piece) {
				if at < begin || at >= end {
					t.Fatalf("stopped at %d, want %d to %d", at, begin, end)
				}
				return
			}
		}
		if begin >= 0 {
			t.Fatalf("did not stop at %d of %d", begin, len(stream))
		}
	})
}

func BenchmarkGuard(b *testing.B) {
	frame := append(header(0x82, 175), make([]byte, 175)...)
	g := guard{limit: limit}
	for b.Loop() {
		g.pass(frame)
	}
}
