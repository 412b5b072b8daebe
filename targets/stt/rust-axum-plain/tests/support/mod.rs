//! What the tests share.

#![allow(dead_code, reason = "each test program takes what it needs")]

pub mod inference;

use std::sync::Arc;

use rust_axum_plain::config::Config;
use rust_axum_plain::gateway::Gateway;
use serde_json::Value;

/// The cases of a file of the shared vectors.
pub fn vectors(file: &str) -> Vec<Value> {
    let path = format!("{}/../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

/// A configuration that has only these variables.
pub fn config(variables: &[(&str, &str)]) -> Config {
    let of = |name: &str| variables.iter().find(|(key, _)| *key == name);
    Config::read(|name| of(name).map(|(_, value)| value.into())).expect("a good configuration")
}

/// A gateway that listens nowhere.
pub fn gateway(variables: &[(&str, &str)]) -> Arc<Gateway> {
    Gateway::new(config(variables)).expect("a gateway")
}
