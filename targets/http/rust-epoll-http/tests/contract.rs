//! The contract, through real sockets.

http_target::contract_tests!(env!("CARGO_BIN_EXE_rust-epoll-http"), lax: []);
