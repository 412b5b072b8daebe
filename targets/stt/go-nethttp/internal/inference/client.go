// Package inference is the way to the inference server: HTTP/2 with prior knowledge over a few connections that live
// long.
package inference

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gonethttp/internal/message"
)

const (
	// answerBytesMax bounds what is read of an answer; a good one has some 150 bytes.
	answerBytesMax = 64 * 1024
	// pingAfter is how long a connection may be silent before it is asked for a sign of life, and pingWithin how long it
	// has to give one.
	pingAfter  = 10 * time.Second
	pingWithin = 5 * time.Second
)

// Client spreads requests over a fixed number of connections, each made on first use and made anew when lost.
//
// The connections are http.ClientConns and not left to the http.Transport's own pool: that one dials once for each
// request that finds no connection, and a gateway whose first second of sessions flushes at once would open hundreds.
type Client struct {
	transport *http.Transport
	address   string
	url       *url.URL
	// header is shared by all requests; the transport only reads it.
	header  http.Header
	timeout time.Duration
	slots   []slot
	turn    atomic.Uint32
}

// New makes a client of base, a URL without a path or with one. It connects nowhere yet.
func New(base *url.URL, connections int, timeout time.Duration, cpuPasses uint32) *Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	port := base.Port()
	if port == "" {
		port = "80"
	}
	infer := *base
	infer.Path = strings.TrimRight(base.Path, "/") + "/infer"
	return &Client{
		transport: &http.Transport{
			DialContext:        (&net.Dialer{Timeout: timeout}).DialContext,
			Protocols:          protocols,
			DisableCompression: true,
			HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin},
		},
		address: net.JoinHostPort(base.Hostname(), port),
		url:     &infer,
		header: http.Header{
			"Content-Type": {"application/octet-stream"},
			"X-Cpu-Passes": {strconv.FormatUint(uint64(cpuPasses), 10)},
		},
		timeout: timeout,
		slots:   make([]slot, connections),
	}
}

// Infer sends one batch and reads its answer. When it returns, nobody uses pcm any more. A failure because ctx was
// cancelled is as good as any other: the session is over.
func (c *Client) Infer(ctx context.Context, pcm []byte) (*message.Inference, *message.Failure) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body := &body{pcm: pcm}
	defer body.Close()

	response, err := c.send(ctx, body)
	if err != nil {
		return nil, failed(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, message.BadStatus(response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if err != nil {
		return nil, failed(ctx, err)
	}
	if len(text) > answerBytesMax {
		return nil, message.BadAnswer(errors.New("longer than 64 KiB"))
	}
	answer, err := message.ParseInference(text)
	if err != nil {
		return nil, message.BadAnswer(err)
	}
	return answer, nil
}

func (c *Client) send(ctx context.Context, body *body) (*http.Response, error) {
	slot := &c.slots[int(c.turn.Add(1))%len(c.slots)]
	for attempt := 1; ; attempt++ {
		connection, err := slot.connection(ctx, c)
		if err != nil {
			return nil, err
		}
		response, err := connection.RoundTrip(c.request(ctx, body))
		// A connection that ended unnoticed: nothing of this request left, so it may try a new one, once. RoundTrip
		// directly, and no http.Client, because a redirect or a second try of anything else would not be the contract.
		if err == nil || attempt > 1 || body.touched() || connection.Err() == nil || ctx.Err() != nil {
			return response, err
		}
		body.reopen()
	}
}

func (c *Client) request(ctx context.Context, body *body) *http.Request {
	request := &http.Request{
		Method:        http.MethodPost,
		URL:           c.url,
		Host:          c.url.Host,
		Header:        c.header,
		Body:          body,
		ContentLength: int64(len(body.pcm)),
	}
	return request.WithContext(ctx)
}

func failed(ctx context.Context, err error) *message.Failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return message.Failed(message.Timeout, "no answer from the inference server in time")
	}
	return message.Failed(message.ConnectionReset, "inference connection: %v", err)
}
