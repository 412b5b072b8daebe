//! What deploys agents and targets: text, made from what is known of the targets and from settings.
//!
//! | module | what it makes |
//! |---|---|
//! | [`render`] | objects of Kubernetes with literal values (`plimsoll fleet render`) |
//! | `chart` | the same objects as a chart of Helm, its values and their schema |
//! | `compose` | the same on one machine, for an engine of containers |
//! | `images` | files of images: for each family of targets, and for the command |
//! | [`oci`] | an image of static programs, without an engine |
//!
//! The first two write the trees of `objects` with the writer of `yaml`. Nothing here reads a file or runs a program.

pub mod catalogue;
mod chart;
mod compose;
mod images;
mod node;
mod objects;
pub mod oci;
pub mod settings;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeMap;

use catalogue::Catalogue;
use settings::Settings;

/// The objects with these settings, as YAML.
#[must_use]
pub fn render(settings: &Settings) -> String {
    yaml::documents(&objects::all(), settings)
}

/// All files that are kept in the repository, by path from its root.
#[must_use]
pub fn files(catalogue: &Catalogue) -> BTreeMap<String, String> {
    let mut files = chart::files(catalogue);
    files.extend(images::files(catalogue));
    files.extend(compose::files(catalogue));
    files
}
