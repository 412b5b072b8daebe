use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;

const BOTH: [Sleep; 2] = [Sleep::InOneCall, Sleep::InTwoCalls];
/// Below the millisecond in which `epoll_wait` counts.
const SHORT: Duration = Duration::from_micros(200);
const LONG: Duration = Duration::from_secs(20);

fn sleeping(sleep: Sleep) -> Epoll {
    Epoll {
        sleep,
        ..Epoll::new().expect("an epoll descriptor")
    }
}

fn wait(epoll: &mut Epoll, timeout: Duration) -> Vec<Event> {
    let timeout_ns = u64::try_from(timeout.as_nanos()).expect("a short time");
    let mut events = Vec::new();
    epoll.wait(timeout_ns, &mut events).expect("it waits");
    events
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ours = TcpStream::connect(listener.local_addr().expect("an address"));
    (
        ours.expect("a connection"),
        listener.accept().expect("a connection").0,
    )
}

/// Whether the kernel here has `epoll_pwait2`, asked past the code under test: by its release.
fn kernel_has_it() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    let version: (u32, u32) = (next().expect("a version"), next().expect("a version"));
    version >= (5, 11)
}

/// Lets the kernel refuse `epoll_pwait2` to the calling thread from now on, with this error.
#[allow(unsafe_code)]
fn refuse_with(error: libc::c_int) {
    let number = u32::try_from(libc::SYS_epoll_pwait2).expect("a number");
    let statement = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let code = |bits: u32| u16::try_from(bits).expect("16 bits");
    // Load the number of the system call. If it is this one, refuse it. Allow all others.
    let mut program = [
        statement(code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), 0, 0, 0),
        statement(
            code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K),
            0,
            1,
            number,
        ),
        statement(
            code(libc::BPF_RET | libc::BPF_K),
            0,
            0,
            libc::SECCOMP_RET_ERRNO | error.unsigned_abs(),
        ),
        statement(
            code(libc::BPF_RET | libc::BPF_K),
            0,
            0,
            libc::SECCOMP_RET_ALLOW,
        ),
    ];
    let filter = libc::sock_fprog {
        len: 4,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program during the call; both calls touch nothing else of this process.
    let refused = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
                0,
                0,
            ),
        ]
    };
    assert_eq!(refused, [0, 0], "{}", io::Error::last_os_error());
}

#[test]
fn one_call_where_the_kernel_has_it() {
    if !kernel_has_it() {
        plimsoll_testing::skipped!("epoll_pwait2: it needs Linux 5.11");
        return;
    }
    // A container may refuse it, but not for want of the call.
    let found = Epoll::new().expect("an epoll descriptor").sleep;
    let mut ready = Vec::with_capacity(1);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    match epoll_pwait2(&epoll, &mut ready, 1) {
        Ok(()) => assert_eq!(found, Sleep::InOneCall),
        Err(error) => {
            assert_eq!(found, Sleep::InTwoCalls);
            plimsoll_testing::skipped!("epoll_pwait2: refused here ({error})");
        }
    }
}

#[test]
fn two_calls_where_it_is_refused() {
    for error in [libc::ENOSYS, libc::EPERM] {
        // The refusal ends with its thread.
        let thread = std::thread::spawn(move || {
            refuse_with(error);
            let mut epoll = Epoll::new().expect("an epoll descriptor");
            let (ours, mut theirs) = connection();
            epoll.register(ours.as_fd(), 7).expect("registered");
            wait(&mut epoll, LONG);
            theirs.write_all(b"x").expect("room");
            (epoll.sleep, wait(&mut epoll, LONG))
        });
        let (sleep, events) = thread.join().expect("ends");
        assert_eq!(sleep, Sleep::InTwoCalls);
        assert!(events[0].id == 7 && events[0].readable, "{events:?}");
    }
}

#[test]
fn a_sleep_ends_in_time() {
    for sleep in BOTH {
        let mut epoll = sleeping(sleep);
        // A busy machine makes single sleeps longer, never shorter.
        let took = (0..200).map(|_| {
            let start = Instant::now();
            assert_eq!(wait(&mut epoll, SHORT), []);
            start.elapsed()
        });
        let took: Vec<_> = took.collect();
        let shortest = *took.iter().min().expect("some");
        assert!(
            shortest >= SHORT && shortest < Duration::from_millis(1),
            "{sleep:?}: {shortest:?}"
        );
    }
}

#[test]
fn what_is_ready_ends_a_sleep() {
    for sleep in BOTH {
        let mut epoll = sleeping(sleep);
        let (mut ours, mut theirs) = connection();
        epoll.register(ours.as_fd(), 3).expect("registered");
        let writable = Event {
            id: 3,
            readable: false,
            hung_up: false,
            writable: true,
        };
        assert_eq!(wait(&mut epoll, LONG), [writable]);
        assert_eq!(wait(&mut epoll, SHORT), [], "an edge comes once");
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            theirs.write_all(b"x").expect("room");
            theirs
        });
        let start = Instant::now();
        let events = wait(&mut epoll, LONG);
        assert!(start.elapsed() < LONG / 2);
        assert!(events[0].readable && !events[0].hung_up, "{events:?}");
        ours.read_exact(&mut [0]).expect("a byte");
        drop(writer.join().expect("ends"));
        let events = wait(&mut epoll, LONG);
        assert!(events[0].hung_up, "{events:?}");
    }
}

#[test]
fn more_than_a_batch_is_taken_in_turns() {
    for sleep in BOTH {
        let mut epoll = sleeping(sleep);
        epoll.ready = Vec::with_capacity(2);
        let streams: Vec<_> = (0..5).map(|_| connection()).collect();
        for (id, (ours, _)) in (0..).zip(&streams) {
            epoll.register(ours.as_fd(), id).expect("registered");
        }
        let mut seen = Vec::new();
        while seen.len() < 5 {
            let events = wait(&mut epoll, LONG);
            assert!((1..=2).contains(&events.len()), "{events:?}");
            seen.extend(events.iter().map(|event| event.id));
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }
}
