package outbox

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gonethttpvoice/internal/chunk"
)

// blocks is audio whose every block begins with its number.
func blocks(count int) []byte {
	audio := make([]byte, count*blockBytes)
	for i := range count {
		binary.LittleEndian.PutUint32(audio[i*blockBytes:], uint32(i+1))
	}
	return audio
}

func drain(o *Outbox, now time.Duration) (audio []byte, texts []string) {
	for {
		item, ok := o.Next(now)
		if !ok {
			return audio, texts
		}
		if item.Text {
			texts = append(texts, string(item.Payload))
		} else {
			audio = append(audio, item.Payload...)
		}
	}
}

func TestAudioIsMergedButNotAcrossMessages(t *testing.T) {
	o := Outbox{LimitBytes: 1 << 20}
	var a, b Reply
	o.Audio(&a, blocks(1))
	o.Audio(&a, blocks(1))
	o.Text([]byte("complete"), &a)
	o.Audio(&b, blocks(1))
	var lengths []int
	for !o.Empty() {
		item, _ := o.Next(0)
		lengths = append(lengths, len(item.Payload))
		if item.Last != (len(lengths) == 2) {
			t.Errorf("item %d: last is %v", len(lengths), item.Last)
		}
	}
	if len(lengths) != 3 || lengths[0] != 1920 || lengths[1] != 8 || lengths[2] != 960 {
		t.Errorf("got %v", lengths)
	}
}

func TestRemoveTakesOneReplyAndItsEnd(t *testing.T) {
	o := Outbox{LimitBytes: 1 << 20}
	var a, b Reply
	o.Audio(&a, blocks(10))
	o.Text([]byte("a ends"), &a)
	o.Text([]byte("result"), nil)
	o.Audio(&b, blocks(2))
	o.Next(0)
	o.Remove(&a)
	if o.Waiting() != len("result")+2*blockBytes {
		t.Errorf("%d bytes wait", o.Waiting())
	}
	audio, texts := drain(&o, 0)
	if !bytes.Equal(audio, blocks(2)) || len(texts) != 1 || texts[0] != "result" {
		t.Errorf("%d bytes, %q", len(audio), texts)
	}
}

func TestResultsWaitForHalfASecond(t *testing.T) {
	for _, c := range []struct {
		limit int
		after time.Duration
		want  int
	}{
		{2, 499 * time.Millisecond, 1},
		{2, 500 * time.Millisecond, 0},
		{1 << 20, time.Hour, 1},
	} {
		o := Outbox{LimitBytes: c.limit}
		o.Result(0, []byte("result"))
		if _, texts := drain(&o, c.after); len(texts) != c.want {
			t.Errorf("%+v: %q", c, texts)
		}
		if o.Waiting() != 0 {
			t.Errorf("%d bytes wait", o.Waiting())
		}
	}
}

// TestOnlyWholeBlocksAreDropped cuts a reply anywhere and reads it at any pace.
func TestOnlyWholeBlocksAreDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Outbox{LimitBytes: rapid.IntRange(0, 20_000).Draw(t, "limit")}
		var of Reply
		var got []byte
		rest := blocks(rapid.IntRange(1, 100).Draw(t, "blocks"))
		whole := len(rest)
		for len(rest) > 0 {
			take := min(len(rest), rapid.IntRange(1, chunk.Bytes).Draw(t, "piece"))
			o.Audio(&of, rest[:take])
			rest = rest[take:]
			if o.Waiting() > o.LimitBytes+blockBytes {
				t.Fatalf("%d bytes wait", o.Waiting())
			}
			for range rapid.IntRange(0, 3).Draw(t, "reads") {
				if item, ok := o.Next(0); ok {
					got = append(got, item.Payload...)
				}
			}
		}
		audio, _ := drain(&o, 0)
		got = append(got, audio...)
		if int64(whole-len(got)) != of.Dropped || len(got)%blockBytes != 0 {
			t.Fatalf("%d of %d, %d dropped", len(got), whole, of.Dropped)
		}
		for at, last := 0, uint32(0); at < len(got); at += blockBytes {
			number := binary.LittleEndian.Uint32(got[at:])
			if number <= last {
				t.Fatalf("block %d after %d", number, last)
			}
			last = number
		}
	})
}
