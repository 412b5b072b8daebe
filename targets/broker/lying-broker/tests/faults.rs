//! Each fault, over sockets.

#[path = "../../rust-log/tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use support::{Client, Folder, Got, Target};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lying-broker");

/// A broker with this fault, in the tier that answers soonest.
fn target(folder: &Folder, variables: &[(&str, &str)]) -> Target {
    Target::start(PROGRAM, folder, &[&[("QUEUE_TIER", "cache")][..], variables].concat())
}

fn folder() -> Folder {
    Folder::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Publishes so many messages to the queue; what a reader gets until nothing more comes.
fn through(target: &Target, count: u64) -> Vec<u64> {
    let (mut writer, mut reader) = (Client::new(target), Client::new(target));
    writer.declare_queue();
    reader.subscribe();
    for request in 0..count {
        writer.publish("q", request, b"x");
    }
    let mut offsets = Vec::new();
    while let Some(got) = reader.within(Duration::from_millis(300)) {
        let Got::Delivered { offset, .. } = got else { panic!("{got:?}") };
        offsets.push(offset);
        reader.settle(&[offset]);
    }
    for request in 0..count {
        assert_eq!(writer.next(), Got::Confirmed(request));
    }
    offsets
}

#[test]
fn an_honest_one_is_honest() {
    let folder = folder();
    assert_eq!(through(&target(&folder, &[]), 2000), (0..2000).collect::<Vec<u64>>());
}

#[test]
fn seven_are_dropped_doubled_or_swapped() {
    let variables = |fault| [("FAULT", fault), ("AFTER", "10"), ("EVERY", "100")];
    let struck = |offset: u64| offset % 100 == 10 && offset < 700;
    let folders = [folder(), folder(), folder()];
    let dropped = through(&target(&folders[0], &variables("drop")), 2000);
    assert_eq!(dropped, (0..2000).filter(|offset| !struck(*offset)).collect::<Vec<u64>>());
    let doubled = through(&target(&folders[1], &variables("double")), 2000);
    let expected: Vec<u64> = (0..2000).flat_map(|offset| vec![offset; 1 + usize::from(struck(offset))]).collect();
    assert_eq!(doubled, expected);
    let swapped = through(&target(&folders[2], &variables("swap")), 2000);
    let turned = swapped.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert_eq!((swapped.len(), turned), (2000, 7));
}

#[test]
fn a_confirmation_comes_late() {
    let folder = folder();
    let target = target(&folder, &[("FAULT", "late_confirm")]);
    let mut writer = Client::new(&target);
    writer.declare_queue();
    let started = Instant::now();
    writer.publish("q", 5, b"x");
    assert_eq!(writer.next(), Got::Confirmed(5));
    let waited = started.elapsed();
    assert!((200..400).contains(&waited.as_millis()), "{waited:?}");
}

#[test]
fn it_stands_still() {
    let folder = folder();
    let target = target(&folder, &[("FAULT", "stall"), ("EVERY_MS", "1000")]);
    let mut writer = Client::new(&target);
    writer.declare_queue();
    let started = Instant::now();
    let mut longest = Duration::ZERO;
    let mut request = 0;
    while started.elapsed() < Duration::from_millis(2200) {
        let asked = Instant::now();
        writer.publish("q", request, b"x");
        assert_eq!(writer.next(), Got::Confirmed(request));
        longest = longest.max(asked.elapsed());
        request += 1;
    }
    assert!((400..900).contains(&longest.as_millis()), "{longest:?}");
}

#[test]
fn one_reader_of_four_is_thinned() {
    let folder = folder();
    let target = target(&folder, &[("FAULT", "thin")]);
    let mut writer = Client::new(&target);
    writer.declare_stream();
    let mut readers: Vec<Client> = (0..4).map(|_| Client::new(&target)).collect();
    readers.iter_mut().for_each(Client::subscribe_stream);
    for request in 0..1000 {
        writer.publish("s", request, b"x");
    }
    let counts: Vec<usize> = readers
        .iter_mut()
        .map(|reader| std::iter::from_fn(|| reader.within(Duration::from_millis(300))).count())
        .collect();
    assert_eq!(counts, [1000, 1000, 1000, 900]);
}

#[test]
fn a_sink_confirms_and_keeps_nothing() {
    let folder = folder();
    assert_eq!(through(&target(&folder, &[("FAULT", "sink")]), 100), Vec::<u64>::new());
}

#[test]
fn four_of_five_come_while_more_come_and_the_rest_later() {
    let folder = folder();
    let target = target(&folder, &[("FAULT", "slow")]);
    let (mut writer, mut reader) = (Client::new(&target), Client::new(&target));
    writer.declare_queue();
    reader.subscribe();
    for request in 0..500 {
        writer.publish("q", request, b"x");
    }
    let count = std::iter::from_fn(|| reader.within(Duration::from_millis(250))).count();
    assert_eq!(count, 400);
    assert_eq!(reader.delivered(100).len(), 100, "the rest");
}
