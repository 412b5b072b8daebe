//! The token that coordinator and agents prove to each other.

use super::metadata;
use crate::node::{Object, map};
use crate::settings::{MAKES_TOKEN, TOKEN};

pub(super) fn secret() -> Object {
    let node = map! {
        "apiVersion" => "v1",
        "kind" => "Secret",
        "metadata" => metadata("token"),
        "type" => "Opaque",
        "immutable" => true,
        "stringData" => map! { "token" => TOKEN },
    };
    Object {
        file: "token",
        when: Some(MAKES_TOKEN),
        node,
    }
}
