package tts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"gonethttpvoice/internal/message"
)

// request makes a provider's request for a text; section 4 of the contract.
func (c *Client) request(ctx context.Context, base *url.URL, config *message.TTSConfig, text string) *http.Request {
	var address *url.URL
	var body any
	header := http.Header{"Content-Type": {"application/json"}}
	key, value := "Authorization", "Bearer "+c.Key
	switch config.Provider {
	case "deepgram":
		address = base.JoinPath("/v1/speak")
		address.RawQuery = url.Values{
			"model": {config.Model}, "encoding": {message.Encoding}, "sample_rate": {strconv.Itoa(message.ReplyRate)},
		}.Encode()
		body = map[string]string{"text": text}
		value = "Token " + c.Key
	case "elevenlabs":
		// Escaped, for a voice is one part of the path.
		address = base.JoinPath("/v1/text-to-speech", url.PathEscape(config.VoiceID), "stream")
		address.RawQuery = "output_format=pcm_24000"
		body = map[string]string{"text": text, "model_id": config.Model}
		key, value = "xi-api-key", c.Key
	case "openai":
		address = base.JoinPath("/v1/audio/speech")
		body = map[string]string{
			"model": config.Model, "input": text, "voice": config.VoiceID, "response_format": "pcm",
		}
	case "cartesia":
		address = base.JoinPath("/tts/bytes")
		body = map[string]any{
			"model_id":      config.Model,
			"transcript":    text,
			"voice":         map[string]string{"mode": "id", "id": config.VoiceID},
			"output_format": map[string]any{"container": "raw", "encoding": "pcm_s16le", "sample_rate": message.ReplyRate},
		}
	}
	if c.Key != "" {
		header.Set(key, value)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		// Maps of strings and numbers.
		panic(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(encoded))
	if err != nil {
		// The address was made of one that was parsed.
		panic(err)
	}
	request.Header = header
	return request
}
