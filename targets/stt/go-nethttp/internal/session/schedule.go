package session

import "time"

// schedule is the absolute schedule of a session's ticks: origin + k * interval for k = 1, 2, … Each tick is computed
// from the one before and never from the clock, so a late one moves no other.
type schedule struct {
	next, interval time.Duration
}

func newSchedule(origin, interval time.Duration) schedule {
	return schedule{next: origin + interval, interval: interval}
}

// due returns the earliest tick that now has reached and how many there are; the flush of one takes all that the
// others could.
func (s *schedule) due(now time.Duration) (tick time.Duration, count int) {
	if now < s.next {
		return 0, 0
	}
	tick = s.next
	count = int((now-tick)/s.interval) + 1
	s.next += time.Duration(count) * s.interval
	return tick, count
}
