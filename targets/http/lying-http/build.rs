//! Tells the program what it is made of, for the line that it prints on start.

fn main() {
    http_target::versions::tell(&["crc32fast", "httparse", "rust-epoll-http", "rustix", "serde_json"]);
}
