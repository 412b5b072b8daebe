//! Counters, and the Prometheus text format, version 0.0.4.

use std::fmt::{Arguments, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::header::{CONTENT_TYPE, HeaderName};

/// The header of an answer in this format.
pub const HEADER: (HeaderName, &str) = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`; adding nothing touches nothing.
    pub fn add(&self, count: u64) {
        if count != 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A metric without labels.
pub fn plain(text: &mut String, name: &str, kind: &str, value: u64) {
    put(text, format_args!("# TYPE {name} {kind}\n{name} {value}\n"));
}

/// A piece of the text.
pub fn put(text: &mut String, arguments: Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String does not fail");
}
