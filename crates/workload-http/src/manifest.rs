//! The keys that the manifests of this workload's targets have, and what a target offers by them.

use plimsoll_workload::{Key, Manifest, Refusal, SETTINGS, Takes, Tier, VARIANT};

use crate::check::{FILES, Offer, Protocol, Route};
use crate::load::HttpLoad;

/// The keys.
pub(crate) const KEYS: [Key; 5] = [
    Key {
        name: "routes",
        takes: Takes::SomeOf(&["root", "bytes", "sum", "json"]),
        required: false,
    },
    Key {
        name: "protocols",
        takes: Takes::SomeOf(&["h1", "h2c"]),
        required: false,
    },
    Key {
        name: "h2_port",
        takes: Takes::Port { variable: H2_PORT },
        required: false,
    },
    Key {
        name: VARIANT,
        takes: Takes::OneOf(&["default", "tuned"]),
        required: false,
    },
    Key {
        name: SETTINGS,
        takes: Takes::Lines,
        required: false,
    },
];

/// The variable of the port for HTTP/2, for a target that needs one.
pub(crate) const H2_PORT: &str = "H2_PORT";

/// What else must hold: a reader must know what was tuned.
pub(crate) fn rule(manifest: &Manifest) -> Result<(), String> {
    let tuned = manifest.variant() == Some("tuned");
    if tuned && manifest.settings().is_empty() {
        return Err(
            "`variant = \"tuned\"` needs `settings`: name each setting that is not the default, in words".to_owned(),
        );
    }
    let protocols = manifest.list("protocols").unwrap_or_default();
    if manifest.says("h2_port") && !protocols.contains(&"h2c") {
        return Err(
            "`h2_port` is the port of h2c; add `\"h2c\"` to `protocols`, or leave `h2_port` out"
                .to_owned(),
        );
    }
    Ok(())
}

/// What a target offers.
pub(crate) fn offer(manifest: &Manifest) -> Offer {
    let mut offer = match manifest.tier {
        Tier::Infrastructure => Offer::of_infrastructure(),
        _ => Offer::default(),
    };
    if let Some(routes) = manifest.list("routes") {
        offer.routes = routes.into_iter().filter_map(Route::by_name).collect();
    }
    if let Some(protocols) = manifest.list("protocols") {
        offer.protocols = protocols
            .into_iter()
            .filter_map(Protocol::by_name)
            .collect();
    }
    offer.h2_port = manifest.says("h2_port");
    offer
}

/// Refuses a load that asks for what the target does not have.
pub(crate) fn must_have(manifest: &Manifest, load: &HttpLoad) -> Result<(), Refusal> {
    let offer = offer(manifest);
    let name = &manifest.name;
    if !offer.protocols.contains(&load.protocol) {
        return Err(Refusal(format!(
            "--protocol {}: {name} does not speak it by its target.toml; leave the flag out",
            load.protocol.name()
        )));
    }
    for route in load.routes() {
        if !offer.has(route) {
            return Err(Refusal(format!(
                "--test {}: {name} does not have the route {} by its target.toml; choose another test",
                load.test.name(),
                route.name()
            )));
        }
    }
    let asked = load.bytes_asked();
    match asked.iter().find(|bytes| !offer.has_bytes(**bytes)) {
        Some(bytes) => Err(Refusal(format!(
            "--body-bytes {bytes}: {name} serves files of {FILES:?} bytes only; use one of these sizes"
        ))),
        None => Ok(()),
    }
}
