//! A result as a document: the blocks that it is made of, the words for its numbers, and what a workload tells of it.
//!
//! Whoever tells a part of a result says it once, in blocks. The writers, in `plimsoll-report`, know blocks only.
//!
//! - `blocks`: what a document is made of; `text`: its lines; `cells`: tables by columns;
//! - [`words`]: numbers and their units in words; [`facts`]: what programs used, as rows;
//! - `tell`: what a workload tells of its own trials;
//! - `unknown`: what stands in a record that no workload tells.

mod blocks;
mod cells;
pub mod facts;
mod tell;
mod text;
mod unknown;
pub mod words;

pub use blocks::{
    Answer, Block, Blocks, Column, Detail, Document, Fact, Figure, List, Section, Shown, Table,
};
pub use cells::Cells;
pub use tell::{Named, Nouns, Tell, Tellers};
pub use text::{Span, Text, Tone};
