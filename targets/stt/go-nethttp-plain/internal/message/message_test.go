package message

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
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
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("%s: %d cases, %v", name, len(file.Cases), err)
	}
	return file.Cases
}

// skipDuplicates leaves out what encoding/json cannot see.
func skipDuplicates(t *testing.T, id string) {
	t.Helper()
	if strings.HasPrefix(id, "duplicate-") {
		t.Skip("encoding/json does not see a repeated field")
	}
}

func TestStartVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID, Text string
		OK       bool
	}](t, "start.json") {
		t.Run(c.ID, func(t *testing.T) {
			skipDuplicates(t, c.ID)
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

func TestAnswerVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID, Body string
		OK       bool
	}](t, "inference_answers.json") {
		t.Run(c.ID, func(t *testing.T) {
			skipDuplicates(t, c.ID)
			answer, err := ParseAnswer([]byte(c.Body))
			if (err == nil) != c.OK {
				t.Fatalf("error %v for %s", err, c.Body)
			}
			if !c.OK {
				return
			}
			var expected Answer
			if err := json.Unmarshal([]byte(c.Body), &expected); err != nil {
				t.Fatal(err)
			}
			if *answer != expected {
				t.Errorf("got %+v, want %+v", answer, expected)
			}
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
			got := kindNamed(t, c.Kind)
			if c.Status != nil {
				failure := BadStatus(*c.Status)
				got = failure.Kind
				if failure.Status != *c.Status {
					t.Errorf("got status %d", failure.Status)
				}
			}
			if want := (Kind{c.Stage, c.Kind, c.Retryable}); got != want {
				t.Errorf("got %v, want %v", got, want)
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
		Inference Answer
		Batch     batchVector
		Config    struct {
			CPUPasses uint32 `json:"cpu_passes"`
		}
		Expect json.RawMessage
	}](t, "partials.json") {
		t.Run(c.ID, func(t *testing.T) {
			span := Span{OldestSeq: c.Batch.OldestFrameSeq, NewestSeq: c.Batch.NewestFrameSeq}
			got := Partial(span, &c.Inference, c.Config.CPUPasses, fromMS(c.Batch.FlushLatenessMS))
			sameJSON(t, got, c.Expect)
		})
	}
}

func TestErrorVectors(t *testing.T) {
	for _, c := range vectors[struct {
		ID    string
		Input struct {
			Kind, Message          string
			Batch                  batchVector
			InferenceElapsedMS     float64 `json:"inference_elapsed_ms"`
			InflightGatewayBatches int64   `json:"inflight_gateway_batches"`
			GatewayBufferFrames    int     `json:"gateway_buffer_frames"`
			InferenceStatus        int     `json:"inference_status"`
		}
		Expect json.RawMessage
	}](t, "errors.json") {
		t.Run(c.ID, func(t *testing.T) {
			in := c.Input
			failure := &Failure{
				Kind: kindNamed(t, in.Kind), Message: in.Message, Status: in.InferenceStatus, Elapsed: fromMS(in.InferenceElapsedMS),
			}
			now := time.Unix(1_800_000_000, 0)
			span := Span{
				OldestSeq: in.Batch.OldestFrameSeq, NewestSeq: in.Batch.NewestFrameSeq,
				OldestAt: now.Add(-fromMS(in.Batch.OldestAgeMS)), NewestAt: now.Add(-fromMS(in.Batch.NewestAgeMS)),
			}
			sameJSON(t, Error(failure, span, Surroundings{
				Now:             now,
				Lateness:        fromMS(in.Batch.FlushLatenessMS),
				InflightBatches: in.InflightGatewayBatches,
				BufferFrames:    in.GatewayBufferFrames,
			}), c.Expect)
		})
	}
}

func kindNamed(t *testing.T, name string) Kind {
	t.Helper()
	for _, kind := range Kinds {
		if kind.Name == name {
			return kind
		}
	}
	t.Fatalf("no kind %q", name)
	return Kind{}
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
