//! The marks of all writers and readers of a trial.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::dialect::Shape;

use super::packed::whole;
use super::{Marks, ReaderMarks, WriterMarks};

/// Marks that do not belong to the trial: of a writer or reader that the plan does not have, or that came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("marks of a writer or reader that is not in the plan, or that came twice")]
pub struct NotInPlan;

/// The marks of all writers and readers, from whichever threads and processes. Their order does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Book {
    shape: Shape,
    writers_planned: u32,
    readers_planned: u32,
    writers: BTreeMap<u32, WriterMarks>,
    readers: BTreeMap<u32, ReaderMarks>,
}

impl Book {
    /// The book of a trial with so many writers and readers, numbered from 0.
    #[must_use]
    pub fn new(shape: Shape, writers: u32, readers: u32) -> Self {
        Self {
            shape,
            writers_planned: writers,
            readers_planned: readers,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
        }
    }

    /// Enters the marks of one session.
    ///
    /// # Errors
    /// They are not in the plan, or came before. The book is unchanged.
    pub fn add(&mut self, marks: Marks) -> Result<(), NotInPlan> {
        match marks {
            Marks::Writer(marks) => {
                let planned = marks.writer < self.writers_planned;
                add(&mut self.writers, marks.writer, planned, marks)
            }
            Marks::Reader(marks) => {
                let planned = marks.reader < self.readers_planned;
                add(&mut self.readers, marks.reader, planned, marks)
            }
        }
    }

    /// How many writers and readers have not handed over. Above 0, a client process has failed, and the totals say
    /// nothing about the broker.
    #[must_use]
    pub fn absent(&self) -> u64 {
        let planned = u64::from(self.writers_planned) + u64::from(self.readers_planned);
        planned - whole(self.writers.len()) - whole(self.readers.len())
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn writers(&self) -> impl Iterator<Item = &WriterMarks> {
        self.writers.values()
    }

    pub(super) fn readers(&self) -> impl Iterator<Item = &ReaderMarks> {
        self.readers.values()
    }

    pub(super) fn has_readers(&self) -> bool {
        self.readers_planned > 0
    }
}

fn add<M>(
    entered: &mut BTreeMap<u32, M>,
    number: u32,
    planned: bool,
    marks: M,
) -> Result<(), NotInPlan> {
    if !planned || entered.contains_key(&number) {
        return Err(NotInPlan);
    }
    entered.insert(number, marks);
    Ok(())
}
