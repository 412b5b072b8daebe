//! Tells the program what it is made of, for the line that it prints on start.

fn main() {
    http_target::versions::tell(&["h2", "http", "httparse", "hyper", "hyper-util", "serde_json", "tokio"]);
}
