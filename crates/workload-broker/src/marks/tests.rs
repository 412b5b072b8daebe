//! Marks against a model that keeps lists, and against brokers that lie.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::dialect::Shape;

use super::packed::NotASet;
use super::*;

const MAX: u64 = 1_000_000;

/// A writer that wrote and got confirmed `messages` measured messages after `warm_up` others.
fn confirmed_writer(writer: u32, warm_up: u64, messages: u64) -> WriterMarks {
    let mut marks = WriterMarks::new(writer, MAX);
    for number in 0..warm_up + messages {
        assert_eq!(marks.due(number >= warm_up), Some(number));
        assert_eq!(marks.written(number), Mark::First);
        assert_eq!(marks.confirmed(number, true), Mark::First);
    }
    marks
}

fn arrival(writer: u32, number: u64) -> Arrival {
    Arrival {
        writer,
        number,
        measured: true,
        when: When::InWindow,
        redelivered: false,
    }
}

fn book(shape: Shape, writers: &[WriterMarks], readers: &[ReaderMarks]) -> Book {
    let count = |n: usize| u32::try_from(n).unwrap();
    let mut book = Book::new(shape, count(writers.len()), count(readers.len()));
    for marks in writers {
        book.add(Marks::Writer(marks.clone())).unwrap();
    }
    for marks in readers {
        book.add(Marks::Reader(marks.clone())).unwrap();
    }
    assert_eq!(book.absent(), 0);
    book
}

fn measured(shape: Shape, writers: &[WriterMarks], readers: &[ReaderMarks]) -> (Tally, Delivery) {
    let tally = book(shape, writers, readers).tally(Span::Measured);
    let delivery = tally.delivery.clone().unwrap();
    (tally, delivery)
}

/// Fault of other benchmarks: loss by difference of counts. As many messages arrive as were published.
#[test]
fn seven_dropped_seven_doubled_and_seven_swapped_are_three_sevens() {
    for shape in [Shape::Queue, Shape::Stream] {
        let writer = confirmed_writer(0, 0, 1_000);
        let mut reader = ReaderMarks::new(0, 1, MAX);
        let mut arrivals = 0;
        let mut arrives = |number| {
            arrivals += 1;
            reader.delivered(&arrival(0, number));
        };
        for ten in 0..100_u64 {
            let first = ten * 10;
            // The 5th of a ten is dropped, doubled, or swapped with the 6th.
            let tail = match ten {
                0..7 => [6, 7].as_slice(),
                20..27 => &[5, 5, 6, 7],
                40..47 => &[6, 5, 7],
                _ => &[5, 6, 7],
            };
            for number in [0, 1, 2, 3, 4].iter().chain(tail).chain(&[8, 9]) {
                arrives(first + number);
            }
        }
        assert_eq!(arrivals, 1_000, "counts alone show nothing");
        let (tally, delivery) = measured(shape, &[writer], &[reader]);
        assert_eq!((tally.published, tally.confirmed), (1_000, 1_000));
        assert_eq!((delivery.missing, delivery.lost), (7, 7));
        assert_eq!((delivery.duplicated, delivery.reordered), (7, 7));
        assert_eq!((delivery.in_window, delivery.drained), (993, 0));
    }
}

/// Fault of other benchmarks: streams without "missing". One of four readers gets every second message.
#[test]
fn a_thinned_reader_of_a_stream_is_named() {
    let writers = [confirmed_writer(0, 0, 100), confirmed_writer(1, 0, 100)];
    let readers: Vec<ReaderMarks> = (0..4)
        .map(|reader| {
            let mut marks = ReaderMarks::new(reader, 2, MAX);
            for number in (0..100).filter(|number| reader != 2 || number % 2 == 0) {
                marks.delivered(&arrival(0, number));
                marks.delivered(&arrival(1, number));
            }
            marks
        })
        .collect();
    let (_, stream) = measured(Shape::Stream, &writers, &readers);
    assert_eq!((stream.missing, stream.in_window), (100, 700));
    let of_readers: Vec<_> = stream
        .readers
        .iter()
        .map(|of| (of.in_window, of.missing))
        .collect();
    let whole = (200, Some(0));
    assert_eq!(of_readers, [whole, whole, (100, Some(100)), whole]);
    assert_eq!(stream.duplicated, 0);
    assert_eq!(stream.least_and_most(), Some((100, 200)));

    // In a queue, the same arrivals are one message delivered several times.
    let (_, queue) = measured(Shape::Queue, &writers, &readers);
    assert_eq!((queue.missing, queue.in_window), (0, 200));
    assert_eq!(queue.duplicated, 500);
    assert_eq!(queue.readers[0].missing, None);
}

/// Fault of other benchmarks: drained counted as received.
#[test]
fn what_was_drained_is_not_delivered_in_the_window() {
    let writer = confirmed_writer(0, 10, 100);
    let mut reader = ReaderMarks::new(0, 1, MAX);
    for number in 0..110 {
        let when = match number {
            0..8 => When::Before,
            8..90 => When::InWindow,
            _ => When::Drained,
        };
        reader.delivered(&Arrival {
            when,
            measured: number >= 10,
            ..arrival(0, number)
        });
    }
    reader.settled(110);
    let book = book(Shape::Queue, &[writer], &[reader]);
    let delivery = book.tally(Span::Measured).delivery.unwrap();
    assert_eq!((delivery.in_window, delivery.drained), (80, 20));
    assert_eq!((delivery.missing, delivery.settled), (0, 110));
    assert_eq!(delivery.arrived_in_window, 82, "two of the warm-up");
    let in_all = book.tally(Span::InAll);
    assert_eq!(in_all.offered, 110);
    let delivery = in_all.delivery.unwrap();
    assert_eq!((delivery.in_window, delivery.drained), (90, 20));
}

/// Each message has a different fate.
#[test]
fn words_mean_what_the_table_says() {
    let mut writer = WriterMarks::new(0, MAX);
    let mut reader = ReaderMarks::new(0, 1, MAX);
    for number in 0..9 {
        assert_eq!(writer.due(true), Some(number));
    }
    for number in 0..8 {
        writer.written(number);
    }
    for (number, yes) in [(0, true), (1, true), (2, false), (3, false), (6, true)] {
        if yes {
            writer.confirmed(number, number == 0);
        } else {
            writer.refused(number);
        }
    }
    writer.refused(6);
    writer.refused_unnamed();
    for number in [0, 2, 4, 8] {
        reader.delivered(&arrival(0, number));
    }
    // 0 confirmed and delivered; 1 confirmed and not delivered; 2 refused and delivered; 3 refused; 4 only delivered;
    // 5 and 7 without a trace; 6 refused, confirmed and not delivered; 8 delivered, but its write was cut.
    let (tally, delivery) = measured(Shape::Queue, &[writer], &[reader]);
    let expected = Tally {
        offered: 9,
        published: 8,
        confirmed: 3,
        confirmed_in_window: 1,
        refused: 2,
        refused_unnamed: 1,
        unanswered: 3,
        contradicted: 1,
        answers_never_due: 0,
        delivery: Some(Delivery {
            in_window: 3,
            drained: 0,
            missing: 4,
            lost: 2,
            without_confirm: 1,
            in_spite_of_refusal: 1,
            unpublished: 1,
            arrived_in_window: 4,
            readers: delivery.readers.clone(),
            ..Delivery::default()
        }),
    };
    assert_eq!(tally, expected);
}

#[test]
fn without_readers_nothing_is_missing() {
    let tally = book(Shape::Queue, &[confirmed_writer(0, 0, 5)], &[]).tally(Span::Measured);
    assert_eq!((tally.confirmed, tally.delivery), (5, None));
}

#[test]
fn what_was_never_due_is_counted_and_leaves_no_trace() {
    let mut writer = confirmed_writer(0, 0, 10);
    let before = writer.clone();
    for number in [10, MAX, u64::MAX] {
        assert_eq!(writer.confirmed(number, true), Mark::NeverDue);
        assert_eq!(writer.refused(number), Mark::NeverDue);
        assert_eq!(
            writer.confirmed_up_to(number, true, |_| unreachable!()),
            Mark::NeverDue
        );
    }
    let never_due = 9;
    assert_eq!(
        WriterMarks {
            never_due,
            ..before
        },
        writer
    );

    let mut reader = ReaderMarks::new(0, 1, MAX);
    let made_up = [(1, 0), (u32::MAX, 0), (0, MAX), (0, u64::MAX)];
    for (from, number) in made_up {
        assert_eq!(reader.delivered(&arrival(from, number)), Mark::NeverDue);
    }
    assert_eq!(reader.from[0].delivered.words(), 0);
    // Possible in the plan, but never due.
    assert_eq!(reader.delivered(&arrival(0, 500_000)), Mark::First);
    let (tally, delivery) = measured(Shape::Queue, &[writer], &[reader]);
    assert_eq!((tally.answers_never_due, delivery.never_due), (9, 5));
    assert_eq!(delivery.missing, 10);
}

#[test]
fn a_writer_stops_at_its_last_message() {
    let mut marks = WriterMarks::new(0, 2);
    assert_eq!(
        [marks.due(true), marks.due(true), marks.due(true)],
        [Some(0), Some(1), None]
    );
    assert_eq!(Bits::new(u64::MAX).limit(), NUMBERS_MAX);
}

#[test]
fn a_confirmation_of_several_names_each_once_and_no_refused_one() {
    let mut marks = WriterMarks::new(0, MAX);
    for number in 0..200 {
        marks.due(true);
        marks.written(number);
    }
    marks.refused(70);
    marks.confirmed(3, true);
    let mut named = Vec::new();
    let first = marks.confirmed_up_to(99, true, |number| named.push(number));
    assert_eq!(first, Mark::First);
    let expected: Vec<u64> = (0..100).filter(|n| ![3, 70].contains(n)).collect();
    assert_eq!(named, expected);
    assert_eq!(
        marks.confirmed_up_to(99, true, |_| unreachable!()),
        Mark::Again
    );
    marks.confirmed_up_to(101, true, |number| named.push(number));
    assert_eq!(named[98..], [100, 101]);
    let tally = book(Shape::Queue, &[marks], &[]).tally(Span::Measured);
    assert_eq!((tally.confirmed, tally.refused), (101, 1));
    assert_eq!((tally.confirmed_in_window, tally.unanswered), (101, 98));
}

#[test]
fn marks_outside_the_plan_or_twice_are_refused() {
    let mut book = Book::new(Shape::Stream, 1, 1);
    assert_eq!(book.absent(), 2);
    let writer = Marks::Writer(WriterMarks::new(0, MAX));
    assert_eq!(book.add(writer.clone()), Ok(()));
    assert_eq!(book.add(writer), Err(NotInPlan));
    assert_eq!(
        book.add(Marks::Writer(WriterMarks::new(1, MAX))),
        Err(NotInPlan)
    );
    assert_eq!(
        book.add(Marks::Reader(ReaderMarks::new(1, 1, MAX))),
        Err(NotInPlan)
    );
    assert_eq!(book.absent(), 1);
    assert_eq!(book.add(Marks::Reader(ReaderMarks::new(0, 1, MAX))), Ok(()));
    assert_eq!(book.absent(), 0);
}

/// Fault of other benchmarks: all samples kept.
#[test]
fn ten_million_messages_fit_into_a_few_megabytes() {
    const MESSAGES: u64 = 10_000_000;
    let mut reader = ReaderMarks::new(0, 1, MESSAGES);
    for number in 0..MESSAGES {
        reader.delivered(&arrival(0, number));
    }
    let from = &reader.from[0];
    let bytes = (from.delivered.words() + from.drained.words()) * 8;
    assert!(bytes < 1_300_000, "{bytes}");
    // In order and complete, they are handed over as next to nothing.
    let handed_over = serde_json::to_string(&reader).unwrap();
    assert!(handed_over.len() < 1_000, "{}", handed_over.len());
}

#[test]
fn sets_are_packed_as_the_table_says() {
    let mut set = Bits::new(100_000);
    assert_eq!(set.to_bytes(), [0xA0, 0x8D, 0x06, 0]);
    for number in 0..32_768 {
        set.insert(number).unwrap();
    }
    set.insert(65_536 + 3).unwrap();
    // A full block, an empty one, and one with the runs 3 out, 1 in, 32,764 out.
    let packed = [0xA0, 0x8D, 0x06, 3, 1, 0, 3, 3, 3, 1, 0xFC, 0xFF, 0x01];
    assert_eq!(set.to_bytes(), packed);
    assert_eq!(Bits::from_bytes(&packed), Ok(set));
}

#[test]
fn bytes_that_are_not_a_set_are_refused() {
    let runs = |lengths: &[u8]| [&[100, 1, 3, 2][..], lengths].concat();
    for bytes in [
        &b""[..],
        // No count, a number without an end, a number that is too long, a block too many, too few.
        &[100],
        &[0x80],
        &[0xFF; 11],
        &[100, 2, 0, 0],
        &[100, 1],
        // An unknown kind, words that end early, bytes after the last block.
        &[100, 1, 4],
        &[100, 1, 2, 0],
        &[100, 1, 0, 0],
        // All numbers of a block, where only 100 are allowed.
        &[100, 1, 1],
        // A limit that no set has.
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0],
        // Runs that are too short or too long in all, and a number in them at the limit.
        &runs(&[1, 1]),
        &runs(&[1, 0xFF, 0xFF, 0x7F]),
        &[100, 1, 3, 3, 100, 1, 0x9B, 0xFF, 0x01],
    ] {
        assert_eq!(Bits::from_bytes(bytes), Err(NotASet), "{bytes:?}");
    }
    assert!(serde_json::from_str::<Bits>("\"not base64!\"").is_err());
    assert!(serde_json::from_str::<Bits>("\"AAA\"").is_ok());
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    let any = 0_u64..100_000;
    let dense = (0_u64..90_000, 1_u64..9_000, 1_u64..4).prop_map(|(from, count, step)| {
        (from..from + count).step_by(usize::try_from(step).unwrap())
    });
    let dense = dense.prop_map(|numbers| numbers.filter(|n| *n < 100_000).collect::<Vec<_>>());
    prop_oneof![prop::collection::vec(any, 0..200), dense]
}

fn set_of(numbers: &[u64]) -> Bits {
    let mut set = Bits::new(100_000);
    for number in numbers {
        set.insert(*number).unwrap();
    }
    set
}

proptest! {
    #[test]
    fn a_set_is_a_set(a in numbers(), b in numbers(), start in 0_u64..110_000, length in 0_u64..50_000) {
        let mut set = Bits::new(100_000);
        let mut model = BTreeSet::new();
        for number in &a {
            prop_assert_eq!(set.insert(*number), Ok(model.insert(*number)));
        }
        prop_assert_eq!(set.insert(100_000), Err(Beyond));
        let range = start..start + length;
        let inside = |model: &BTreeSet<u64>| model.iter().filter(|n| range.contains(n)).count() as u64;
        prop_assert_eq!(set.count(&range), inside(&model));
        prop_assert!((0..1_000).all(|n| set.contains(n) == model.contains(&n)));
        let numbers: Vec<u64> = bits::words_of(&(0..100_000))
            .flat_map(|(at, mask)| bits::numbers_in(at, set.word(at) & mask)).collect();
        prop_assert!(numbers.iter().eq(&model));
        set.unite(&set_of(&b));
        model.extend(&b);
        prop_assert_eq!(set.count(&range), inside(&model));
    }

    #[test]
    fn a_set_survives_its_way(a in numbers()) {
        let set = set_of(&a);
        let bytes = set.to_bytes();
        prop_assert_eq!(Bits::from_bytes(&bytes), Ok(set.clone()));
        prop_assert!(bytes.len() <= 100_000 / 8 + 4_096 + 10);
        let text = serde_json::to_string(&set).unwrap();
        prop_assert_eq!(serde_json::from_str::<Bits>(&text).unwrap(), set);
        for cut in 0..bytes.len() {
            prop_assert!(Bits::from_bytes(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn noise_is_no_panic(noise in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(set) = Bits::from_bytes(&noise) {
            prop_assert_eq!(Bits::from_bytes(&set.to_bytes()), Ok(set));
        }
    }

    /// A broker does anything at all; each message has one fate, and a model with lists agrees about it.
    #[test]
    fn every_message_has_one_fate(
        fates in prop::collection::vec((any::<bool>(), 0_u8..4, prop::collection::vec((0_u32..3, any::<bool>()), 0..3)), 1..150),
        warm_up in 0_usize..20, stream in any::<bool>(), order in any::<u64>(),
    ) {
        let shape = if stream { Shape::Stream } else { Shape::Queue };
        let mut writer = WriterMarks::new(0, MAX);
        let mut readers: Vec<ReaderMarks> = (0..3).map(|reader| ReaderMarks::new(reader, 1, MAX)).collect();
        let mut arrivals = Vec::new();
        for (number, (written, answer, arrive)) in (0_u64..).zip(&fates) {
            writer.due(number >= warm_up as u64);
            if *written { writer.written(number); }
            if answer & 1 != 0 { writer.confirmed(number, true); }
            if answer & 2 != 0 { writer.refused(number); }
            arrivals.extend(arrive.iter().map(|(reader, late)| (*reader, number, *late)));
        }
        arrivals.sort_by_key(|(_, number, _)| plimsoll_core::schedule::mix(order ^ number));
        for (reader, number, late) in &arrivals {
            readers[*reader as usize].delivered(&Arrival {
                when: if *late { When::Drained } else { When::InWindow },
                measured: *number >= warm_up as u64,
                ..arrival(0, *number)
            });
        }
        let (tally, delivery) = measured(shape, &[writer], &readers);

        // Each reader of a stream is a group of its own; a queue's readers are one.
        let groups: Vec<Vec<u32>> = if stream { (0..3).map(|r| vec![r]).collect() } else { vec![vec![0, 1, 2]] };
        let (mut fate, mut published) = ([0_u64; 6], 0);
        for group in &groups {
            for (number, (written, answer, arrive)) in fates.iter().enumerate().skip(warm_up) {
                // The first arrival at each reader decides whether it was late.
                let came: Vec<bool> = group.iter().filter_map(|reader| {
                    arrive.iter().find(|(r, _)| r == reader).map(|(_, late)| *late)
                }).collect();
                let times = arrive.iter().filter(|(reader, _)| group.contains(reader)).count() as u64;
                fate[4] += times.saturating_sub(1);
                fate[5] += u64::from(!written && times > 0);
                if !written { continue; }
                published += 1;
                match (came.is_empty(), came.contains(&false), *answer) {
                    (false, true, _) => fate[0] += 1,
                    (false, false, _) => fate[1] += 1,
                    (true, _, 2) => {}
                    (true, _, answer) => {
                        fate[2] += 1;
                        fate[3] += u64::from(answer & 1 != 0);
                    }
                }
                prop_assert!(number >= warm_up);
            }
        }
        prop_assert_eq!(published, tally.published * groups.len() as u64);
        let counted = [delivery.in_window, delivery.drained, delivery.missing, delivery.lost, delivery.duplicated, delivery.unpublished];
        prop_assert_eq!(counted, fate);
        let refused = tally.refused * groups.len() as u64 - delivery.in_spite_of_refusal;
        prop_assert_eq!(published, delivery.in_window + delivery.drained + delivery.missing + refused);
        prop_assert_eq!(tally.published, tally.confirmed + tally.refused + tally.unanswered);
        prop_assert!(delivery.lost <= delivery.missing);
    }

    /// Whichever process hands over first, and through JSON, the totals are the same.
    #[test]
    fn totals_do_not_depend_on_the_order(order in Just([0_usize, 1, 2, 3]).prop_shuffle(), doubled in 0_u64..50) {
        let mut reader = ReaderMarks::new(1, 2, MAX);
        reader.delivered(&arrival(1, doubled));
        reader.delivered(&arrival(1, doubled));
        let parts = [
            Marks::Writer(confirmed_writer(0, 3, 50)),
            Marks::Writer(confirmed_writer(1, 3, 60)),
            Marks::Reader(ReaderMarks::new(0, 2, MAX)),
            Marks::Reader(reader),
        ];
        let tally = |order: [usize; 4]| {
            let mut book = Book::new(Shape::Queue, 2, 2);
            for part in order {
                let sent = serde_json::to_string(&parts[part]).unwrap();
                book.add(serde_json::from_str(&sent).unwrap()).unwrap();
            }
            book.tally(Span::Measured)
        };
        prop_assert_eq!(tally(order), tally([0, 1, 2, 3]));
    }
}
