//! Who is let in, decided while it is still HTTP and exactly, however many ask at once.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rust_axum::limit::{self, Limit};

use crate::config;

/// What `RATE_LIMIT_RPS` counts over.
const SECOND: Duration = Duration::from_secs(1);

/// Why a client is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All sessions are taken.
    Capacity,
    /// The gateway is about to end.
    Draining,
    /// All sessions of its address are taken.
    PerAddress,
    /// Its address has asked too often.
    Rate,
    /// It has no token, or a wrong one.
    Auth,
}

impl Refusal {
    /// Every cause, in the order of their discriminants, so that `refusal as usize` indexes an array of this length.
    pub const ALL: [Self; 5] = [Self::Capacity, Self::Draining, Self::PerAddress, Self::Rate, Self::Auth];

    /// The word for it.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Draining => "draining",
            Self::PerAddress => "per_address",
            Self::Rate => "rate",
            Self::Auth => "auth",
        }
    }
}

/// The open sessions, against the limits.
#[derive(Debug)]
pub struct Admission {
    sessions: Arc<Limit>,
    /// Only where there is a limit for addresses: it takes a lock.
    addresses: Option<Arc<Addresses>>,
}

/// A session's place, given back on drop.
#[derive(Debug)]
pub struct Permit {
    _session: limit::Permit,
    address: Option<(Arc<Addresses>, IpAddr)>,
}

impl Admission {
    /// Nobody is in.
    pub fn new(limits: config::Admission) -> Self {
        let config::Admission { sessions_max, sessions_per_address_max, upgrades_per_second_max } = limits;
        let by_address = sessions_per_address_max > 0 || upgrades_per_second_max > 0;
        Self {
            sessions: Limit::new(sessions_max),
            addresses: by_address.then(|| {
                Arc::new(Addresses { sessions_per_address_max, upgrades_per_second_max, book: Mutex::default() })
            }),
        }
    }

    /// Open sessions.
    pub fn in_use(&self) -> usize {
        self.sessions.in_use()
    }

    /// A place for a client at this address.
    ///
    /// # Errors
    /// There is none.
    pub fn admit(&self, address: IpAddr, now: Instant) -> Result<Permit, Refusal> {
        let take = || self.sessions.acquire().ok_or(Refusal::Capacity);
        match &self.addresses {
            None => Ok(Permit { _session: take()?, address: None }),
            Some(addresses) => {
                let session = addresses.admit(address, now, take)?;
                Ok(Permit { _session: session, address: Some((Arc::clone(addresses), address)) })
            }
        }
    }
}

/// What is known of each address.
#[derive(Debug)]
struct Addresses {
    sessions_per_address_max: usize,
    upgrades_per_second_max: usize,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    addresses: HashMap<IpAddr, Address>,
    /// The number of addresses at which those that are no longer needed are looked for.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Address {
    sessions: usize,
    /// Upgrades of the last second, oldest first.
    upgrades: VecDeque<Instant>,
}

impl Addresses {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing under the lock leaves it half done.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place is taken under the lock: one that is given back because of another limit would meanwhile be missing.
    fn admit(
        &self,
        address: IpAddr,
        now: Instant,
        take: impl FnOnce() -> Result<limit::Permit, Refusal>,
    ) -> Result<limit::Permit, Refusal> {
        let mut book = self.book();
        book.sweep(now);
        let address = book.addresses.entry(address).or_default();
        if self.upgrades_per_second_max > 0 {
            address.forget(now);
            if address.upgrades.len() >= self.upgrades_per_second_max {
                return Err(Refusal::Rate);
            }
            address.upgrades.push_back(now);
        }
        if self.sessions_per_address_max > 0 && address.sessions >= self.sessions_per_address_max {
            return Err(Refusal::PerAddress);
        }
        let session = take()?;
        address.sessions += 1;
        Ok(session)
    }
}

impl Book {
    /// Forgets addresses that have no session and did not ask for one just now, each time their number has doubled.
    fn sweep(&mut self, now: Instant) {
        const SWEEP_MIN: usize = 1024;
        if self.addresses.len() < self.sweep_at.max(SWEEP_MIN) {
            return;
        }
        self.addresses.retain(|_, address| {
            address.forget(now);
            address.sessions > 0 || !address.upgrades.is_empty()
        });
        self.sweep_at = self.addresses.len() * 2;
    }
}

impl Address {
    fn forget(&mut self, now: Instant) {
        while self.upgrades.front().is_some_and(|at| now.saturating_duration_since(*at) >= SECOND) {
            self.upgrades.pop_front();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((addresses, ip)) = self.address.take()
            && let Some(address) = addresses.book().addresses.get_mut(&ip)
        {
            address.sessions -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    fn admission(sessions_max: usize, sessions_per_address_max: usize, upgrades_per_second_max: usize) -> Admission {
        Admission::new(config::Admission { sessions_max, sessions_per_address_max, upgrades_per_second_max })
    }

    #[test]
    fn discriminants_index_the_list() {
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, index);
        }
    }

    #[test]
    fn places_are_given_out_and_taken_back() {
        let now = Instant::now();
        let admission = admission(3, 2, 0);
        let first = admission.admit(HERE, now).expect("free");
        let _second = admission.admit(HERE, now).expect("free");
        assert_eq!(admission.admit(HERE, now).err(), Some(Refusal::PerAddress));
        let _third = admission.admit(THERE, now).expect("free");
        assert_eq!(admission.admit(THERE, now).err(), Some(Refusal::Capacity));
        drop(first);
        assert_eq!(admission.in_use(), 2);
        assert!(admission.admit(HERE, now).is_ok());
    }

    #[test]
    fn an_address_may_ask_so_often_in_any_second() {
        let (start, admission) = (Instant::now(), admission(0, 0, 3));
        let at = |ms| admission.admit(HERE, start + Duration::from_millis(ms)).err();
        assert_eq!((at(0), at(500), at(900), at(999)), (None, None, None, Some(Refusal::Rate)));
        assert!(admission.admit(THERE, start).is_ok());
        assert_eq!((at(1000), at(1001), at(1500)), (None, Some(Refusal::Rate), None));
    }

    #[test]
    fn addresses_are_forgotten() {
        let (start, admission) = (Instant::now(), admission(0, 1, 5));
        let _kept = admission.admit(HERE, start).expect("free");
        for number in 0..5000_u32 {
            let address = IpAddr::V4(std::net::Ipv4Addr::from(number));
            let _ = admission.admit(address, start + Duration::from_millis(u64::from(number) * 10));
        }
        let book = admission.addresses.as_ref().expect("a limit").book();
        assert!(book.addresses.len() < 2100, "{}", book.addresses.len());
        assert_eq!(book.addresses[&HERE].sessions, 1);
    }

    #[test]
    fn a_burst_gets_exactly_what_there_is() {
        let admission = admission(100, 60, 0);
        let admitted: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = [HERE, THERE, HERE, THERE]
                .into_iter()
                .map(|address| {
                    let admission = &admission;
                    scope.spawn(move || (0..50).filter_map(|_| admission.admit(address, Instant::now()).ok()).collect())
                })
                .collect();
            threads.into_iter().flat_map(|thread| -> Vec<Permit> { thread.join().expect("no panic") }).collect()
        });
        assert_eq!((admitted.len(), admission.in_use()), (100, 100));
    }
}
