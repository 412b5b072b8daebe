package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"gonethttp/common/wire"

	"gonethttpvoice/internal/chunk"
	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
	"gonethttpvoice/internal/outbox"
	"gonethttpvoice/internal/stt"
)

const (
	// textBytesMax and binaryBytesMax are the longest messages that a client may declare, audioBytesMax the longest that
	// is taken as audio.
	textBytesMax   = 1 << 20
	binaryBytesMax = 10 << 20
	audioBytesMax  = 5 << 20
	// behindBytes is how much must wait for a caller before it is watched closely.
	behindBytes = 16 << 10
)

// closing is why the gateway ends a session; it implements [wire.Closing].
type closing struct {
	code int
	why  string
}

func (c *closing) Error() string  { return c.why }
func (c *closing) CloseCode() int { return c.code }

// The reasons.
var (
	errGoingAway    = &closing{1001, "the gateway shuts down"}
	errIdle         = &closing{1001, "nothing came"}
	errNotUTF8      = &closing{1007, "a text that is not UTF-8"}
	errNoConfig     = &closing{1008, "no config in time"}
	errFlood        = &closing{1008, "too many bad messages"}
	errTakesNothing = &closing{1008, "the socket takes nothing"}
	errTooLarge     = &closing{1009, "a declared length over the limit"}
)

type phase int

const (
	awaitingConfig phase = iota
	// connecting: the STT connection is not open yet.
	connecting
	ready
	// withoutAudio: ready to a config with "audio":false.
	withoutAudio
)

// session is one caller.
//
// One goroutine, serve, reads the socket, keeps the time (see [wire.Conn]) and ends the session. Others exist for
// moments only: deliver while something waits to be written, play while a reply is spoken. The listener has its own.
type session struct {
	gateway  *Gateway
	address  string
	socket   *websocket.Conn
	conn     *wire.Conn
	base     *url.URL
	openedAt time.Duration
	// stall belongs to the reading goroutine.
	stall stall

	// mu guards what follows. It is held for moments only, never while something is read, sent or waited for. It is
	// taken before the listener's, if both are.
	mu sync.Mutex
	// ctx ends with the session, and its requests to providers with it.
	ctx      context.Context
	cancel   context.CancelFunc
	phase    phase
	streamID string
	tts      message.TTSConfig
	listener *stt.Listener
	// configured says that a config came, good or bad.
	configured bool
	flood      flood
	// finalAt is when a speech-final is made up; 0 for never.
	finalAt time.Duration
	replies replies
	out     outbox.Outbox
	// writing says that a goroutine is in deliver.
	writing bool
	// watched says that Wake looks often whether the socket takes anything.
	watched bool
	over    bool
}

func newSession(g *Gateway, address string) *session {
	s := &session{gateway: g, address: address, base: g.provider(), openedAt: g.door.Clock()}
	s.out.LimitBytes = g.config.OutBufferBytes
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// serve runs the session to its end.
func (s *session) serve() {
	err := s.receive()

	s.mu.Lock()
	s.over = true
	s.cancel()
	for range s.replies.all {
		s.gateway.metrics.Speaks[metrics.Dropped].Inc()
	}
	s.replies.all = nil
	s.out.Clear()
	listener := s.listener
	s.mu.Unlock()
	if listener != nil {
		listener.Close()
	}
	// The next client may have this one's place before its close is through.
	s.gateway.door.Leave(s.address, s)
	patience := wire.Linger
	if errors.Is(err, errTakesNothing) {
		patience = stalledPatience
	}
	wire.Finish(s.socket, s.conn, err, patience)
}

// Kick implements [admission.Kicker].
func (s *session) Kick() { s.conn.Kick() }

// receive takes what the client sends, until it ends.
func (s *session) receive() error {
	for {
		// The context is never done: the library would otherwise arm and disarm a timer for each header and payload.
		kind, reader, err := s.socket.Reader(context.Background())
		if err != nil {
			return err
		}
		if kind == websocket.MessageText {
			err = s.text(reader)
		} else {
			err = s.binary(reader)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) text(reader io.Reader) error {
	// At most textBytesMax.
	text, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return errNotUTF8
	}
	now := s.conn.ReadAt()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuse(now, s.take(text))
}

// take acts on a message. The lock is held.
func (s *session) take(text []byte) *message.Failure {
	kind, fields, failure := message.Parse(text)
	if failure != nil {
		return failure
	}
	if kind == "config" {
		return s.configure(fields)
	}
	if failure := s.notReady(); failure != nil {
		return failure
	}
	if kind == "clear" {
		s.dropReplies()
		return nil
	}
	speak, failure := fields.Speak()
	if failure != nil {
		return failure
	}
	return s.queue(speak)
}

// notReady is the failure of what comes too early; nil when it does not.
func (s *session) notReady() *message.Failure {
	switch s.phase {
	case ready:
		return nil
	case withoutAudio:
		return message.Failed(message.NotReady, "this session is without audio")
	}
	return message.FailedForNow(message.NotReady, "the session is not ready")
}

// refuse tells the client of a bad message; its error ends the session of a client that sends many.
func (s *session) refuse(now time.Duration, failure *message.Failure) error {
	if failure == nil {
		return nil
	}
	s.tell(failure)
	if s.flood.add(now) {
		return errFlood
	}
	return nil
}

// configure opens the session as asked.
func (s *session) configure(fields *message.Fields) *message.Failure {
	s.configured = true
	if s.phase != awaitingConfig {
		return message.Failed(message.BadConfig, "the session has a config")
	}
	config, failure := fields.Config()
	if failure != nil {
		return failure
	}
	if config.StreamID != nil {
		s.streamID = *config.StreamID
	} else {
		s.streamID = uuid()
	}
	if !config.Audio {
		s.phase = withoutAudio
		s.write(message.Ready(s.streamID))
		return nil
	}
	s.phase, s.tts = connecting, config.TTS
	s.listener = s.gateway.stt.Open(stt.Endpoint(s.base, &config.STT), s)
	return nil
}

// uuid makes a random one.
func uuid() string {
	var b [16]byte
	// Never fails.
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0F | 0x40
	b[8] = b[8]&0x3F | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (s *session) binary(reader io.Reader) error {
	audio, length, err := readAudio(reader)
	if err != nil {
		return err
	}
	now := s.conn.ReadAt()
	s.mu.Lock()
	failure := s.notReady()
	switch {
	case failure != nil:
	case length > audioBytesMax:
		failure = message.Failed(message.TooLarge, "audio of more than %d bytes", audioBytesMax)
	case length%2 != 0:
		failure = message.Failed(message.BadMessage, "audio of an odd number of bytes")
	}
	listener := s.listener
	err = s.refuse(now, failure)
	s.mu.Unlock()
	// Providers take an empty message for the end.
	if failure != nil || length == 0 {
		chunk.Put(audio)
		return err
	}
	s.gateway.metrics.AudioIn.Add(float64(length))
	listener.Push(audio)
	return nil
}

// readAudio reads a message into a buffer, and of one that is too long only the length.
func readAudio(reader io.Reader) (audio []byte, length int, err error) {
	audio = chunk.Get()
	for {
		if len(audio) == cap(audio) {
			if len(audio) > audioBytesMax {
				rest, err := io.Copy(io.Discard, reader)
				return audio, len(audio) + int(rest), err
			}
			longer := append(audio, 0)[:len(audio)]
			chunk.Put(audio)
			audio = longer
		}
		n, err := reader.Read(audio[len(audio):cap(audio)])
		audio = audio[:len(audio)+n]
		if err == io.EOF {
			return audio, len(audio), nil
		}
		if err != nil {
			return audio, len(audio), err
		}
	}
}
