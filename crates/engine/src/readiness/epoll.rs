//! [`Readiness`] through epoll.
//!
//! `epoll_wait` counts in milliseconds, and a request may be due in microseconds. `epoll_pwait2` counts in nanoseconds. It
//! needs Linux 5.11, and some containers' seccomp rules refuse it. [`Sleep`] is found once, when the thread starts.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use super::{Event, Readiness};

/// Events taken from the kernel in one call.
const BATCH: usize = 1024;

/// Edge-triggered epoll.
pub struct Epoll {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
    sleep: Sleep,
}

/// How a thread sleeps until something is ready, with a timeout in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// `epoll_pwait2`: one call for each wake-up.
    InOneCall,
    /// `ppoll` on the epoll descriptor, then `epoll_wait`: wherever Linux runs.
    InTwoCalls,
}

impl Readiness for Epoll {
    const NAME: &'static str = "epoll";

    fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            sleep: Sleep::of_this_thread(&epoll),
            epoll,
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
        self.ready.clear();
        let waited = match self.sleep {
            _ if timeout_ns == 0 => self.look(),
            Sleep::InOneCall => epoll_pwait2(&self.epoll, &mut self.ready, timeout_ns),
            Sleep::InTwoCalls => self.poll(timeout_ns).and_then(|()| self.look()),
        };
        match waited {
            Ok(()) | Err(Errno::INTR) => {}
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
    /// Takes what is ready, without waiting.
    fn look(&mut self) -> Result<(), Errno> {
        epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.ready),
            Some(&timespec(0)),
        )
        .map(drop)
    }

    /// Sleeps until something is ready or the time is over.
    fn poll(&self, timeout_ns: u64) -> Result<(), Errno> {
        let mut watched = [PollFd::new(&self.epoll, PollFlags::IN)];
        poll(&mut watched, Some(&timespec(timeout_ns))).map(drop)
    }
}

impl Sleep {
    /// Asks the kernel: it waits for a nanosecond on a descriptor that watches nothing. Whatever the refusal is called,
    /// the two calls work everywhere.
    fn of_this_thread(epoll: &OwnedFd) -> Self {
        match epoll_pwait2(epoll, &mut Vec::with_capacity(1), 1) {
            Ok(()) | Err(Errno::INTR) => Self::InOneCall,
            Err(_) => Self::InTwoCalls,
        }
    }
}

/// Sleeps until something is ready or the time is over, and adds what is ready to `ready`, as far as it has capacity.
///
/// rustix calls it too, but only if it may use everything that Linux 5.11 has, and then for every wait. The C library has
/// it since glibc 2.35.
#[allow(unsafe_code)]
fn epoll_pwait2(
    epoll: &OwnedFd,
    ready: &mut Vec<epoll::Event>,
    timeout_ns: u64,
) -> Result<(), Errno> {
    let timeout = timespec(timeout_ns);
    let room = ready.spare_capacity_mut();
    let most = libc::c_int::try_from(room.len()).unwrap_or(libc::c_int::MAX);
    let no_signals = std::ptr::null::<libc::sigset_t>();
    // SAFETY: the kernel writes at most `most` events to the pointer, which has room for them, and reads one timeout. Both
    // types are laid out as the kernel's are: rustix hands them to the same system calls.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            room.as_mut_ptr(),
            most,
            &raw const timeout,
            no_signals,
            0_usize,
        )
    };
    let Ok(count) = usize::try_from(count) else {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::NOSYS));
    };
    // SAFETY: the kernel wrote that many events, behind those that were there.
    unsafe { ready.set_len(ready.len() + count) };
    Ok(())
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

#[cfg(test)]
#[path = "epoll_tests.rs"]
mod tests;
