//! Files of images: one for each family of targets, with a stage for each target, and one for the command.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::json;

use crate::catalogue::{Catalogue, Family, Image, PORT, Target};
use crate::settings::{USER, VERSION};

const FOLDER: &str = "deploy/images";

/// What all run on. The compilers' images have the same one below them.
const DEBIAN: &str = "docker.io/library/debian:bookworm-slim";

/// All files, by path from the root of the repository.
pub(crate) fn files(catalogue: &Catalogue) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let of = |family: Family| {
        let targets = catalogue.targets.iter();
        let with_image = targets.filter_map(|target| Some((target, target.image.as_ref()?)));
        let own = with_image.filter(|(_, image)| image.family == family);
        own.collect::<Vec<_>>()
    };
    for family in Family::ALL {
        let targets = of(family);
        if !targets.is_empty() {
            let path = format!("{FOLDER}/{}.Containerfile", family.word());
            files.insert(
                path,
                family_file(family, version(catalogue, family), &targets),
            );
        }
    }
    let rust = version(catalogue, Family::Rust);
    files.insert(
        format!("{FOLDER}/command.Containerfile"),
        command_file(rust, &programs(catalogue)),
    );
    files
}

fn version(catalogue: &Catalogue, family: Family) -> &str {
    catalogue.versions.get(&family).map_or("", String::as_str)
}

/// The image that has the family's compiler or runtime.
fn base(family: Family, version: &str) -> String {
    match family {
        Family::Rust => format!("docker.io/library/rust:{version}-slim-bookworm"),
        Family::Go => format!("docker.io/library/golang:{version}-bookworm"),
        Family::Java => format!("docker.io/library/eclipse-temurin:{version}-jdk"),
        Family::Node => format!("docker.io/library/node:{version}-bookworm-slim"),
        Family::Python => format!("docker.io/library/python:{version}-slim-bookworm"),
        Family::Debian => DEBIAN.to_owned(),
    }
}

/// Debian packages that the builds of a family need besides its image.
fn packages(family: Family) -> &'static str {
    match family {
        Family::Rust => "gcc libc6-dev",
        Family::Go | Family::Node => "ca-certificates",
        Family::Java => "ca-certificates maven python3",
        Family::Python => "ca-certificates gcc",
        Family::Debian => "ca-certificates python3 python3-venv",
    }
}

fn family_file(family: Family, version: &str, targets: &[(&Target, &Image)]) -> String {
    let base = base(family, version);
    let word = family.word();
    let mut file = format!(
        "# The images of these targets. Made from their manifests; do not edit.
#
#   git archive HEAD | podman build --format docker -f {FOLDER}/{word}.Containerfile --target NAME \\
#     --build-arg COMMIT=\"$(git rev-parse HEAD)\" --build-arg SOURCE_DATE_EPOCH=\"$(git log -1 --format=%ct)\" \\
#     --timestamp \"$(git log -1 --format=%ct)\" -t localhost/plimsoll-NAME:{VERSION} -

FROM {base} AS base
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends {} && rm -rf /var/lib/apt/lists/*
ARG SOURCE_DATE_EPOCH
COPY . /plimsoll
",
        packages(family)
    );
    match family {
        // Maven brings a runtime of its own along; this one is what the targets are built and run with.
        Family::Java => file.push_str("ENV JAVA_HOME=/opt/java/openjdk\n"),
        // What the repository pins has formatters and linters too, which no build needs.
        Family::Rust => {
            let _ = writeln!(file, "ENV RUSTUP_TOOLCHAIN={version}");
        }
        _ => {}
    }
    for (target, image) in targets {
        file.push('\n');
        file.push_str(&target_stages(target, image, &base));
    }
    file
}

fn target_stages(target: &Target, image: &Image, base: &str) -> String {
    let (name, folder) = (
        &target.name,
        format!("/plimsoll/targets/{}/{}", target.workload, target.name),
    );
    let mut stages = format!("FROM base AS tools-{name}\n");
    if !image.installs.is_empty() {
        let installs = image.installs.join(" && ");
        let _ = writeln!(stages, "RUN cd /plimsoll && {installs}");
    }
    let _ = write!(
        stages,
        "\nFROM tools-{name} AS build-{name}\nWORKDIR {folder}\n"
    );
    if let Some(build) = &image.build {
        let _ = writeln!(stages, "RUN {}", json!(build));
    }
    let program = image.run.first().map_or("", String::as_str);
    let is_whole = matches!(image.family, Family::Rust | Family::Go) && program.contains('/');
    // What a target starts with must be there: the family's runtime, or what its scripts installed.
    let from = match image.family {
        Family::Rust | Family::Go => DEBIAN.to_owned(),
        Family::Debian => format!("tools-{name}"),
        Family::Java | Family::Node | Family::Python => base.to_owned(),
    };
    let copied = if is_whole {
        format!("{folder}/{program}")
    } else {
        "/plimsoll/targets".to_owned()
    };
    let _ = write!(
        stages,
        "\nFROM {from} AS {name}\nCOPY --from=build-{name} --chown={USER}:{USER} {copied} {copied}\nWORKDIR {folder}\n"
    );
    stages.push_str(&labels(target, image, &from));
    for (variable, value) in image
        .variables
        .iter()
        .chain([&("PORT".to_owned(), PORT.to_string())].map(|(a, b)| (a, b)))
    {
        let _ = writeln!(stages, "ENV {variable}={}", json!(value));
    }
    let _ = write!(
        stages,
        "USER {USER}:{USER}\nEXPOSE {PORT}\nSTOPSIGNAL {}\nHEALTHCHECK --interval=5s --timeout=5s --start-period={}s CMD {}\nENTRYPOINT {}\n",
        image.stop_signal,
        target.start_timeout_s,
        json!(["bash", "-c", health(target)]),
        json!(entry(&image.run, &folder)),
    );
    stages
}

/// A program in the target's folder by its whole path, because engines look relative ones up in different places.
fn entry(run: &[String], folder: &str) -> Vec<String> {
    let mut words = run.to_vec();
    if let Some(program) = words
        .first_mut()
        .filter(|word| word.contains('/') && !word.starts_with('/'))
    {
        *program = format!("{folder}/{}", program.trim_start_matches("./"));
    }
    words
}

/// Whether the target answers: asked by bash itself, because these images have no other client.
pub(crate) fn health(target: &Target) -> String {
    match &target.health_path {
        Some(path) => format!(
            "exec 3<>/dev/tcp/127.0.0.1/{} && printf 'GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200'* ]]",
            target.health_port
        ),
        None => format!("exec 3<>/dev/tcp/127.0.0.1/{PORT}"),
    }
}

fn labels(target: &Target, image: &Image, base: &str) -> String {
    let labels = [
        ("title", format!("plimsoll-{}", target.name)),
        ("description", image.description.clone()),
        ("version", VERSION.to_owned()),
        ("licenses", "MIT".to_owned()),
        ("base.name", base.to_owned()),
    ];
    let mut text = String::from("ARG COMMIT\n");
    for (name, value) in labels {
        let _ = writeln!(
            text,
            "LABEL org.opencontainers.image.{name}={}",
            json!(value)
        );
    }
    text.push_str("LABEL org.opencontainers.image.revision=$COMMIT\n");
    let _ = writeln!(
        text,
        "LABEL plimsoll.target={} plimsoll.workload={}",
        target.name, target.workload
    );
    text
}

/// The programs of the command's image: itself, and what targets ask.
fn programs(catalogue: &Catalogue) -> Vec<&str> {
    let companions = catalogue
        .targets
        .iter()
        .filter_map(|target| target.companion.as_ref());
    let programs: BTreeSet<&str> = companions
        .map(|companion| companion.program.as_str())
        .collect();
    std::iter::once("plimsoll").chain(programs).collect()
}

/// The command with its companions, without anything below them. `scripts/release.sh` makes the same image without an
/// engine.
fn command_file(rust: &str, programs: &[&str]) -> String {
    let base = base(Family::Rust, rust);
    let packages = programs.join(" -p ");
    let built: Vec<String> = programs
        .iter()
        .map(|program| format!("target/*-unknown-linux-musl/dist/{program}"))
        .collect();
    let built = built.join(" ");
    format!(
        "# The command's image: static programs and nothing else. Made by crates/deploy; do not edit.
# `make release` makes the same image without an engine.
#
#   git archive HEAD | podman build -f {FOLDER}/command.Containerfile \\
#     --build-arg COMMIT=\"$(git rev-parse HEAD)\" --build-arg SOURCE_DATE_EPOCH=\"$(git log -1 --format=%ct)\" \\
#     --timestamp \"$(git log -1 --format=%ct)\" -t localhost/plimsoll:{VERSION} -

FROM {base} AS build
ENV DEBIAN_FRONTEND=noninteractive RUSTUP_TOOLCHAIN={rust}
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev musl-tools && rm -rf /var/lib/apt/lists/*
RUN rustup target add \"$(uname -m)-unknown-linux-musl\"
WORKDIR /plimsoll
COPY . .
ARG COMMIT
ARG SOURCE_DATE_EPOCH
ENV PLIMSOLL_COMMIT=$COMMIT CARGO_INCREMENTAL=0
RUN cargo build --profile dist --locked --target \"$(uname -m)-unknown-linux-musl\" -p {packages}
# kubectl cp asks for tar, and the command knows that name.
RUN mkdir -p /image/bin && mkdir -m 1777 /image/results /image/tmp && ln -s /plimsoll /image/bin/tar && \\
    cp {built} /image/

FROM scratch
COPY --from=build /image /
ARG COMMIT
LABEL org.opencontainers.image.title=plimsoll org.opencontainers.image.version={VERSION} org.opencontainers.image.licenses=MIT
LABEL org.opencontainers.image.revision=$COMMIT
ENV PATH=/:/bin
USER {USER}:{USER}
HEALTHCHECK NONE
ENTRYPOINT [\"/plimsoll\"]
"
    )
}
