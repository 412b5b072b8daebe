// Package stt is a session's connection to the provider of speech to text: it carries audio there and results back, and
// comes back when it is lost.
package stt

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"gonethttpvoice/internal/message"
	"gonethttpvoice/internal/metrics"
)

const (
	// tendEvery is how often the connection is pinged, and how long it may be without audio before a KeepAlive.
	tendEvery = 5 * time.Second
	// closePatience is how long the provider may take to close what is asked to close.
	closePatience = 2 * time.Second
	// resultBytesMax is the longest message of a provider.
	resultBytesMax = 1 << 20
	// openBacklogBytesMax is how much may wait for a provider that is connected and does not read: the longest message
	// that a caller may send, and as much again. A ping that is not answered ends it.
	openBacklogBytesMax = 10 << 20
)

const (
	// quickTries come with doubled pauses, from firstPause on; a provider away for longer is tried in quiet.
	quickTries = 5
	firstPause = 100 * time.Millisecond
	quietPause = 2 * time.Second
)

// pauseBefore is the pause before a try to connect again, which count from 0.
func pauseBefore(try int) time.Duration {
	if try < quickTries {
		return firstPause << try
	}
	return quietPause
}

// Client makes connections. All sessions share it.
type Client struct {
	// Key goes along; empty for none.
	Key string
	// Ready is for the connection to open, Pong for the answer to a ping.
	Ready, Pong time.Duration
	// BacklogBytes is how much audio is kept while the provider is away.
	BacklogBytes int
	Metrics      *metrics.Metrics
	// Clock is the time of the sessions.
	Clock func() time.Duration

	http http.Client
}

// NewClient makes a client without connections; its fields are to be set.
func NewClient() *Client {
	// A connection is its session's alone, so there is nothing to keep; and after the handshake its buffers are not
	// used.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ReadBufferSize: 1024, WriteBufferSize: 1024}
	return &Client{http: http.Client{Transport: transport}}
}

// Endpoint is where a session's audio goes.
func Endpoint(base *url.URL, config *message.STTConfig) string {
	query := url.Values{
		"encoding":        {message.Encoding},
		"sample_rate":     {strconv.Itoa(message.CallerRate)},
		"channels":        {"1"},
		"interim_results": {"true"},
		"model":           {config.Model},
		"language":        {config.Language},
		"punctuate":       {strconv.FormatBool(config.Punctuation)},
	}
	return base.JoinPath("/v1/listen").String() + "?" + query.Encode()
}

// dial opens a connection, or counts why not.
func (c *Client) dial(ctx context.Context, endpoint string) (*websocket.Conn, error) {
	open, cancel := context.WithTimeout(ctx, c.Ready)
	defer cancel()
	options := &websocket.DialOptions{HTTPClient: &c.http, HTTPHeader: http.Header{}}
	if c.Key != "" {
		options.HTTPHeader.Set("Authorization", "Token "+c.Key)
	}
	socket, response, err := websocket.Dial(open, endpoint, options)
	if err == nil {
		socket.SetReadLimit(resultBytesMax)
		return socket, nil
	}
	outcome := metrics.Failed
	if ctx.Err() != nil {
		outcome = metrics.Cancelled
	}
	c.Metrics.Request(metrics.STT, outcome)
	switch {
	case open.Err() != nil:
		return nil, fmt.Errorf("no connection within %d ms", c.Ready.Milliseconds())
	case response != nil:
		return nil, fmt.Errorf("the provider answered %d", response.StatusCode)
	}
	return nil, fmt.Errorf("no connection: %w", err)
}
