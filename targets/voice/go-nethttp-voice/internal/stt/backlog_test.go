package stt

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestTheNewestAudioIsKept pushes, pops, gives back, trims and loses connections at random, and compares with the stream
// itself.
func TestTheNewestAudioIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b backlog
		var whole []byte
		at, told, cut := 0, int64(0), false
		// What is on its way ends at end.
		var onItsWay []byte
		end := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				piece := make([]byte, 2*rapid.IntRange(1, 4000).Draw(t, "samples"))
				for i := range piece {
					piece[i] = byte((len(whole) + i) * 7 / 5)
				}
				whole = append(whole, piece...)
				b.push(bytes.Clone(piece))
			case 2:
				switch {
				case onItsWay == nil:
					if past := at % frameBytes; cut && past > 0 {
						skipped := min(frameBytes-past, len(whole)-at)
						at, told = at+skipped, told+int64(skipped)
					}
					cut = cut && at%frameBytes != 0
					onItsWay = b.pop()
					if !bytes.Equal(onItsWay, whole[at:at+len(onItsWay)]) {
						t.Fatal("other audio")
					}
					at += len(onItsWay)
					end = at
				case rapid.Bool().Draw(t, "arrived"):
					onItsWay = nil
				default:
					b.giveBack(onItsWay, int64(end))
					if at == end {
						at -= len(onItsWay)
					} else {
						told += int64(len(onItsWay))
					}
					onItsWay, cut = nil, true
				}
			case 3:
				limit := rapid.IntRange(0, 20_000).Draw(t, "limit")
				before := b.bytes
				b.trim(limit)
				dropped := before - b.bytes
				if b.bytes > limit || before <= limit && dropped > 0 || before > limit && dropped >= before-limit+frameBytes {
					t.Fatalf("%d of %d left at a limit of %d", b.bytes, before, limit)
				}
				if at += dropped; dropped > 0 && b.bytes > 0 && at%frameBytes != 0 {
					t.Fatalf("it begins at %d", at)
				}
				told += int64(dropped)
			case 4:
				b.cut, cut = true, true
			}
			if b.head != int64(at) || b.bytes != len(whole)-at || b.dropped != told {
				t.Fatalf("head %d, %d bytes, %d dropped; want %d, %d, %d", b.head, b.bytes, b.dropped, at, len(whole)-at, told)
			}
		}
	})
}
