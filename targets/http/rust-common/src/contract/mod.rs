//! Tests of the contract through real sockets. A server's `tests/contract.rs` is one call of [`crate::contract_tests`].

mod client;
mod h1;
mod h2;
mod life;
mod process;

pub use client::{Answer, Client, crc32};
pub use process::{Target, command, memory_kib};

/// A server under test.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Where it is.
    pub path: &'static str,
    /// Requests that it answers although they should be refused, because its library leaves no choice.
    pub lax: &'static [&'static str],
}

/// A group of cases.
pub type Case = (&'static str, fn(Program));

/// Every case, by name.
pub const CASES: [Case; 19] = [
    ("routes", h1::routes),
    ("bodies", h1::bodies),
    ("head", h1::head),
    ("refusals", h1::refusals),
    ("keep_alive", h1::keep_alive),
    ("pipelining", h1::pipelining),
    ("chunked", h1::chunked),
    ("fragments", h1::fragments),
    ("framing", h1::framing),
    ("limits", h1::limits),
    ("deaf_clients", h1::deaf_clients),
    ("h2_routes", h2::routes),
    ("h2_streams", h2::streams),
    ("h2_windows", h2::windows),
    ("h2_frames", h2::frames),
    ("h2_goaway", h2::goaway),
    ("drain", life::drain),
    ("workers", life::workers),
    ("bad_variables", life::bad_variables),
];

/// Runs one case.
///
/// # Panics
/// When there is none of that name, or the server does not keep the contract.
pub fn run(name: &str, program: Program) {
    let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("a case of that name");
    case(program);
}

/// One test for each case.
#[macro_export]
macro_rules! contract_tests {
    ($path:expr, lax: $lax:expr) => {
        const PROGRAM: $crate::contract::Program = $crate::contract::Program { path: $path, lax: &$lax };

        $crate::contract_tests!(
            routes bodies head refusals keep_alive pipelining chunked fragments framing limits deaf_clients h2_routes
            h2_streams h2_windows h2_frames h2_goaway drain workers bad_variables
        );

        #[test]
        fn every_case_is_run() {
            assert_eq!(TESTS.to_vec(), $crate::contract::CASES.map(|(name, _)| name).to_vec());
        }
    };
    ($($name:ident)*) => {
        const TESTS: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                $crate::contract::run(stringify!($name), PROGRAM);
            }
        )*
    };
}
