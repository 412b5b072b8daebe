//! The contract, through real sockets.

http_target::contract_tests!(env!("CARGO_BIN_EXE_rust-axum-http"), lax: ["cl-and-te", "te-and-cl", "same-cl-twice"]);
