//! Who may open a session. One thread, one lock: exact however many ask at once.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::config::Config;

const SECOND: Duration = Duration::from_secs(1);

/// The limits, and what is taken of them.
#[derive(Debug)]
pub struct Admission {
    sessions_max: u64,
    per_address_max: u64,
    per_second_max: u64,
    book: Mutex<Book>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Book {
    sessions: u64,
    draining: bool,
    by_address: HashMap<IpAddr, Address>,
}

#[derive(Debug, Default)]
struct Address {
    sessions: u64,
    /// When upgrades were granted in the last second.
    granted: VecDeque<Instant>,
}

/// A place for a session, given back when dropped.
#[derive(Debug)]
pub struct Slot {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    /// Nobody is in.
    #[must_use]
    pub fn new(config: &Config) -> Arc<Self> {
        Arc::new(Self {
            sessions_max: config.sessions_max,
            per_address_max: config.sessions_max_per_address,
            per_second_max: config.upgrades_max_per_second,
            book: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Takes a place for a session from this address.
    ///
    /// # Errors
    /// Why there is none: status and cause.
    pub fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Result<Slot, (u16, &'static str)> {
        let mut book = self.book();
        let Book { sessions, draining, by_address } = &mut *book;
        let of_address = by_address.entry(address).or_default();
        while of_address.granted.front().is_some_and(|at| now.saturating_duration_since(*at) >= SECOND) {
            of_address.granted.pop_front();
        }
        let is_full = |have: u64, max: u64| max > 0 && have >= max;
        let refused = if *draining {
            Some((503, "draining"))
        } else if is_full(*sessions, self.sessions_max) {
            Some((503, "capacity"))
        } else if is_full(of_address.sessions, self.per_address_max) {
            Some((429, "per_address"))
        } else if is_full(of_address.granted.len() as u64, self.per_second_max) {
            Some((429, "rate"))
        } else {
            None
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        *sessions += 1;
        of_address.sessions += 1;
        if self.per_second_max > 0 {
            of_address.granted.push_back(now);
        }
        drop(book);
        Ok(Slot { admission: Arc::clone(self), address })
    }

    /// Nobody else comes in.
    pub fn drain(&self) {
        self.book().draining = true;
        self.changed.notify_waiters();
    }

    /// Whether nobody else comes in.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.book().draining
    }

    /// How many are in.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.book().sessions
    }

    /// Returns when it is draining and the last one has left.
    pub async fn emptied(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before looking, so that no change is missed.
            changed.as_mut().enable();
            if self.is_draining() && self.sessions() == 0 {
                return;
            }
            changed.await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut book = self.admission.book();
        book.sessions -= 1;
        if let Some(of_address) = book.by_address.get_mut(&self.address) {
            of_address.sessions -= 1;
            if of_address.sessions == 0 && of_address.granted.is_empty() {
                book.by_address.remove(&self.address);
            }
        }
        drop(book);
        self.admission.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    fn admission(variables: &[(&str, &str)]) -> Arc<Admission> {
        let lookup = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Admission::new(&Config::read(&lookup).expect("good"))
    }

    #[test]
    fn a_place_is_given_back() {
        let admission = admission(&[("MAX_SESSIONS", "2")]);
        let now = Instant::now();
        let first = admission.admit(HERE, now).expect("a place");
        let _second = admission.admit(THERE, now).expect("a place");
        assert_eq!(admission.admit(HERE, now).err(), Some((503, "capacity")));
        drop(first);
        assert_eq!(admission.sessions(), 1);
        assert!(admission.admit(HERE, now).is_ok());
    }

    #[test]
    fn addresses_are_limited_one_by_one() {
        let admission = admission(&[("MAX_SESSIONS_PER_ADDRESS", "1")]);
        let now = Instant::now();
        let _here = admission.admit(HERE, now).expect("a place");
        assert_eq!(admission.admit(HERE, now).err(), Some((429, "per_address")));
        assert!(admission.admit(THERE, now).is_ok());
    }

    #[test]
    fn a_rate_is_of_any_second() {
        let admission = admission(&[("RATE_LIMIT_RPS", "2")]);
        let start = Instant::now();
        let at = |ms| admission.admit(HERE, start + Duration::from_millis(ms)).map(drop);
        assert_eq!([at(0), at(500)], [Ok(()), Ok(())]);
        assert_eq!(at(900), Err((429, "rate")));
        assert_eq!([at(1000), at(1001)], [Ok(()), Err((429, "rate"))]);
    }

    #[test]
    fn nobody_comes_in_while_draining() {
        let admission = admission(&[]);
        admission.drain();
        assert_eq!(admission.admit(HERE, Instant::now()).err(), Some((503, "draining")));
    }
}
