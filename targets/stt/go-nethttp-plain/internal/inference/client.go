// Package inference is the way to the inference server: net/http's client, over HTTP/2 with prior knowledge.
package inference

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"gonethttpplain/internal/message"
)

// answerBytesMax bounds what is read of an answer; a good one has some 150 bytes.
const answerBytesMax = 64 * 1024

// Client spreads requests over a fixed number of connections.
type Client struct {
	// clients have one connection each.
	clients   []*http.Client
	turn      atomic.Uint32
	url       string
	cpuPasses string
	timeout   time.Duration
}

// New makes a client of base, a URL with or without a path. It connects nowhere yet.
func New(base *url.URL, connections int, timeout time.Duration, cpuPasses uint32) *Client {
	c := &Client{
		url:       base.JoinPath("infer").String(),
		cpuPasses: strconv.FormatUint(uint64(cpuPasses), 10),
		timeout:   timeout,
	}
	for range connections {
		c.clients = append(c.clients, newHTTPClient(timeout))
	}
	return c
}

func newHTTPClient(timeout time.Duration) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:        (&net.Dialer{Timeout: timeout}).DialContext,
			Protocols:          protocols,
			DisableCompression: true,
			// One dial, also for a burst of requests that find no connection.
			MaxConnsPerHost: 1,
			// A silent connection is asked for a sign of life.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
		},
		// The contract knows no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Infer sends one batch and reads its answer.
func (c *Client) Infer(ctx context.Context, pcm []byte) (*message.Answer, *message.Failure) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(pcm))
	if err != nil {
		return nil, failed(err)
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set("X-Cpu-Passes", c.cpuPasses)
	response, err := c.clients[int(c.turn.Add(1))%len(c.clients)].Do(request)
	if err != nil {
		return nil, failed(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, message.BadStatus(response.StatusCode)
	}
	// What is longer is cut, and so no JSON.
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return nil, failed(err)
	}
	answer, err := message.ParseAnswer(text)
	if err != nil {
		text := "the inference server's answer: " + err.Error()
		return nil, &message.Failure{Kind: message.ParseError, Message: text, Status: response.StatusCode}
	}
	return answer, nil
}

// failed names the failure of a request that was not answered.
func failed(err error) *message.Failure {
	kind := message.ConnectionReset
	if errors.Is(err, context.DeadlineExceeded) {
		kind = message.Timeout
	}
	return &message.Failure{Kind: kind, Message: err.Error()}
}
