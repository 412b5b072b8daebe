//! `plimsoll fleet`: prints what deploys agents, and does in their pods what a program without a shell needs.

mod catalogue;
mod copy;
mod images;
mod pod;
mod render;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_deploy::oci;
use plimsoll_deploy::settings::image;
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_lab::manifest;

use crate::args::{Args, DeployArgs, Fleet};
use crate::build;
use crate::failure::Failure;
use crate::output::note;

pub(crate) use copy::as_tar;

/// What does what a command line says.
pub(crate) type Obey = fn(&Args, &Stop) -> Result<ExitCode, Failure>;

pub(crate) fn run(args: &DeployArgs, stop: &Stop, obey: Obey) -> Result<ExitCode, Failure> {
    match &args.what {
        Fleet::Render(render) => render::run(render),
        Fleet::Pod(pod) => pod::run(pod, stop, obey),
    }
}

/// What is wrong with the words behind `--`.
fn mistake(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Writes what deploys into a folder, with the paths that it has in the repository.
pub(crate) fn write_files(dir: &Path, root: Option<&Path>) -> Result<(), Failure> {
    let root = manifest::root_of_this_process(root)?;
    let known = catalogue::with_versions(&root)?;
    for (name, why) in &known.left_out {
        note!("plimsoll: {name} is left out: {why}");
    }
    for (path, text) in plimsoll_deploy::files(&known.catalogue) {
        let file = dir.join(path);
        let parent = file.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&file, text))
            .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", file.display())))?;
    }
    Ok(())
}

/// Writes an image of these programs.
pub(crate) fn write_image(
    out: &Path,
    name: Option<&str>,
    programs: &[PathBuf],
) -> Result<(), Failure> {
    let cannot = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot {what} {}: {error}", path.display()))
    };
    let mut read = Vec::new();
    for program in programs {
        let bytes = std::fs::read(program).map_err(|error| cannot("read", program, &error))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        read.push((name.into_owned(), bytes));
    }
    let given = std::env::var("SOURCE_DATE_EPOCH").unwrap_or_default();
    let epoch = match given.parse() {
        Ok(epoch) => epoch,
        Err(_) if given.is_empty() => 0,
        Err(_) => {
            let text = format!("SOURCE_DATE_EPOCH={given}: give seconds since 1970");
            return Err(Failure::Usage(text));
        }
    };
    let usual = image("plimsoll");
    let commit = build::of_this_program().commit;
    let made = oci::Image {
        name: name.unwrap_or(&usual),
        programs: &read,
        commit: commit.as_deref(),
        epoch,
        created: &timestamp::of_epoch(epoch),
    };
    let archive = made
        .archive()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    std::fs::write(out, archive).map_err(|error| cannot("write", out, &error))
}
