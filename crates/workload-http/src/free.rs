//! Which connections can take a request, and which of them is next.

const NONE: u32 = u32::MAX;

/// The connections of a thread that can take a request, in the order in which they get one: the one with the fewest
/// requests in flight, and of several the one that has had this number for the longest time. Nothing is allocated after
/// the start.
#[derive(Debug)]
pub struct Free {
    /// The first and the last connection with so many requests in flight.
    lists: Vec<(u32, u32)>,
    links: Vec<Link>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    /// The list that it is in, or [`NONE`].
    list: u32,
}

impl Free {
    /// No connection of `connections` is free yet; each takes at most `most` requests at once.
    #[must_use]
    pub fn new(connections: u32, most: u32) -> Self {
        let alone = Link {
            previous: NONE,
            next: NONE,
            list: NONE,
        };
        Self {
            lists: vec![(NONE, NONE); most as usize],
            links: vec![alone; connections as usize],
        }
    }

    /// The next one, if any is free.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        let mut first = self.lists.iter().map(|(first, _)| *first);
        first.find(|first| *first != NONE)
    }

    /// A connection has so many requests in flight now; `None` if it can take no further one.
    pub fn set(&mut self, place: u32, in_flight: Option<u32>) {
        let last = u32::try_from(self.lists.len() - 1).unwrap_or(NONE);
        let list = in_flight.map_or(NONE, |in_flight| in_flight.min(last));
        if self.links[place as usize].list == list {
            return;
        }
        self.remove(place);
        if list == NONE {
            return;
        }
        let (first, last) = &mut self.lists[list as usize];
        let previous = *last;
        *last = place;
        if previous == NONE {
            *first = place;
        } else {
            self.links[previous as usize].next = place;
        }
        self.links[place as usize] = Link {
            previous,
            next: NONE,
            list,
        };
    }

    fn remove(&mut self, place: u32) {
        let Link {
            previous,
            next,
            list,
        } = self.links[place as usize];
        if list == NONE {
            return;
        }
        let (first, last) = &mut self.lists[list as usize];
        if previous == NONE {
            *first = next;
        }
        if next == NONE {
            *last = previous;
        }
        if previous != NONE {
            self.links[previous as usize].next = next;
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
        self.links[place as usize].list = NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_connection_that_has_been_idle_the_longest_is_next() {
        let mut free = Free::new(3, 1);
        assert_eq!(free.first(), None);
        for place in [2, 0, 1] {
            free.set(place, Some(0));
        }
        assert_eq!(free.first(), Some(2));
        free.set(2, None);
        assert_eq!(free.first(), Some(0));
        // Nothing happened to it that matters.
        free.set(0, Some(0));
        assert_eq!(free.first(), Some(0));
        free.set(2, Some(0));
        free.set(0, None);
        free.set(1, None);
        assert_eq!(free.first(), Some(2));
    }

    #[test]
    fn fewer_requests_in_flight_come_first() {
        let mut free = Free::new(3, 10);
        free.set(0, Some(4));
        free.set(1, Some(2));
        free.set(2, Some(2));
        assert_eq!(free.first(), Some(1));
        free.set(1, Some(3));
        assert_eq!(free.first(), Some(2));
        free.set(2, None);
        assert_eq!(free.first(), Some(1));
    }

    proptest! {
        /// Whatever happens, the lists are those that a plain search would find.
        #[test]
        fn behaves_like_a_sorted_list(steps in prop::collection::vec((0_u32..8, prop::option::of(0_u32..4)), 1..200)) {
            let mut free = Free::new(8, 4);
            let mut model: Vec<(u32, u32)> = Vec::new();
            for (place, in_flight) in steps {
                free.set(place, in_flight);
                let stays = in_flight.is_some_and(|count| model.contains(&(count, place)));
                if !stays {
                    model.retain(|(_, known)| *known != place);
                    model.extend(in_flight.map(|count| (count, place)));
                }
                // The order of arrival decides among equals: min_by_key takes the first.
                let first = model.iter().min_by_key(|(count, _)| *count).map(|(_, place)| *place);
                prop_assert_eq!(free.first(), first);
            }
        }
    }
}
