package message

import (
	"fmt"
	"net/http"
)

// Kind is a row of the contract's table of failures. Stage, name and retryability follow from it.
type Kind int

// The rows, in the contract's order.
const (
	// Timeout: no whole answer within INFERENCE_TIMEOUT_MS.
	Timeout Kind = iota
	// ConnectionReset: no connection, or it or the stream was lost before the answer was whole.
	ConnectionReset
	// TooManyRequests: status 429.
	TooManyRequests
	// ServerError: status 500 to 599.
	ServerError
	// ClientError: status 400 to 499 but 429.
	ClientError
	// ParseError: an answer that is not the strict JSON, or that has a status which is neither 200 nor an error.
	ParseError
	// Overflow: frames dropped by the overflow policy; there was no request.
	Overflow

	// Kinds is how many rows there are.
	Kinds = int(Overflow) + 1
)

var kinds = [Kinds]struct {
	stage, name string
	retryable   bool
}{
	Timeout:         {"inference_request", "timeout", true},
	ConnectionReset: {"inference_request", "connection_reset", true},
	TooManyRequests: {"inference_request", "http_429", true},
	ServerError:     {"inference_request", "http_5xx", true},
	ClientError:     {"inference_request", "http_4xx", false},
	ParseError:      {"inference_response_parse", "parse_error", false},
	Overflow:        {"input_buffer", "overflow", false},
}

// Stage is the part of the gateway that failed.
func (k Kind) Stage() string { return kinds[k].stage }

// String is the kind's name in messages and metrics.
func (k Kind) String() string { return kinds[k].name }

// Retryable says whether the same audio could have been answered a moment later.
func (k Kind) Retryable() bool { return kinds[k].retryable }

// messageBytesMax bounds what a failure quotes from elsewhere.
const messageBytesMax = 200

// Failure is why frames have no transcript.
type Failure struct {
	Kind    Kind
	Message string
	// Status of the answer; 0 when there was none.
	Status int
}

// Failed makes a failure without an answer.
func Failed(kind Kind, format string, arguments ...any) *Failure {
	text := fmt.Sprintf(format, arguments...)
	return &Failure{Kind: kind, Message: text[:min(len(text), messageBytesMax)]}
}

// BadStatus makes the failure for an answer with a status other than 200.
func BadStatus(status int) *Failure {
	kind := ParseError
	switch {
	case status == http.StatusTooManyRequests:
		kind = TooManyRequests
	case status >= 500 && status <= 599:
		kind = ServerError
	case status >= 400 && status <= 499:
		kind = ClientError
	}
	failure := Failed(kind, "the inference server answered %d", status)
	failure.Status = status
	return failure
}

// BadAnswer makes the failure for a 200 whose body is not the strict JSON.
func BadAnswer(cause error) *Failure {
	failure := Failed(ParseError, "the inference server's answer: %v", cause)
	failure.Status = http.StatusOK
	return failure
}
