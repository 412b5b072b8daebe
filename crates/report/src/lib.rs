//! Result folders: files, schema and renderers.
//!
//! A result folder is the product. Every rendering is made only from the content of the folder.
//!
//! - [`folder`] writes and reads the folder: a file is there as a whole or not at all;
//! - [`hlog`] and [`csv`] are the two formats besides JSON: latencies per second for HdrHistogram tools, and one row
//!   per second;
//! - [`check`] is the record of a conformance check, the only one that `plimsoll-core` does not define;
//! - [`schema`] is the JSON Schema of the records, generated from the record types and checked in;
//! - [`loads`] groups trials by their load, [`words`] puts results into words and numbers, and [`facts`] lists the
//!   facts of a record. All renderers share these three;
//! - `document` tells a result once, as blocks: text, facts, tables, figures. What only one workload has, that
//!   workload says: the caller passes in who tells it ([`plimsoll_document::Tellers`]);
//! - its writers know only blocks: [`html`] (`report.html`), `markdown` (`summary.md`, and `step-summary.md` for the
//!   pages of GitHub's workflow runs), [`text`] (terminals);
//! - [`chart`] draws (the SVG files, the same as PNG, and `badge.svg`), [`junit`] writes `junit.xml` for build servers;
//! - [`render`] writes all renderings of a folder;
//! - [`goals`] says with which goals results were measured;
//! - [`history`] finds the results below a folder of results.

pub mod chart;
pub mod check;
mod choice;
pub mod csv;
mod document;
pub mod error;
mod escalation;
pub mod facts;
pub mod folder;
pub mod goals;
pub mod history;
pub mod hlog;
pub mod html;
pub mod junit;
pub mod loads;
mod markdown;
pub mod render;
pub mod schema;
pub mod text;
mod trial_files;
pub mod words;
mod xml;

pub use error::ReportError;
pub use folder::{
    BASELINE, PACKED, Packing, ResultFolder, Results, SearchView, StoredTrial, TrialLog, load,
    load_baselines, load_search_plan, load_trial, pack, read_live,
};
pub use hlog::{IntervalHistograms, IntervalLog};
pub use render::{render_all, render_to};
