//! [`Readiness`] through epoll.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::{Event, Readiness};

/// Events taken from the kernel in one call.
const BATCH: usize = 1024;

/// Edge-triggered epoll.
pub struct Epoll {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
}

impl Readiness for Epoll {
    const NAME: &'static str = "epoll";

    fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ready: Vec::with_capacity(BATCH),
        })
    }

    fn register(&mut self, socket: BorrowedFd<'_>, id: u32) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        epoll::add(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(u64::from(id)),
            flags,
        )?;
        Ok(())
    }

    fn wait(&mut self, timeout_ns: u64, events: &mut Vec<Event>) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        if timeout_ns > 0 {
            self.sleep(timeout_ns)?;
        }
        self.ready.clear();
        let look = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), Some(&look)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        events.extend(self.ready.iter().map(|event| {
            let flags = event.flags;
            let broken = flags.intersects(Flags::ERR | Flags::HUP);
            Event {
                id: u32::try_from(event.data.u64())
                    .unwrap_or_else(|_| unreachable!("only u32 numbers are registered")),
                readable: broken || flags.intersects(Flags::IN | Flags::RDHUP),
                hung_up: broken || flags.contains(Flags::RDHUP),
                writable: broken || flags.contains(Flags::OUT),
            }
        }));
        Ok(())
    }
}

impl Epoll {
    /// Sleeps until something is ready or the time is over. It calls `ppoll` on the epoll descriptor, because
    /// `epoll_wait` counts in milliseconds. `epoll_pwait2` counts in nanoseconds, but needs Linux 5.11, and many
    /// containers' seccomp rules refuse it. The second call is made once per sleep, not once per frame.
    fn sleep(&self, timeout_ns: u64) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(timeout_ns % 1_000_000_000).unwrap_or(0),
        };
        let mut watched = [PollFd::new(&self.epoll, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
