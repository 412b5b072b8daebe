package message

import (
	"fmt"
	"net/http"
	"time"
)

// Kind is a row of the contract's table of failures.
type Kind struct {
	Stage, Name string
	// Retryable says whether the same audio could have been answered a moment later.
	Retryable bool
}

// The rows.
var (
	Timeout         = Kind{"inference_request", "timeout", true}
	ConnectionReset = Kind{"inference_request", "connection_reset", true}
	TooManyRequests = Kind{"inference_request", "http_429", true}
	ServerError     = Kind{"inference_request", "http_5xx", true}
	ClientError     = Kind{"inference_request", "http_4xx", false}
	ParseError      = Kind{"inference_response_parse", "parse_error", false}
	Overflow        = Kind{"input_buffer", "overflow", false}
)

// Kinds is the whole table.
var Kinds = []Kind{Timeout, ConnectionReset, TooManyRequests, ServerError, ClientError, ParseError, Overflow}

// Failure is why frames have no transcript.
type Failure struct {
	Kind    Kind
	Message string
	// Status of the answer; 0 when there was none.
	Status int
	// Elapsed is how long the request took. It means nothing for Overflow, which has no request.
	Elapsed time.Duration
}

// BadStatus makes the failure for an answer with a status other than 200.
func BadStatus(status int) *Failure {
	// A status that is neither 200 nor an error has not the strict JSON for its body.
	kind := ParseError
	switch {
	case status == http.StatusTooManyRequests:
		kind = TooManyRequests
	case status >= 500 && status <= 599:
		kind = ServerError
	case status >= 400 && status <= 499:
		kind = ClientError
	}
	return &Failure{Kind: kind, Message: fmt.Sprintf("the inference server answered %d", status), Status: status}
}
