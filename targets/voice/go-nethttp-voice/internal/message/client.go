package message

import "slices"

const (
	// SpeakBytesMax is the longest text that is spoken.
	SpeakBytesMax = 102_400
	// streamIDBytesMax is the longest name of a stream.
	streamIDBytesMax = 256

	// CallerRate and ReplyRate are samples per second.
	CallerRate = 16_000
	ReplyRate  = 24_000
	// Encoding is that of all audio.
	Encoding = "linear16"
)

// STTConfig is what a caller wants of speech to text.
type STTConfig struct {
	Language, Model string
	Punctuation     bool
}

// TTSConfig is what a caller wants of text to speech.
type TTSConfig struct {
	Provider, Model, VoiceID string
}

// Config opens a session.
type Config struct {
	// StreamID is nil when the gateway is to make one.
	StreamID *string
	Audio    bool
	STT      STTConfig
	TTS      TTSConfig
}

// Speak asks for a reply.
type Speak struct {
	Text                     string
	Flush, AllowInterruption bool
}

// Parse reads a client's message as far as its type.
func Parse(text []byte) (kind string, fields *Fields, failure *Failure) {
	fields, failure = parseFields(text, "", BadMessage)
	if failure != nil {
		return "", nil, failure
	}
	kind = needed[string](fields, "type")
	if fields.failure != nil {
		return "", nil, fields.failure
	}
	if !slices.Contains([]string{"config", "speak", "clear"}, kind) {
		return "", nil, Failed(BadMessage, "type %q is not known", kind)
	}
	return kind, fields, nil
}

// Config reads the message of this type.
func (f *Fields) Config() (*Config, *Failure) {
	f.kind = BadConfig
	config := &Config{Audio: optional(f, "audio", true)}
	if f.present("stream_id") {
		id := needed[string](f, "stream_id")
		if len(id) > streamIDBytesMax {
			f.fail("stream_id is longer than %d bytes", streamIDBytesMax)
		}
		config.StreamID = &id
	}
	if !config.Audio || f.failure != nil {
		return config, f.failure
	}
	stt, tts := f.object("stt_config"), f.object("tts_config")
	var unsupportedSTT, unsupportedTTS *Failure
	config.STT, unsupportedSTT = stt.sttConfig()
	config.TTS, unsupportedTTS = tts.ttsConfig()
	for _, failure := range []*Failure{f.failure, stt.failure, tts.failure, unsupportedSTT, unsupportedTTS} {
		if failure != nil {
			return nil, failure
		}
	}
	return config, nil
}

func (f *Fields) sttConfig() (STTConfig, *Failure) {
	provider := needed[string](f, "provider")
	encoding := needed[string](f, "encoding")
	rate, channels := needed[float64](f, "sample_rate"), needed[float64](f, "channels")
	config := STTConfig{
		Language:    needed[string](f, "language"),
		Model:       needed[string](f, "model"),
		Punctuation: needed[bool](f, "punctuation"),
	}
	switch {
	case provider != "deepgram":
		return config, Failed(Unsupported, "stt_config.provider %q: give deepgram", provider)
	case encoding != Encoding:
		return config, Failed(Unsupported, "stt_config.encoding %q: give %s", encoding, Encoding)
	case rate != CallerRate || channels != 1:
		return config, Failed(Unsupported, "stt_config: give sample_rate %d and channels 1", CallerRate)
	}
	return config, nil
}

// TTSProviders are those that can speak.
var TTSProviders = []string{"deepgram", "elevenlabs", "openai", "cartesia"}

func (f *Fields) ttsConfig() (TTSConfig, *Failure) {
	config := TTSConfig{
		Provider: needed[string](f, "provider"),
		Model:    needed[string](f, "model"),
		VoiceID:  optional(f, "voice_id", "default"),
	}
	// No request of section 4 carries it.
	optional(f, "speaking_rate", 1.0)
	format := optional(f, "audio_format", Encoding)
	rate := optional(f, "sample_rate", float64(ReplyRate))
	switch {
	case !slices.Contains(TTSProviders, config.Provider):
		return config, Failed(Unsupported, "tts_config.provider %q: give one of %q", config.Provider, TTSProviders)
	case format != Encoding:
		return config, Failed(Unsupported, "tts_config.audio_format %q: give %s", format, Encoding)
	case rate != ReplyRate:
		return config, Failed(Unsupported, "tts_config: give sample_rate %d", ReplyRate)
	}
	return config, nil
}

// Speak reads the message of this type.
func (f *Fields) Speak() (*Speak, *Failure) {
	f.kind = BadMessage
	speak := &Speak{
		Text:              needed[string](f, "text"),
		Flush:             optional(f, "flush", true),
		AllowInterruption: optional(f, "allow_interruption", true),
	}
	if speak.Text == "" {
		f.fail("text is empty")
	}
	if f.failure == nil && len(speak.Text) > SpeakBytesMax {
		return nil, Failed(TooLarge, "text is longer than %d bytes", SpeakBytesMax)
	}
	return speak, f.failure
}
