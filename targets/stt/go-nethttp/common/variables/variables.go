// Package variables reads settings from environment variables, checked before anything starts. The gateways of both
// workloads use it.
package variables

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// millisecondsMax is ten days; no time here is sensibly longer, and sums of such times stay far from overflow.
const millisecondsMax = 10 * 24 * 3600 * 1000

// Reader reads one variable after the other and keeps the first error.
type Reader struct {
	lookup func(string) (string, bool)
	err    error
}

// New reads through lookup, which is os.LookupEnv.
func New(lookup func(string) (string, bool)) *Reader { return &Reader{lookup: lookup} }

// Err is one line that names the first variable whose value cannot be used.
func (v *Reader) Err() error { return v.err }

// Bad says that a value cannot be used.
func (v *Reader) Bad(name, value string, problem any) {
	if v.err == nil {
		// %q keeps the line one line, whatever the value is.
		v.err = fmt.Errorf("%s=%q: %v", name, value, problem)
	}
}

// Text reads any text.
func (v *Reader) Text(name, otherwise string) string {
	if value, ok := v.lookup(name); ok {
		return value
	}
	return otherwise
}

// Number reads a whole number from low to high.
func (v *Reader) Number(name string, otherwise, low, high uint64) uint64 {
	text := v.Text(name, strconv.FormatUint(otherwise, 10))
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil || value < low || value > high {
		v.Bad(name, text, fmt.Sprintf("give a whole number from %d to %d", low, high))
	}
	return value
}

// Milliseconds reads a time of at least low milliseconds.
func (v *Reader) Milliseconds(name string, otherwise, low uint64) time.Duration {
	return time.Duration(v.Number(name, otherwise, low, millisecondsMax)) * time.Millisecond
}

// URL reads the base of a server.
func (v *Reader) URL(name, otherwise string) *url.URL {
	return v.base(name, v.Text(name, otherwise))
}

// URLs reads the bases of one or more servers, comma between.
func (v *Reader) URLs(name, otherwise string) []*url.URL {
	var bases []*url.URL
	for text := range strings.SplitSeq(v.Text(name, otherwise), ",") {
		bases = append(bases, v.base(name, strings.TrimSpace(text)))
	}
	return bases
}

func (v *Reader) base(name, text string) *url.URL {
	base, err := url.Parse(text)
	if err == nil && (base.Scheme != "http" || base.Hostname() == "" || base.RawQuery != "") {
		err = errors.New("give http://host:port")
	}
	if err != nil {
		v.Bad(name, text, err)
	}
	return base
}
