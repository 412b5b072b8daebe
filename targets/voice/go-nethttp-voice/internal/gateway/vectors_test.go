package gateway

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

type vector struct {
	ID     string
	When   string
	Text   *string
	Binary *int `json:"binary_bytes"`
	Speak  *int `json:"speak_text_bytes"`
	Length *int `json:"text_bytes"`
	Kind   *string
	Close  *int
}

// send sends the message of a vector, and says whether it was only declared.
func (v *vector) send(t *testing.T, c *client) {
	switch {
	case v.Text != nil:
		c.say(*v.Text)
	case v.Speak != nil:
		c.speak(strings.Repeat("x", *v.Speak), "")
	case v.Length != nil:
		c.declare(websocket.MessageText, *v.Length)
	case v.Binary != nil && v.Close != nil:
		c.declare(websocket.MessageBinary, *v.Binary)
	case v.Binary != nil:
		c.audio(make([]byte, *v.Binary))
	default:
		t.Fatal("a vector without a message")
	}
}

// declare sends the header of a frame and nothing behind it.
func (c *client) declare(kind websocket.MessageType, length int) {
	c.t.Helper()
	header := binary.BigEndian.AppendUint64([]byte{0x80 | byte(kind), 0x80 | 127}, uint64(length))
	if _, err := c.raw.Write(append(header, 1, 2, 3, 4)); err != nil {
		c.t.Fatal(err)
	}
}

func TestMessageVectors(t *testing.T) {
	text, err := os.ReadFile("../../../vectors/messages.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []*vector }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(file.Cases), err)
	}
	s := start(t, nil)
	for _, v := range file.Cases {
		t.Run(v.ID, func(t *testing.T) {
			c := s.connect(t)
			switch v.When {
			case "ready":
				c.say(configFor("deepgram"))
				c.expect("ready")
			case "without_audio":
				c.say(`{"type":"config","audio":false}`)
				c.expect("ready")
			}
			v.send(t, c)
			switch {
			case v.Close != nil:
				c.expectClose(websocket.StatusCode(*v.Close), patience)
			case v.Kind != nil:
				c.expect(*v.Kind)
				// An error ends nothing.
				c.say(`{"type":"?"}`)
				c.expect("bad_message")
			default:
				c.expectSilence()
			}
		})
	}
}

// expectSilence wants nothing but audio and the end of a reply, up to the answer to a message that is bad.
func (c *client) expectSilence() {
	c.t.Helper()
	time.Sleep(50 * time.Millisecond)
	c.say(`{"type":"?"}`)
	for {
		h, err := c.next(patience)
		if err != nil {
			c.t.Fatal(err)
		}
		if h.Type == "error" && strings.Contains(h.Message, `"?"`) {
			return
		}
		if h.Type != "audio" && h.Type != "tts_playback_complete" {
			c.t.Fatalf("got %+v", h)
		}
	}
}
