//! The pages. All HTML goes through the writer of the reports, which escapes every text.

pub(super) mod compare;
pub(super) mod frame;
pub(super) mod history;
pub(super) mod live;
mod load_lines;
pub(super) mod result;
