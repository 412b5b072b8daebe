//! The keys that the manifests of this workload's targets have, and what a target offers by them.

use plimsoll_workload::{Key, Manifest, Refusal, SETTINGS, Takes, Tier, VARIANT};

use crate::check::{Offer, Protocol, Route, Sizes};
use crate::load::{HttpLoad, Test};

/// The keys.
pub(crate) const KEYS: [Key; 6] = [
    Key {
        name: "routes",
        takes: Takes::SomeOf(&["root", "bytes", "sum", "json"]),
        required: false,
    },
    Key {
        name: "body_bytes",
        takes: Takes::SomeOfNumbers(&[64, 1_024, 16_384, 65_536, 1_048_576]),
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

/// The sizes of `/bytes` that many cases ask for.
const CASES_ASK_BYTES: [u64; 2] = [64, 1_024];

/// What else must hold: a reader must know what was tuned.
pub(crate) fn rule(manifest: &Manifest) -> Result<(), String> {
    let tuned = manifest.variant() == Some("tuned");
    if tuned && manifest.settings().is_empty() {
        return Err(
            "`variant = \"tuned\"` needs `settings`: name each setting that is not the default, in words".to_owned(),
        );
    }
    if let Some(sizes) = manifest.numbers("body_bytes") {
        if manifest.tier != Tier::Infrastructure {
            return Err(format!(
                "`body_bytes` is for tier \"infrastructure\", and the tier is {}; leave the key out: other targets serve every size",
                manifest.tier.word()
            ));
        }
        if CASES_ASK_BYTES.iter().any(|size| !sizes.contains(size)) {
            return Err(
                "`body_bytes` must have 64 and 1024, which `plimsoll check` asks for; add them, or leave \"bytes\" out of `routes`".to_owned(),
            );
        }
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
    if let Some(sizes) = manifest.numbers("body_bytes") {
        let sizes = sizes.into_iter().map(usize::try_from);
        offer.sizes = Sizes::Files(sizes.filter_map(Result::ok).collect());
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
    let has = |bytes: &&u64| usize::try_from(**bytes).is_ok_and(|bytes| offer.has_bytes(bytes));
    let (Some(missing), Sizes::Files(files)) =
        (asked.iter().find(|bytes| !has(bytes)), &offer.sizes)
    else {
        return Ok(());
    };
    // As the flag takes them.
    let files: Vec<String> = files.iter().map(usize::to_string).collect();
    let files = files.join(", ");
    Err(Refusal(match load.test {
        Test::Sizes => format!(
            "--test sizes: {name} serves no {missing} bytes by its target.toml, only {files}; measure one size at a time with --test rate --body-bytes N"
        ),
        _ => format!(
            "--body-bytes {missing}: {name} serves only {files} bytes by its target.toml; use one of these sizes"
        ),
    }))
}
