//! What became of the messages of a trial in which the broker crashed.
//!
//! A writer's connection ends with the crash, and nothing is sent again. So a message below the number that was next then
//! can be confirmed only before the crash, and what was open then stays open for good.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::tally::Sets;
use super::{Book, FromWriter, ReaderMarks, WriterMarks};

/// What became of the messages that were written before the crash, over the whole trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossed {
    /// Confirmed before the crash.
    pub confirmed: u64,
    /// Of those, never delivered: neither before the crash nor after it.
    pub lost: u64,
    /// Written, and neither confirmed nor refused when the connection ended.
    pub open: u64,
    /// Of those, delivered all the same.
    pub recovered: u64,
    /// Open ones that were due in the window and never came. The broker promised nothing for them.
    pub open_missing: u64,
}

impl WriterMarks {
    /// The connection is lost: what is open now is confirmed no more.
    pub fn crashed(&mut self) {
        let first = self.crashed.map_or(self.due, |(first, _)| first);
        self.crashed = Some((first, self.due));
        self.answered = self.due;
    }

    /// The numbers of messages that were due before the first loss of the connection, and before the last one.
    fn before(&self) -> (Range<u64>, Range<u64>) {
        let (first, last) = self.crashed.unwrap_or_default();
        (0..first, 0..last)
    }
}

impl Book {
    /// What became of the messages of a queue that were written before the crash.
    #[must_use]
    pub fn crossed(&self) -> Crossed {
        let readers: Vec<&ReaderMarks> = self.readers().collect();
        let mut crossed = Crossed::default();
        for writer in self.writers() {
            let (before_first, before_last) = writer.before();
            let confirmed = Sets::within(writer, before_first);
            let delivered = delivered(&confirmed, &readers);
            crossed.confirmed += confirmed.count(|at| confirmed.confirmed(at));
            crossed.lost += confirmed.count(|at| confirmed.confirmed(at) & !delivered(at));
            let measured = writer.measured.start..writer.measured.end.min(before_last.end);
            let open = Sets::within(writer, before_last);
            let is_open = |at| open.written(at) & open.unanswered(at);
            crossed.open += open.count(is_open);
            crossed.recovered += open.count(|at| is_open(at) & delivered(at));
            crossed.open_missing +=
                Sets::within(writer, measured).count(|at| is_open(at) & !delivered(at));
        }
        crossed
    }

    /// How many messages of the whole trial the broker confirmed and never delivered; in a stream, to each reader that
    /// did not get it. Also those of a write that its connection did not survive.
    #[must_use]
    pub fn confirmed_lost(&self) -> u64 {
        let readers: Vec<&ReaderMarks> = self.readers().collect();
        let groups: Vec<&[&ReaderMarks]> = match self.shape() {
            crate::dialect::Shape::Queue => vec![&readers],
            crate::dialect::Shape::Stream => readers.chunks(1).collect(),
        };
        let mut lost = 0;
        for writer in self.writers() {
            let sets = Sets::of(writer, super::Span::InAll);
            for group in &groups {
                let delivered = delivered(&sets, group);
                lost += sets.count(|at| sets.confirmed(at) & !delivered(at));
            }
        }
        lost
    }
}

/// What these readers got of a writer, word by word.
fn delivered<'a>(sets: &Sets<'_>, readers: &[&'a ReaderMarks]) -> impl Fn(usize) -> u64 + use<'a> {
    let from = readers.iter().filter_map(|reader| sets.from(reader));
    let from: Vec<&FromWriter> = from.collect();
    move |at| {
        from.iter()
            .fold(0, |word, from| word | from.delivered.word(at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrival, Marks, When};
    use super::*;
    use crate::dialect::Shape;

    /// A writer with ten messages before the crash and five after it. The warm-up has two of them.
    fn writer() -> WriterMarks {
        let mut marks = WriterMarks::new(0, 100);
        for number in 0..10 {
            marks.due(number >= 2);
            marks.written(number);
        }
        for number in [0, 1, 3, 4, 5] {
            marks.confirmed(number, false);
        }
        marks.refused(6);
        marks.crashed();
        for number in 10..15 {
            marks.due(true);
            marks.written(number);
            marks.confirmed(number, true);
        }
        marks
    }

    fn reader(number: u32, delivered: &[u64]) -> ReaderMarks {
        let mut marks = ReaderMarks::new(number, 1, 100);
        for number in delivered {
            marks.delivered(&Arrival {
                writer: 0,
                number: *number,
                measured: *number >= 2,
                when: When::InWindow,
                redelivered: false,
            });
        }
        marks
    }

    fn book(shape: Shape, readers: &[ReaderMarks]) -> Book {
        let mut book = Book::new(shape, 1, u32::try_from(readers.len()).unwrap());
        book.add(Marks::Writer(writer())).unwrap();
        for reader in readers {
            book.add(Marks::Reader(reader.clone())).unwrap();
        }
        book
    }

    #[test]
    fn what_was_confirmed_before_the_crash_is_lost_and_what_was_open_is_not() {
        let readers = [reader(0, &[1, 3, 7]), reader(1, &[4, 10, 11])];
        let book = book(Shape::Queue, &readers);
        let expected = Crossed {
            confirmed: 5,
            // 0, of the warm-up, and 5.
            lost: 2,
            // 2, 7, 8 and 9; not 6, which was refused.
            open: 4,
            recovered: 1,
            open_missing: 3,
        };
        assert_eq!(book.crossed(), expected);
        // And three that were confirmed after the crash.
        assert_eq!(book.confirmed_lost(), 5);
    }

    /// A new connection confirms only what came over it.
    #[test]
    fn a_confirmation_up_to_a_message_does_not_reach_over_the_crash() {
        let mut marks = writer();
        for number in 15..18 {
            marks.due(true);
            marks.written(number);
        }
        let mut confirmed = Vec::new();
        marks.confirmed_up_to(17, true, |number| confirmed.push(number));
        assert_eq!(confirmed, [15, 16, 17]);
        let mut book = Book::new(Shape::Queue, 1, 0);
        book.add(Marks::Writer(marks)).unwrap();
        assert_eq!(book.crossed().open, 4);
    }

    #[test]
    fn each_reader_of_a_stream_has_losses_of_its_own() {
        let all: Vec<u64> = (0..15).collect();
        let book = book(Shape::Stream, &[reader(0, &all), reader(1, &[0, 1])]);
        assert_eq!(book.confirmed_lost(), 8);
    }

    #[test]
    fn a_connection_that_is_lost_again_leaves_more_open_and_no_more_confirmed_before() {
        let mut marks = writer();
        marks.due(true);
        marks.written(15);
        marks.crashed();
        let mut book = Book::new(Shape::Queue, 1, 0);
        book.add(Marks::Writer(marks)).unwrap();
        let crossed = book.crossed();
        assert_eq!((crossed.confirmed, crossed.open), (5, 5));
    }

    #[test]
    fn without_a_crash_there_is_nothing() {
        let mut book = Book::new(Shape::Queue, 1, 0);
        book.add(Marks::Writer(WriterMarks::new(0, 10))).unwrap();
        assert_eq!(book.crossed(), Crossed::default());
    }
}
