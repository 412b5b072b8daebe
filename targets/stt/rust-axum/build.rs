//! Tells the program what it is made of.

#[path = "build/versions.rs"]
mod versions;

fn main() {
    // The libraries on the path of a session, as the lock file names them.
    versions::tell(&["axum", "bytes", "h2", "hyper", "hyper-util", "mimalloc", "serde_json", "tokio", "tungstenite"]);
}
