//! Section 3 of the contract: the hub at `/fanout`.

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::{Socket, Upgrade};
use plimsoll_protocol::websocket::Opcode;

use super::setup::{BASE, ONE_WORKER};
use super::talk::{bytes, connect, echoed, expect_echo, message, to, upgrade};
use super::{Case, Site};

const HUB: &str = "/fanout";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "fanout-everybody",
            "A message received on /fanout goes to every connection on it, the sender's too",
            "each of three gets a text and a binary message of each, with the same opcode and payload",
            &ONE_WORKER,
            everybody,
        )
        .in_setup(&ONE_WORKER),
        Case::new(
            "fanout-order",
            "Messages of the hub come in the order of arrival",
            "200 messages of one sender, in order, at each of three",
            &ONE_WORKER,
            order,
        )
        .in_setup(&ONE_WORKER),
        Case::new(
            "fanout-echo-apart",
            "The hub and the echo are apart",
            "an echo gets no message of the hub, and the hub none of an echo",
            &ONE_WORKER,
            apart,
        )
        .in_setup(&ONE_WORKER),
        Case::new(
            "fanout-leaves",
            "A connection that is closed is no receiver any more",
            "the others go on",
            &ONE_WORKER,
            leaves,
        )
        .in_setup(&ONE_WORKER),
        Case::new(
            "fanout-workers",
            "With more than one worker a hub reaches the connections of all, or answers 503",
            "eight receivers, or status 503",
            &BASE,
            workers,
        )
        .only_when_started(),
    ]
}

/// How long a message that should not come may take.
const STRAY_WITHIN: std::time::Duration = std::time::Duration::from_millis(200);

/// Connections to the hub, each of which the hub knows: a target may answer an upgrade before it does.
fn join(site: &Site<'_>, count: usize) -> Result<Vec<Socket>, String> {
    let mut receivers = Vec::new();
    for number in 0..count {
        receivers.push(upgrade(site, &to(HUB))?.accepted()?);
        let hello = format!("hello {number}");
        deliver(&mut receivers, number, Opcode::Text, hello.as_bytes())?;
    }
    Ok(receivers)
}

/// Has one of them send a message, which every one must get.
fn deliver(
    receivers: &mut [Socket],
    sender: usize,
    opcode: Opcode,
    payload: &[u8],
) -> Result<(), String> {
    receivers[sender].send(&message(opcode, payload))?;
    for (number, receiver) in receivers.iter_mut().enumerate() {
        expect_echo(receiver, opcode, payload)
            .map_err(|seen| format!("from {sender} to {number}: {seen}"))?;
    }
    Ok(())
}

fn everybody(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 3)?;
    for sender in 0..receivers.len() {
        for (opcode, payload) in [
            (Opcode::Text, format!("from {sender}").into_bytes()),
            (Opcode::Binary, bytes(1000 + sender)),
        ] {
            deliver(&mut receivers, sender, opcode, &payload)?;
        }
    }
    Ok("18 deliveries".to_owned())
}

fn order(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 3)?;
    let texts: Vec<String> = (0..200).map(|number| format!("number {number}")).collect();
    let all: Vec<u8> = texts
        .iter()
        .flat_map(|text| message(Opcode::Text, text.as_bytes()))
        .collect();
    receivers[0].send(&all)?;
    for (number, receiver) in receivers.iter_mut().enumerate() {
        for text in &texts {
            expect_echo(receiver, Opcode::Text, text.as_bytes())
                .map_err(|seen| format!("receiver {number}, {text}: {seen}"))?;
        }
    }
    Ok("600 deliveries".to_owned())
}

fn apart(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 2)?;
    let mut echo = connect(site)?;
    echoed(&mut echo, Opcode::Text, b"only mine")?;
    deliver(&mut receivers, 0, Opcode::Text, b"only ours")?;
    // A message that should not come may be on its way after the receivers have theirs.
    std::thread::sleep(STRAY_WITHIN);
    echoed(&mut echo, Opcode::Text, b"still only mine")?;
    Ok("both got their own only".to_owned())
}

fn leaves(site: &Site<'_>) -> Verdict {
    let mut receivers = join(site, 4)?;
    receivers.pop().map_or(Ok(()), Socket::close)?;
    if let Some(gone) = receivers.pop() {
        gone.vanish();
    }
    for sender in 0..receivers.len() {
        deliver(&mut receivers, sender, Opcode::Text, b"still here")?;
    }
    Ok("the two others went on".to_owned())
}

fn workers(site: &Site<'_>) -> Verdict {
    match upgrade(site, &to(HUB))? {
        Upgrade::Refused { status: 503, .. } => return Ok("status 503".to_owned()),
        Upgrade::Refused { status, .. } => return Err(format!("status {status}")),
        Upgrade::Done(_) => {}
    }
    join(site, 8)?;
    Ok("eight receivers heard each other".to_owned())
}
