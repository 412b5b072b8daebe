//! Who works on the packets that arrive at a network card: the CPUs of the card's owner, by steering or by a kernel
//! thread (see [`network`](super::network)).

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::process::kernel::kernel_threads;

use super::cpus::CpuList;
use super::network::{CARDS, ip};
use super::offloads;

/// How long a receiving thread waits before it looks again while packets arrive, in µs: what cards wait before the next
/// interrupt.
pub(super) const RECEIVE_DELAY_US: u32 = 100;
/// How many times the thread may find nothing before a sender has to wake it again. Each look in vain wakes an idle
/// core.
const EMPTY_LOOKS: u32 = 1;

/// The threads that receive for targets, each with its CPU.
static OF_TARGETS: Mutex<Vec<(u32, i32)>> = Mutex::new(Vec::new());

/// Makes these CPUs work on the packets that arrive at a card.
pub(super) fn steer(card: &str, cpus: &CpuList) -> Result<(), String> {
    set(card, "queues/rx-0/rps_cpus", &mask(cpus))
}

/// Makes a kernel thread receive what the peer sends. The kernel creates the thread when the card is up. A peer that
/// segments by itself would bypass it.
pub(super) fn by_thread(card: &str, peer: &str) -> Result<(), String> {
    if !(offloads::set_segmentation(peer, false) && offloads::set_receive_joining(card, true)) {
        return Err("the offloads of its cards cannot be set".to_owned());
    }
    // Only a card that is up has what the thread is made for.
    ip(&format!("link set {card} up\n"))?;
    set(card, "threaded", "1")?;
    set(card, "napi_defer_hard_irqs", &EMPTY_LOOKS.to_string())?;
    let delay_ns = RECEIVE_DELAY_US * 1_000;
    set(card, "gro_flush_timeout", &delay_ns.to_string())
}

fn set(card: &str, name: &str, value: &str) -> Result<(), String> {
    let path = Path::new(CARDS).join(card).join(name);
    std::fs::write(&path, value)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// The kernel thread that receives for a target. While this lives, what the thread runs does not count as another
/// program's.
#[derive(Debug)]
pub(super) struct ReceiveThread(i32);

impl ReceiveThread {
    /// Finds a card's thread and binds it to the CPU of the card's owner.
    pub(super) fn place(card: &str, cpus: &CpuList) -> Result<Self, String> {
        // The thread's name is `napi/CARD-NUMBER`. Older kernels show only its first 15 bytes.
        let whole = format!("napi/{card}-");
        let found = kernel_threads(&[&whole[..whole.len().min(15)]]).pop();
        let ([cpu], Some((_, pid))) = (cpus.as_slice(), found) else {
            return Err(format!("the kernel thread of {card} is not visible"));
        };
        cpus.bind_thread(pid).map_err(|error| error.to_string())?;
        let mut threads = OF_TARGETS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push((*cpu, pid));
        Ok(Self(pid))
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> i32 {
        self.0
    }
}

impl Drop for ReceiveThread {
    fn drop(&mut self) {
        let mut threads = OF_TARGETS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|(_, pid)| *pid != self.0);
    }
}

/// The kernel's threads for receiving, each with its CPU and its folder below `/proc`: the thread for deferred
/// interrupts of each CPU (`ksoftirqd/N`), and the threads of targets' cards. Their work belongs to the party that
/// receives the packets, not to other programs. Empty where kernel threads are not visible, as in a container.
pub(crate) fn threads() -> Vec<(u32, PathBuf)> {
    static DEFERRED: LazyLock<Vec<(u32, i32)>> = LazyLock::new(|| {
        let threads = kernel_threads(&["ksoftirqd/"]).into_iter();
        let of_a_cpu = |(name, pid): (String, i32)| {
            let cpu = name.strip_prefix("ksoftirqd/")?.parse().ok()?;
            Some((cpu, pid))
        };
        threads.filter_map(of_a_cpu).collect()
    });
    let of_targets = OF_TARGETS.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = DEFERRED.iter().chain(of_targets.iter());
    threads
        .map(|(cpu, pid)| (*cpu, PathBuf::from(format!("/proc/{pid}"))))
        .collect()
}

/// The form in which the kernel takes a set of CPUs: hexadecimal words of 32 bits, highest first.
pub(super) fn mask(cpus: &CpuList) -> String {
    let words = cpus.as_slice().last().map_or(1, |last| last / 32 + 1);
    let word = |number: u32| {
        let bits = cpus.as_slice().iter().filter(|cpu| **cpu / 32 == number);
        bits.fold(0u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let words: Vec<String> = (0..words)
        .rev()
        .map(|number| format!("{:08x}", word(number)))
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_words_of_32_bits_with_the_highest_first() {
        let cpus = |text: &str| -> CpuList { text.parse().expect("CPUs") };
        assert_eq!(mask(&cpus("0")), "00000001");
        assert_eq!(mask(&cpus("1,4-5")), "00000032");
        assert_eq!(mask(&cpus("31-32,64")), "00000001,00000001,80000000");
    }
}
