//! The deliveries that nobody has settled yet.
//!
//! An acknowledgement goes to the delivery's reply subject, unchanged (ADR-15). So each is kept until then. Its
//! place is used again, so that nothing is allocated once the places exist.

/// How many deliveries may be open on a connection. A prefetch cannot be larger.
pub const UNSETTLED_MAX: u32 = 65_536;

/// Deliveries by their handles.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    places: Vec<Place>,
    free: Vec<u32>,
    /// The memory of all acknowledgements.
    held_bytes: usize,
}

#[derive(Debug)]
struct Place {
    /// The acknowledgement as it is on the wire.
    acknowledgement: Vec<u8>,
    /// Counts the uses of this place, so that an old handle cannot settle a newer message.
    turn: u32,
    is_taken: bool,
}

impl Unsettled {
    /// How many are open.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.places.len() - self.free.len()).unwrap_or(UNSETTLED_MAX)
    }

    /// The memory of all places, taken or free.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes + self.places.capacity() * size_of::<Place>()
    }

    /// Keeps a delivery with this reply subject. `None` if [`UNSETTLED_MAX`] are open.
    pub(super) fn keep(&mut self, reply: &[u8]) -> Option<u64> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => self.add_place()?,
        };
        let place = self.places.get_mut(usize::try_from(at).ok()?)?;
        place.is_taken = true;
        let before = place.acknowledgement.capacity();
        place.acknowledgement.clear();
        place.acknowledgement.extend_from_slice(b"PUB ");
        place.acknowledgement.extend_from_slice(reply);
        place.acknowledgement.extend_from_slice(b" 4\r\n+ACK\r\n");
        self.held_bytes += place.acknowledgement.capacity() - before;
        Some(u64::from(place.turn) << 32 | u64::from(at))
    }

    #[cold]
    fn add_place(&mut self) -> Option<u32> {
        let at = u32::try_from(self.places.len()).ok()?;
        if at >= UNSETTLED_MAX {
            return None;
        }
        self.places.push(Place {
            acknowledgement: Vec::new(),
            turn: 0,
            is_taken: false,
        });
        Some(at)
    }

    /// Appends the acknowledgement of a delivery and forgets it. A handle that is not open appends nothing.
    pub(super) fn settle(&mut self, handle: u64, out: &mut Vec<u8>) {
        // The low half is the place, the high half its turn.
        let at = handle & u64::from(u32::MAX);
        let Some(place) = usize::try_from(at)
            .ok()
            .and_then(|at| self.places.get_mut(at))
        else {
            return;
        };
        if !place.is_taken || u64::from(place.turn) != handle >> 32 {
            return;
        }
        out.extend_from_slice(&place.acknowledgement);
        place.is_taken = false;
        place.turn = place.turn.wrapping_add(1);
        self.free.extend(u32::try_from(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_settled_once() {
        let mut open = Unsettled::default();
        let first = open.keep(b"$JS.ACK.a").unwrap();
        let second = open.keep(b"$JS.ACK.bb").unwrap();
        let mut out = Vec::new();
        open.settle(first, &mut out);
        open.settle(first, &mut out);
        assert_eq!(out, b"PUB $JS.ACK.a 4\r\n+ACK\r\n");
        assert_eq!(open.len(), 1);
        // The place is used again, but the old handle does not reach it.
        let third = open.keep(b"$JS.ACK.c").unwrap();
        assert_ne!(first, third);
        out.clear();
        open.settle(first, &mut out);
        assert!(out.is_empty());
        open.settle(third, &mut out);
        open.settle(second, &mut out);
        assert_eq!(
            out,
            b"PUB $JS.ACK.c 4\r\n+ACK\r\nPUB $JS.ACK.bb 4\r\n+ACK\r\n"
        );
        assert_eq!(open.len(), 0);
        open.settle(u64::MAX, &mut out);
    }

    #[test]
    fn places_are_memory_and_are_used_again() {
        let mut open = Unsettled::default();
        assert_eq!(open.held_bytes(), 0);
        let reply = [b'r'; 200];
        let handles: Vec<u64> = (0..10).map(|_| open.keep(&reply).unwrap()).collect();
        let held = open.held_bytes();
        assert!(held >= 2_000, "{held}");
        for handle in handles {
            open.settle(handle, &mut Vec::new());
        }
        open.keep(&reply).unwrap();
        assert_eq!(open.held_bytes(), held);
    }

    #[test]
    fn there_is_a_limit() {
        let mut open = Unsettled::default();
        for _ in 0..UNSETTLED_MAX {
            open.keep(b"x").unwrap();
        }
        assert_eq!(open.keep(b"x"), None);
        open.settle(0, &mut Vec::new());
        assert!(open.keep(b"x").is_some());
    }
}
