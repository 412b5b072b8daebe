//! The target's own network: a namespace that only the target is in, joined to ours by a pair of virtual cards (veth).
//!
//! On the loopback, the core that sends a segment also does the receiver's work for it. Between two cards, that work
//! can be moved to the CPUs of the card's owner, so each side pays for what it receives.
//! `docs/explanation/cpu-and-isolation.md` shows what the loopback hides. There are two ways:
//!
//! - *Steering* (`rps_cpus`): the sender interrupts a CPU of the receiver whenever that CPU is not already working on
//!   packets. On a virtual machine, each such interrupt leaves the guest on both CPUs. At 80,000 frames a second there
//!   were 40,000 of them, and they took about a third of both cores.
//! - A *thread* (threaded NAPI): a kernel thread on the receiver's CPU takes what has gathered, and looks again
//!   [`RECEIVE_DELAY_US`] later, just as a real card holds back its interrupts. A target with one whole CPU receives
//!   this way. One with several CPUs would need several queues, and one with a quota would receive outside of that
//!   quota. The client keeps steering: a target whose card does not segment sends a batch in 22 packets, and these cost
//!   the client more than it would save.
//!
//! Nothing outside the pair is changed. The namespace has no name, so it ends with the last process in it. The pair is
//! deleted with the trial. What a killed run left behind is found by the maker's name in the card's alias
//! ([`sweep_cards`]).
//!
//! Sources: `network_namespaces(7)`, `veth(4)`, the kernel's `Documentation/networking/scaling.rst` (receive packet
//! steering) and `napi.rst` (threaded NAPI, which a veth has if it joins what it receives and its peer does not
//! segment: `veth_skb_is_eligible_for_gro` in `drivers/net/veth.c`), RFC 2544 section C.2.2 and RFC 6890 (198.18.0.0/15
//! is for benchmarks).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns, unshare};
use plimsoll_core::record::{Network, NetworkEnd, NetworkMode, NetworkReceive};

use super::cpus::{CpuList, Placement};
use super::offloads;
use super::receive::{self, RECEIVE_DELAY_US, ReceiveThread};
use crate::error::Error;
use crate::maker::Maker;

/// The MTU of an Ethernet, in bytes.
const MTU_BYTES: u32 = 1_500;
/// The range for benchmarks, 198.18.0.0/15, is divided into networks of 256 addresses.
const RANGE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const NETWORKS: u32 = 512;
/// The last byte of the address of the client's card, of the target's, and of the first further address that
/// connections may come from.
const CLIENT: u32 = 1;
const TARGET: u32 = 2;
const FURTHER: u32 = 3;
/// The most addresses of the client's card: its network also has the target's and the broadcast address.
const CLIENT_ADDRESSES_MAX: usize = 252;
pub(super) const CARDS: &str = "/sys/class/net";

/// The pair of cards and the namespace behind it. Dropping this deletes both.
#[derive(Debug)]
pub struct OwnNetwork {
    namespace: Arc<File>,
    client: Card,
    target: Card,
    client_addresses: Vec<IpAddr>,
    /// The kernel thread that receives for the target, if one does.
    thread: Option<ReceiveThread>,
}

/// One end of the pair.
#[derive(Debug)]
struct Card {
    name: String,
    address: Ipv4Addr,
    receive_cpus: CpuList,
    receive: NetworkReceive,
    offloads: Vec<String>,
}

impl OwnNetwork {
    /// Makes the namespace and the pair. The CPUs of each card's owner work on the packets that the card receives. The
    /// client's card gets this many addresses.
    ///
    /// # Errors
    /// Why this is not possible here, as the end of a sentence.
    pub fn make(placement: &Placement, client_addresses: usize) -> Result<Self, String> {
        let one_whole_cpu = placement.target_cpus.as_slice().len() == 1 && !placement.needs_quota();
        if one_whole_cpu {
            // Kernels before 5.13 have no such thread.
            let by_thread = Self::receiving(NetworkReceive::Thread, placement, client_addresses);
            if by_thread.is_ok() {
                return by_thread;
            }
        }
        Self::receiving(NetworkReceive::Steering, placement, client_addresses)
    }

    /// The same, with the target's packets received in this way.
    fn receiving(
        receive: NetworkReceive,
        placement: &Placement,
        client_addresses: usize,
    ) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let maker = Maker::us();
        let network = free_network(maker.pid.unsigned_abs().wrapping_add(number))?;
        let card = |end: &str, address: u32, cpus: &CpuList, receive| Card {
            // A card's name has at most 15 bytes, and the name of its thread shows the first ten.
            name: format!("pl{end}{}-{}", maker.pid, number % 1000),
            address: Ipv4Addr::from(network + address),
            receive_cpus: cpus.clone(),
            receive,
            offloads: Vec::new(),
        };
        let further = client_addresses.clamp(1, CLIENT_ADDRESSES_MAX) - 1;
        let further = (FURTHER..).take(further).map(|last| network + last);
        let addresses = [network + CLIENT].into_iter().chain(further);
        let mut made = Self {
            namespace: Arc::new(namespace()?),
            client: card(
                "c",
                CLIENT,
                &placement.client_cpus,
                NetworkReceive::Steering,
            ),
            target: card("t", TARGET, &placement.target_cpus, receive),
            client_addresses: addresses.map(|ip| Ipv4Addr::from(ip).into()).collect(),
            thread: None,
        };
        made.set_up(&maker.name(number))?;
        Ok(made)
    }

    fn set_up(&mut self, alias: &str) -> Result<(), String> {
        let (client, target) = (self.client.name.clone(), self.target.name.clone());
        // Without IPv6 addresses the cards send nothing by themselves.
        ip(&format!(
            "link add {client} mtu {MTU_BYTES} type veth peer name {target} mtu {MTU_BYTES}\n\
             link set {client} alias {alias} addrgenmode none\n\
             link set {target} alias {alias} addrgenmode none\n"
        ))?;
        // This comes before the move: a card's folder shows only in its own namespace, and its settings move with it.
        for (card, peer) in [(&self.client, &target), (&self.target, &client)] {
            match card.receive {
                NetworkReceive::Steering => receive::steer(&card.name, &card.receive_cpus)?,
                NetworkReceive::Thread => receive::by_thread(&card.name, peer)?,
            }
        }
        for card in [&mut self.client, &mut self.target] {
            card.offloads = offloads::of(&card.name);
        }
        let namespace = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.namespace.as_raw_fd()
        );
        let addresses: String = self
            .client_addresses
            .iter()
            .map(|address| format!("addr add {address}/24 dev {client}\n"))
            .collect();
        ip(&format!(
            "link set {target} netns {namespace}\n{addresses}link set {client} up\n"
        ))?;
        let inside = format!(
            "addr add {}/24 dev {target}\nlink set {target} up\nlink set lo up\n",
            self.target.address
        );
        self.within(|| ip(&inside))??;
        if self.target.receive == NetworkReceive::Thread {
            let Card {
                name, receive_cpus, ..
            } = &self.target;
            self.thread = Some(ReceiveThread::place(name, receive_cpus)?);
        }
        Ok(())
    }

    /// Runs `something` on a thread that is in the namespace. Sockets that it opens there stay in the namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn within<T: Send>(&self, something: impl FnOnce() -> T + Send) -> Result<T, String> {
        let namespace = &*self.namespace;
        let on_thread = || {
            setns(namespace, CloneFlags::CLONE_NEWNET)
                .map_err(|error| format!("its namespace cannot be entered: {error}"))?;
            Ok(something())
        };
        std::thread::scope(|scope| scope.spawn(on_thread).join())
            .map_err(|_| "the thread in its namespace panicked".to_owned())?
    }

    /// The namespace, for a child that is to run in it.
    #[must_use]
    pub fn namespace(&self) -> Arc<File> {
        Arc::clone(&self.namespace)
    }

    /// The address at which the target is reached.
    #[must_use]
    pub fn target_address(&self) -> Ipv4Addr {
        self.target.address
    }

    /// The address at which the target reaches what runs on the client's side.
    #[must_use]
    pub fn client_address(&self) -> Ipv4Addr {
        self.client.address
    }

    /// The addresses of the client's card.
    #[must_use]
    pub fn client_addresses(&self) -> &[IpAddr] {
        &self.client_addresses
    }

    /// The network as recorded in a result.
    #[must_use]
    pub fn record(&self) -> Network {
        let end = |card: &Card| NetworkEnd {
            address: card.address.to_string(),
            receive_cpus: card.receive_cpus.as_slice().to_vec(),
            receive: card.receive,
            receive_delay_us: (card.receive == NetworkReceive::Thread).then_some(RECEIVE_DELAY_US),
            offloads: card.offloads.clone(),
        };
        Network {
            mode: NetworkMode::Own,
            why: None,
            mtu_bytes: Some(MTU_BYTES),
            client: Some(end(&self.client)),
            target: Some(end(&self.target)),
        }
    }
}

impl Drop for OwnNetwork {
    fn drop(&mut self) {
        // Deleting one end deletes the other. A pair that is already gone, or was never made, needs no deletion.
        let _ = ip(&format!("link delete {}\n", self.client.name));
    }
}

/// The error that a target cannot have its own network, with the reason and the remedy.
#[must_use]
pub fn no_own_network(why: &str) -> Error {
    Error::Usage(format!(
        "--network own: {why}; run as root with iproute2 installed, or measure with --network loopback"
    ))
}

/// Tries whether a target can have its own network here.
///
/// # Errors
/// The reason, as the end of a sentence.
pub fn can_be_own(placement: &Placement) -> Result<(), String> {
    OwnNetwork::make(placement, 1).map(drop)
}

/// Deletes the cards that a killed run left behind, identified by their makers' names.
pub(super) fn sweep_cards() {
    let cards = std::fs::read_dir(CARDS).into_iter().flatten().flatten();
    for card in cards {
        let alias = std::fs::read_to_string(card.path().join("ifalias")).unwrap_or_default();
        if Maker::of(alias.trim()).is_some_and(|maker| maker.is_dead()) {
            // A card that cannot be deleted is in nobody's way: each network has its own names and addresses.
            let _ = ip(&format!("link delete {}\n", card.file_name().display()));
        }
    }
}

/// A new network namespace, without a name.
fn namespace() -> Result<File, String> {
    // Made on a thread that ends at once: only the file keeps its namespace alive.
    let make = || {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("a network namespace cannot be made: {error}"))?;
        File::open("/proc/thread-self/ns/net")
            .map_err(|error| format!("/proc/thread-self/ns/net cannot be opened: {error}"))
    };
    std::thread::scope(|scope| scope.spawn(make).join())
        .map_err(|_| "the thread that makes a namespace panicked".to_owned())?
}

/// The first address of a network of the range that no route leads to. The search begins at network `first`.
fn free_network(first: u32) -> Result<u32, String> {
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    let taken = taken(&routes);
    (0..NETWORKS)
        .map(|step| first.wrapping_add(step) % NETWORKS)
        .find(|number| !taken.contains(number))
        .map(|number| RANGE + (number << 8))
        .ok_or_else(|| "every network of 198.18.0.0/15 has a route already".to_owned())
}

/// The networks of the range that a line of `/proc/net/route` leads to. A default route leads to none in particular.
fn taken(routes: &str) -> BTreeSet<u32> {
    let destination_and_mask = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        // The numbers are in the machine's byte order, as they are in memory.
        let mut number = |at| {
            u32::from_str_radix(fields.nth(at)?, 16)
                .ok()
                .map(u32::to_be)
        };
        Some((number(1)?, number(5)?))
    };
    let routes = routes.lines().skip(1).filter_map(destination_and_mask);
    let mut taken = BTreeSet::new();
    for (destination, mask) in routes.filter(|(_, mask)| *mask != 0) {
        let leads_to = |number: &u32| {
            let network = RANGE + (number << 8);
            let narrower = mask & 0xffff_ff00;
            (network ^ destination) & narrower == 0
        };
        taken.extend((0..NETWORKS).filter(leads_to));
    }
    taken
}

/// Runs these lines with `ip`, in the namespace of the calling thread.
pub(super) fn ip(lines: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "the program `ip` is missing (package iproute2)".to_owned(),
        _ => format!("the program `ip` cannot be started: {error}"),
    })?;
    // If it ends early, it says why on stderr.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| format!("the program `ip` cannot be waited for: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("no reason");
    Err(format!("`ip` says: {first}"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// 198.18.3.0/24 and 198.19.0.0/16, a default route and a network elsewhere, as a little-endian kernel prints them.
    #[cfg(target_endian = "little")]
    #[test]
    fn networks_with_a_route_are_left_alone() {
        const ROUTES: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
            lab0\t000312C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
            lab1\t000013C6\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        let found = taken(ROUTES);
        assert!(found.contains(&3) && !found.contains(&2) && !found.contains(&4));
        assert_eq!(found.len(), 1 + 256);
        assert!((256..512).all(|number| found.contains(&number)));
        // A route to a part of one of our networks is enough.
        let part = "\nx\t800512C6\t0\t1\t0\t0\t0\tC0FFFFFF\t0\t0\t0\n";
        assert_eq!(taken(part), [5].into());
        assert!(taken("").is_empty());
    }

    #[test]
    fn a_network_of_its_own_carries_and_goes() {
        let ours = CpuList::allowed_to_us().expect("allowed");
        let placement = Placement {
            client_cpus: ours.clone(),
            target_cpus: ours.clone(),
            vcpu: ours.vcpu(),
        };
        let made = OwnNetwork::receiving(NetworkReceive::Steering, &placement, 3);
        let network = match made {
            Ok(network) => network,
            Err(why) => {
                plimsoll_testing::skipped!("a network of its own cannot be had: {why}");
                return;
            }
        };
        let target = network.target_address();
        let listener = network
            .within(|| std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .expect("entered")
            .expect("bound inside");
        let port = listener.local_addr().expect("bound").port();
        // Outside, nobody has this address. A connection from each of ours arrives.
        assert!(std::net::TcpListener::bind((target, 0)).is_err());
        assert_eq!(network.client_addresses().len(), 3);
        for address in network.client_addresses() {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
                .expect("socket");
            socket
                .bind(&std::net::SocketAddr::new(*address, 0).into())
                .expect("ours");
            socket
                .connect(&std::net::SocketAddr::from((target, port)).into())
                .expect("reaches it");
            let (_, from) = listener.accept().expect("arrives");
            assert_eq!(from.ip(), *address);
        }
        let card = Path::new(CARDS).join(&network.client.name);
        let steered = std::fs::read_to_string(card.join("queues/rx-0/rps_cpus")).expect("steering");
        assert!(
            steered
                .trim()
                .ends_with(receive::mask(&ours).trim_start_matches('0')),
            "{steered}"
        );
        let record = network.record();
        assert_eq!(record.target.expect("an end").address, target.to_string());
        // Its maker is alive.
        sweep_cards();
        assert!(card.exists());
        drop(network);
        assert!(!card.exists());
    }

    #[test]
    fn a_thread_of_the_kernel_receives_for_a_target_with_one_cpu() {
        let ours = CpuList::allowed_to_us().expect("allowed");
        let cpu = CpuList::new(vec![ours.as_slice()[0]]).expect("one");
        let placement = Placement {
            client_cpus: ours,
            target_cpus: cpu.clone(),
            vcpu: 1.0,
        };
        let network = match OwnNetwork::receiving(NetworkReceive::Thread, &placement, 1) {
            Ok(network) => network,
            Err(why) => {
                plimsoll_testing::skipped!("no thread can receive for a target: {why}");
                return;
            }
        };
        let thread = network.thread.as_ref().expect("placed").pid();
        let ours = |of: &(u32, PathBuf)| {
            of.1.starts_with(format!("/proc/{thread}")) && of.0 == cpu.as_slice()[0]
        };
        assert!(receive::threads().iter().any(ours));
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).expect("lives");
        let allowed = format!("Cpus_allowed_list:\t{cpu}\n");
        assert!(status.contains(&allowed), "{status}");
        let end = network.record().target.expect("an end");
        assert_eq!(end.receive_delay_us, Some(RECEIVE_DELAY_US));
        // What is sent to it arrives, although it is longer than one packet.
        let listener = network
            .within(|| std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .expect("entered")
            .expect("bound inside");
        let port = listener.local_addr().expect("bound").port();
        let sent: Vec<u8> = (0..60_000u32).map(|i| i.to_le_bytes()[0]).collect();
        let mut client =
            std::net::TcpStream::connect((network.target_address(), port)).expect("reaches it");
        let (mut accepted, _) = listener.accept().expect("arrives");
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            std::io::Read::read_to_end(&mut accepted, &mut read).map(|_| read)
        });
        client.write_all(&sent).expect("sent");
        drop(client);
        assert_eq!(reader.join().expect("ends").expect("read"), sent);
        drop(network);
        assert!(!receive::threads().iter().any(ours));
    }

    #[test]
    fn what_ip_refuses_is_told_in_one_line() {
        let why = ip("link delete plimsoll-nowhere\n").expect_err("no such card");
        assert!(!why.contains('\n') && why.len() > 10, "{why}");
    }
}
