package admission

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func enterAll(d *Door, count int, address string) map[Cause]int {
	causes := map[Cause]int{}
	for range count {
		causes[d.enterAt(address, 0)]++
	}
	return causes
}

func TestEachLimitIsExact(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		cause  Cause
	}{
		"sessions":    {Limits{Sessions: 5}, Capacity},
		"per address": {Limits{SessionsPerAddress: 5}, PerAddress},
		"rate":        {Limits{AsksPerSecond: 5}, Rate},
	} {
		if got := enterAll(New(c.limits), 10, "a"); got[Admitted] != 5 || got[c.cause] != 5 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := enterAll(New(Limits{}), 10, "a"); got[Admitted] != 10 {
		t.Errorf("without limits: %v", got)
	}
}

// TestBursts lets many ask at the same time, while others leave.
func TestBursts(t *testing.T) {
	d := New(Limits{Sessions: 20})
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			for range 50 {
				if d.Enter("a") != Admitted {
					continue
				}
				most.Store(max(most.Load(), inside.Add(1)))
				inside.Add(-1)
				d.Leave("a", nil)
				d.SocketClosed()
			}
		})
	}
	all.Wait()
	if most.Load() > 20 || d.Open() != 0 {
		t.Errorf("%d inside at once, %d at the end", most.Load(), d.Open())
	}
}

func TestPlacesComeBackAndAddressesAreApart(t *testing.T) {
	d := New(Limits{SessionsPerAddress: 1, AsksPerSecond: 2})
	steps := []struct {
		address string
		at      time.Duration
		want    Cause
	}{
		{"a", 0, Admitted}, {"a", 0, PerAddress}, {"a", 0, Rate}, {"b", 0, Admitted},
		{"a", time.Second - 1, Rate}, {"a", time.Second, PerAddress},
	}
	for i, s := range steps {
		if got := d.enterAt(s.address, s.at); got != s.want {
			t.Errorf("step %d: %q, want %q", i, got, s.want)
		}
	}
	d.Leave("a", nil)
	if got := d.enterAt("a", time.Second); got != Admitted {
		t.Errorf("after leaving: %q", got)
	}
}

func TestAddressesAreForgotten(t *testing.T) {
	d := New(Limits{AsksPerSecond: 1})
	for i := range 10 * addressesKept {
		address := fmt.Sprint(i)
		if d.enterAt(address, time.Duration(i)*10*time.Millisecond) != Admitted {
			t.Fatal(i)
		}
		d.Leave(address, nil)
	}
	if len(d.addresses) > addressesKept {
		t.Errorf("%d addresses are kept", len(d.addresses))
	}
}

func TestDrainLetsNobodyIn(t *testing.T) {
	d := New(Limits{})
	if !d.Hold() {
		t.Fatal("held")
	}
	done := make(chan struct{})
	go func() { d.Drain(t.Context(), time.Now().Add(time.Second)); close(done) }()
	for !d.Draining() {
		time.Sleep(time.Millisecond)
	}
	if got := d.Enter("a"); got != Draining || d.Hold() {
		t.Errorf("got %q", got)
	}
	select {
	case <-done:
		t.Error("it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	d.SocketClosed()
	<-done
}
