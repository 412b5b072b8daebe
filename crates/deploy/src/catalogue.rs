//! What is known of the targets that can be deployed. The command reads it from the manifests and asks the workloads.

use std::collections::BTreeMap;

/// The port on which a target is reached.
pub const PORT: u16 = 3000;

/// The first of its further ports.
pub const FURTHER_PORTS: u16 = 3001;

/// The port on which a companion is reached.
pub const COMPANION_PORT: u16 = 9000;

/// The folder for a target's data.
pub const DATA: &str = "/data";

/// A target that can be deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its workload.
    pub workload: String,
    /// Event loops, threads or processes for each vCPU.
    pub threads_per_vcpu: u32,
    /// The scheme of its URL: `http`, or `tcp` for a protocol that is not HTTP.
    pub scheme: &'static str,
    /// The path that says whether it is ready; `None` if it is ready once it accepts connections.
    pub health_path: Option<String>,
    /// The variables of its further ports, in order from [`FURTHER_PORTS`] on. Health is asked for at the first if it is
    /// the port of the metrics.
    pub further_ports: Vec<String>,
    /// The port at which [`Target::health_path`] is asked for.
    pub health_port: u16,
    /// How long it may take until it is ready, in seconds.
    pub start_timeout_s: u32,
    /// Whether it writes to a folder for data.
    pub has_data: bool,
    /// Environment variables of its workload's contract.
    pub variables: BTreeMap<String, String>,
    /// What it asks, if it asks anything.
    pub companion: Option<Companion>,
    /// How its image is made; `None` if that needs what no registry has.
    pub image: Option<Image>,
}

/// What an image is built with: one file of images for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// cargo; the image has the program alone.
    Rust,
    /// Go; the image has the program alone.
    Go,
    /// A JDK, and Maven for the build.
    Java,
    /// Node.js with npm, and Bun out of npm.
    Node,
    /// CPython.
    Python,
    /// What Debian has, installed by the targets' own scripts.
    Debian,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Rust,
        Self::Go,
        Self::Java,
        Self::Node,
        Self::Python,
        Self::Debian,
    ];

    /// Its name: of its file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Go => "go",
            Self::Java => "java",
            Self::Node => "node",
            Self::Python => "python",
            Self::Debian => "debian",
        }
    }
}

/// How a target's image is made: what its manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What builds it.
    pub family: Family,
    /// One line: its runtime and libraries.
    pub description: String,
    /// Commands that install what the family lacks, from the root of the repository.
    pub installs: Vec<String>,
    /// The build, in the target's folder.
    pub build: Option<Vec<String>>,
    /// The start, in the target's folder.
    pub run: Vec<String>,
    /// Its fixed environment variables.
    pub variables: BTreeMap<String, String>,
    /// The signal that ends it in order, such as `TERM`.
    pub stop_signal: String,
}

/// A program that targets ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Its program, which is in the command's image.
    pub program: String,
    /// Its settings: environment variables.
    pub settings: BTreeMap<String, String>,
    /// The variable that gives a target the URL.
    pub url_variable: String,
}

impl Target {
    /// All environment variables that do not depend on the place, without the one of the companion.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut all = self.variables.clone();
        all.insert("PORT".to_owned(), PORT.to_string());
        for (port, variable) in (FURTHER_PORTS..).zip(&self.further_ports) {
            all.insert(variable.clone(), port.to_string());
        }
        if self.has_data {
            all.insert("DATA_DIR".to_owned(), DATA.to_owned());
        }
        all
    }

    /// How often readiness is asked for until the target counts as broken: each second.
    #[must_use]
    pub fn start_tries(&self) -> u32 {
        self.start_timeout_s
    }
}

/// The threads at this many vCPUs, as trials on one machine count them.
#[must_use]
pub fn worker_threads(threads_per_vcpu: u32, vcpu: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of cores, checked by the command and by the schema"
    )]
    let whole = vcpu.ceil().max(1.0) as u32;
    threads_per_vcpu.saturating_mul(whole)
}

/// What can be deployed.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// The targets, sorted by name.
    pub targets: Vec<Target>,
    /// The workloads of the command.
    pub workloads: Vec<String>,
    /// The version of each family's compiler or runtime, as its lock files and manifests have it.
    pub versions: BTreeMap<Family, String>,
}
