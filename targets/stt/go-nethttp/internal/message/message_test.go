package message

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"
	"time"
)

// vectors reads the cases of a file that all gateways share.
func vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile("../../../vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []T `json:"cases"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return file.Cases
}

func TestStartVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID, Text string
		OK       bool
	}](t, "start.json") {
		t.Run(c.ID, func(t *testing.T) {
			if got := IsStart([]byte(c.Text)); got != c.OK {
				t.Errorf("IsStart(%q) = %v", c.Text, got)
			}
		})
	}
}

func TestStartIsUTF8(t *testing.T) {
	if IsStart([]byte("{\"type\":\"start\"\xff}")) || IsStart([]byte("{\"type\":\"st\xffart\"}")) {
		t.Error("not UTF-8, yet accepted")
	}
}

func TestInferenceAnswerVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID, Body string
		OK       bool
	}](t, "inference_answers.json") {
		t.Run(c.ID, func(t *testing.T) {
			answer, err := ParseInference([]byte(c.Body))
			if (err == nil) != c.OK {
				t.Fatalf("error %v for %s", err, c.Body)
			}
			if !c.OK {
				return
			}
			var expected Inference
			if err := json.Unmarshal([]byte(c.Body), &expected); err != nil {
				t.Fatal(err)
			}
			if *answer != expected {
				t.Errorf("got %+v, want %+v", answer, expected)
			}
		})
	}
}

func TestReferenceAnswersAreParsed(t *testing.T) {
	for _, c := range vectors[struct {
		ID     string
		Expect json.RawMessage
	}](t, "reference.json") {
		t.Run(c.ID, func(t *testing.T) {
			answer, err := ParseInference(c.Expect)
			if err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			sameJSON(t, written, c.Expect)
		})
	}
}

func TestFailureVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID          string
		Status      *int
		Transport   *string
		Kind, Stage string
		Retryable   bool
	}](t, "inference_failures.json") {
		t.Run(c.ID, func(t *testing.T) {
			failure := Failed(Timeout, "no answer")
			switch {
			case c.Status != nil:
				failure = BadStatus(*c.Status)
			case *c.Transport == "reset":
				failure = Failed(ConnectionReset, "reset")
			}
			kind := failure.Kind
			if kind.String() != c.Kind || kind.Stage() != c.Stage || kind.Retryable() != c.Retryable {
				t.Errorf("got %v %v %v", kind, kind.Stage(), kind.Retryable())
			}
			if c.Status != nil && failure.Status != *c.Status {
				t.Errorf("got status %d", failure.Status)
			}
		})
	}
}

func TestOddStatusIsNoAnswer(t *testing.T) {
	for _, status := range []int{100, 204, 302} {
		if kind := BadStatus(status).Kind; kind != ParseError {
			t.Errorf("%d is %v", status, kind)
		}
	}
}

type batchVector struct {
	OldestFrameSeq  uint64  `json:"oldest_frame_seq"`
	NewestFrameSeq  uint64  `json:"newest_frame_seq"`
	OldestAgeMS     float64 `json:"oldest_age_ms"`
	NewestAgeMS     float64 `json:"newest_age_ms"`
	FlushLatenessMS float64 `json:"flush_lateness_ms"`
}

func TestPartialVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID        string
		Inference Inference
		Batch     batchVector
		Config    Echo
		Expect    json.RawMessage
	}](t, "partials.json") {
		t.Run(c.ID, func(t *testing.T) {
			span := Span{OldestSeq: c.Batch.OldestFrameSeq, NewestSeq: c.Batch.NewestFrameSeq}
			sameJSON(t, Partial(span, &c.Inference, c.Config, fromMS(c.Batch.FlushLatenessMS)), c.Expect)
		})
	}
}

func TestErrorVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID    string
		Input struct {
			Kind, Message          string
			Batch                  batchVector
			InferenceElapsedMS     *float64 `json:"inference_elapsed_ms"`
			InflightGatewayBatches uint64   `json:"inflight_gateway_batches"`
			GatewayBufferFrames    uint64   `json:"gateway_buffer_frames"`
			InferenceStatus        *int     `json:"inference_status"`
		}
		Expect json.RawMessage
	}](t, "errors.json") {
		t.Run(c.ID, func(t *testing.T) {
			in := c.Input
			failure := &Failure{Kind: kindNamed(t, in.Kind), Message: in.Message}
			if in.InferenceStatus != nil {
				failure.Status = *in.InferenceStatus
			}
			now := time.Hour
			about := &ErrorContext{
				Span: Span{
					OldestSeq: in.Batch.OldestFrameSeq, NewestSeq: in.Batch.NewestFrameSeq,
					OldestAt: now - fromMS(in.Batch.OldestAgeMS), NewestAt: now - fromMS(in.Batch.NewestAgeMS),
				},
				Now:             now,
				Lateness:        fromMS(in.Batch.FlushLatenessMS),
				InflightBatches: in.InflightGatewayBatches,
				BufferFrames:    in.GatewayBufferFrames,
			}
			if in.InferenceElapsedMS != nil {
				elapsed := fromMS(*in.InferenceElapsedMS)
				about.Elapsed = &elapsed
			}
			sameJSON(t, Error(failure, about), c.Expect)
		})
	}
}

func TestClockReadInAnotherOrderIsNotNegative(t *testing.T) {
	var got map[string]any
	about := &ErrorContext{Span: Span{OldestSeq: 1, NewestSeq: 1, OldestAt: 5, NewestAt: 5}, Now: 4}
	if err := json.Unmarshal(Error(Failed(Timeout, "x"), about), &got); err != nil {
		t.Fatal(err)
	}
	if got["oldest_age_ms"] != 0.0 || got["newest_age_ms"] != 0.0 {
		t.Errorf("ages %v and %v", got["oldest_age_ms"], got["newest_age_ms"])
	}
}

// FuzzParseInference holds the strict reader to encoding/json: what it takes, that takes too, with the same values.
func FuzzParseInference(f *testing.F) {
	f.Add([]byte(`{"rms":2.5,"zero_crossings":7,"checksum":4294967295,"samples":1280,"transcript":"now","audio_bytes":640}`))
	f.Add([]byte(`{"rms":1e999}`))
	f.Add([]byte(`{"rms":-0.5e-3,"zero_crossings":0 ,"checksum":0,"samples":0,"transcript":"\"\\","audio_bytes":0}`))
	f.Add([]byte(`{"rms":{"rms":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, err := ParseInference(body)
		if err != nil {
			return
		}
		var expected Inference
		if err := json.Unmarshal(body, &expected); err != nil {
			t.Fatalf("%q was accepted: %v", body, err)
		}
		if *answer != expected {
			t.Fatalf("%q: got %+v, want %+v", body, answer, expected)
		}
	})
}

func kindNamed(t *testing.T, name string) Kind {
	for kind := range Kinds {
		if Kind(kind).String() == name {
			return Kind(kind)
		}
	}
	t.Fatalf("no kind %q", name)
	return 0
}

func fromMS(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

func sameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	var gotValue, wantValue any
	if err := json.Unmarshal(got, &gotValue); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &wantValue); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotValue, wantValue) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func BenchmarkParseInference(b *testing.B) {
	body := []byte(`{"rms":2425.5023191083533,"zero_crossings":7,"checksum":1745339397,"samples":1280,"transcript":"now","audio_bytes":640}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseInference(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPartial(b *testing.B) {
	answer := &Inference{RMS: 2425.5023191083533, Checksum: 1745339397, Samples: 1280, Transcript: "now"}
	b.ReportAllocs()
	for b.Loop() {
		Partial(Span{OldestSeq: 1, NewestSeq: 50}, answer, Echo{4}, time.Millisecond)
	}
}
