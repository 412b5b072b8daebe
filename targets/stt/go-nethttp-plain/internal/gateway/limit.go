package gateway

import "sync/atomic"

// limit counts what is in use. It never lets that be more than max, unless max is 0.
type limit struct {
	max  int64
	used atomic.Int64
}

func (l *limit) take() bool {
	for {
		used := l.used.Load()
		if l.max > 0 && used >= l.max {
			return false
		}
		if l.used.CompareAndSwap(used, used+1) {
			return true
		}
	}
}

func (l *limit) give() { l.used.Add(-1) }
