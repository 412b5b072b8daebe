//! Tells the program what it is made of, for the line that it prints on start.

fn main() {
    http_target::versions::tell(&[
        "axum",
        "h2",
        "http",
        "httparse",
        "hyper",
        "hyper-util",
        "serde_json",
        "tokio",
        "tower",
    ]);
}
