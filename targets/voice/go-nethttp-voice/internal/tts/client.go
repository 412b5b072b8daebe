// Package tts asks providers to speak a text and hands over the audio as it arrives.
package tts

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
)

// Client asks providers. All sessions share it and its connections.
type Client struct {
	// Key goes along; empty for none.
	Key string
	// First is the time to the first byte, of both tries together, Gap that between two.
	First, Gap time.Duration
	Metrics    *metrics.Metrics

	transport *http.Transport
}

// NewClient makes a client without connections; its fields are to be set.
func NewClient() *Client {
	return &Client{transport: &http.Transport{
		// As many as there were replies at once. The default of 2 would close nearly every connection after its reply.
		MaxIdleConnsPerHost: 1 << 20,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		WriteBufferSize:     1024,
	}}
}

// ErrCancelled is what a reply ends with whose context has ended.
var ErrCancelled = errors.New("cancelled")

// drainBytesMax is how much of a refusal's body is read, so that its connection can be used again.
const drainBytesMax = 64 << 10

// Open asks for a text to be spoken. It tries once more after a reset, a refused connection or a 5xx before the first
// byte. It returns when the first bytes are in the buffer, with their number. The error is a [message.Failure] or
// ErrCancelled.
func (c *Client) Open(ctx context.Context, base *url.URL, config *message.TTSConfig, text string, buffer []byte) (*Stream, int, error) {
	asked := time.Now()
	s := newStream(ctx, c, config.Provider+"_tts", c.First)
	n, again, err := s.try(c.request(s.ctx, base, config, text), buffer)
	if again {
		s = newStream(ctx, c, config.Provider+"_tts", c.First-time.Since(asked))
		n, _, err = s.try(c.request(s.ctx, base, config, text), buffer)
	}
	if err != nil {
		return nil, 0, err
	}
	return s, n, nil
}

// try asks once; again says that it may be tried again.
func (s *Stream) try(request *http.Request, buffer []byte) (n int, again bool, err error) {
	response, err := s.client.transport.RoundTrip(request)
	if err != nil {
		err = s.fail(err)
		return 0, isReset(err), err
	}
	s.body = response.Body
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, s.body, drainBytesMax)
		s.end(metrics.Failed)
		return 0, response.StatusCode >= http.StatusInternalServerError, refusal(response.StatusCode)
	}
	for n == 0 && err == nil {
		n, err = s.body.Read(buffer)
	}
	if n == 0 {
		if err == io.EOF {
			err = errNoAudio
		}
		err = s.fail(err)
		return 0, isReset(err), err
	}
	s.began(response.Header)
	s.err = err
	return n, false, nil
}

// refusal is the failure for a status that is not 200.
func refusal(status int) error {
	const told = "the provider answered %d"
	switch {
	case status == http.StatusTooManyRequests:
		return message.FailedForNow(message.TTSRateLimited, told, status)
	case status >= http.StatusInternalServerError:
		return message.FailedForNow(message.TTSFailed, told, status)
	}
	return message.Failed(message.TTSFailed, told, status)
}

var errNoAudio = errors.New("no audio")

// isReset says whether a failure of the connection is one that another try may not meet.
func isReset(err error) bool {
	var failure *message.Failure
	return errors.As(err, &failure) && failure.Kind == message.TTSFailed && failure.Retryable
}

// providerTime is what a mock says that it took.
func providerTime(header http.Header, otherwise time.Duration) time.Duration {
	ms, err := strconv.ParseFloat(header.Get("x-mock-provider-ms"), 64)
	// Bounded, for a float may be more than a duration holds.
	if err != nil || !(ms >= 0 && ms < 1e9) {
		return otherwise
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// RoundTrip sends a request that is none for a reply over the same connections.
func (c *Client) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.transport.RoundTrip(request)
}
