package wire

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

const bytesMax = 64 * 1024

// frameHeader writes a header as a client does.
func frameHeader(fin bool, opcode byte, length uint64, masked bool) []byte {
	header := []byte{opcode, 0}
	if fin {
		header[0] |= finBit
	}
	switch {
	case length > 0xFFFF:
		header[1] = length64
		header = binary.BigEndian.AppendUint64(header, length)
	case length >= length16:
		header[1] = length16
		header = binary.BigEndian.AppendUint16(header, uint16(length))
	default:
		header[1] = byte(length)
	}
	if masked {
		header[1] |= maskBit
		header = append(header, 1, 2, 3, 4)
	}
	return header
}

func TestGuardRefusesByTheHeaderAlone(t *testing.T) {
	good := append(frameHeader(true, 2, 640, true), make([]byte, 640)...)
	for name, c := range map[string]struct {
		bad  []byte
		pass bool
	}{
		"at the limit":            {frameHeader(true, 2, bytesMax, true), true},
		"one over":                {frameHeader(true, 2, bytesMax+1, true), false},
		"text":                    {frameHeader(true, 1, bytesMax+1, true), false},
		"63 bits":                 {frameHeader(true, 2, 1<<63-1, true), false},
		"64 bits":                 {frameHeader(true, 2, 1<<64-1, true), false},
		"unmasked":                {frameHeader(true, 2, 1<<20, false), false},
		"a long ping":             {frameHeader(true, 9, 1<<20, true), true},
		"a long reserved control": {frameHeader(true, 11, 1<<20, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(bytesMax, bytesMax)
			want := len(good)
			if c.pass {
				want += len(c.bad)
			}
			if got := g.admit(append(append([]byte{}, good...), c.bad...)); got != want {
				t.Errorf("admitted %d of %d, want %d", got, len(good)+len(c.bad), want)
			}
		})
	}
}

func TestGuardHasALimitForEachKind(t *testing.T) {
	for name, c := range map[string]struct {
		stream []byte
		pass   bool
	}{
		"text":            {frameHeader(true, 1, 101, true), false},
		"binary":          {frameHeader(true, 2, 101, true), true},
		"long binary":     {frameHeader(true, 2, 201, true), false},
		"rest of a text":  {append(frameHeader(false, 1, 0, true), frameHeader(true, 0, 101, true)...), false},
		"rest of a bytes": {append(frameHeader(false, 2, 0, true), frameHeader(true, 0, 101, true)...), true},
	} {
		g := newGuard(100, 200)
		if got := g.admit(c.stream) == len(c.stream); got != c.pass {
			t.Errorf("%s: admitted %v", name, got)
		}
	}
}

// TestGuardCountsFragments cuts random frames at random places: the guard must stop exactly before the frame that takes
// its message over the limit.
func TestGuardCountsFragments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		end, message := -1, uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "frames") {
			opcode := rapid.SampledFrom([]byte{0, 1, 2, 9, 10}).Draw(t, "opcode")
			fin := rapid.Bool().Draw(t, "fin")
			length := rapid.SampledFrom([]uint64{0, 1, 125, 126, 640, 20_000, 0xFFFF, bytesMax, bytesMax + 1}).Draw(t, "length")
			if opcode&controlBit == 0 {
				if opcode != continuedOp {
					message = 0
				}
				if message += length; message > bytesMax && end < 0 {
					end = len(stream)
				}
				if fin {
					message = 0
				}
			}
			stream = append(stream, frameHeader(fin, opcode, length, rapid.Bool().Draw(t, "masked"))...)
			// What is in the payload must not matter.
			for range length {
				stream = append(stream, 0xFF)
			}
		}
		g := newGuard(bytesMax, bytesMax)
		for at := 0; at < len(stream); {
			step := rapid.IntRange(1, 5000).Draw(t, "step")
			if rapid.IntRange(0, 3).Draw(t, "small") == 0 {
				step = 1 + step%14
			}
			piece := stream[at:min(at+step, len(stream))]
			admitted := g.admit(piece)
			at += admitted
			if admitted < len(piece) {
				// A header that began in an earlier piece has passed in part.
				if end < 0 || at < end || at >= end+10 {
					t.Fatalf("stopped at %d, want %d", at, end)
				}
				return
			}
		}
		if end >= 0 {
			t.Fatalf("did not stop at %d of %d", end, len(stream))
		}
	})
}

func BenchmarkGuard(b *testing.B) {
	frame := append(frameHeader(true, 2, 640, true), make([]byte, 640)...)
	g := newGuard(bytesMax, bytesMax)
	for b.Loop() {
		g.admit(frame)
	}
}
