//! An image of static programs as an OCI archive, made without an engine. The same programs and the same time give the
//! same bytes.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::node::sorted;
use crate::settings::{USER, VERSION};

/// Why an image cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The image has nothing below its programs that could load libraries for them.
    #[error(
        "{name} is not a static program: it asks for {interpreter}; build it for the target x86_64-unknown-linux-musl or aarch64-unknown-linux-musl"
    )]
    NotStatic {
        /// The program.
        name: String,
        /// Its loader.
        interpreter: String,
    },
    /// It is for another machine, or no program.
    #[error("{name} is no 64-bit ELF program for x86_64 or aarch64")]
    NotAProgram {
        /// The program.
        name: String,
    },
    /// All programs of an image are for one machine.
    #[error("the programs are for different machines")]
    Mixed,
    /// An archive in memory cannot fail, but its library says it may.
    #[error("cannot write the archive: {0}")]
    Io(#[from] io::Error),
}

/// What is in an image.
#[derive(Debug)]
pub struct Image<'a> {
    /// Its name with a tag.
    pub name: &'a str,
    /// The programs: the name, and the bytes. The first is what a container starts.
    pub programs: &'a [(String, Vec<u8>)],
    /// The commit that they are built from, if it is known.
    pub commit: Option<&'a str>,
    /// Seconds since 1970: the time of all files.
    pub epoch: u64,
    /// The same time as RFC 3339 has it.
    pub created: &'a str,
}

impl Image<'_> {
    /// The archive.
    ///
    /// # Errors
    /// A program is not static, or not for a machine that images are made for.
    pub fn archive(&self) -> Result<Vec<u8>, Error> {
        let mut machines = self
            .programs
            .iter()
            .map(|(name, bytes)| machine(name, bytes));
        let machine = machines.next().transpose()?.unwrap_or("amd64");
        if machines.any(|other| !matches!(other, Ok(other) if other == machine)) {
            // A program that is none has an error of its own.
            for (name, bytes) in self.programs {
                crate::oci::machine(name, bytes)?;
            }
            return Err(Error::Mixed);
        }
        let plain = self.layer()?;
        // No time and no name of a file are in the head.
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        packed.write_all(&plain)?;
        let layer = packed.finish()?;
        let config = document(self.config(machine, &digest(&plain)));
        let manifest = document(json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
        }));
        let mut listed = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
        listed["platform"] = json!({"architecture": machine, "os": "linux"});
        listed["annotations"] = json!({
            // One name for containerd, and a tag for everybody else.
            "io.containerd.image.name": self.name,
            "org.opencontainers.image.ref.name": self.name.rsplit_once(':').map_or("latest", |(_, tag)| tag),
        });
        let index = document(json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [listed],
        }));
        let mut archive = Builder::new(Vec::new());
        let layout = document(json!({"imageLayoutVersion": "1.0.0"}));
        self.file(&mut archive, "oci-layout", &layout, 0o644)?;
        self.file(&mut archive, "index.json", &index, 0o644)?;
        for blob in [&manifest, &config, &layer] {
            let path = format!("blobs/sha256/{}", digest(blob));
            self.file(&mut archive, &path, blob, 0o644)?;
        }
        Ok(archive.into_inner()?)
    }

    /// The only layer: programs, folders that a measurement writes to, and `tar` as a second name of the first program.
    fn layer(&self) -> Result<Vec<u8>, Error> {
        let mut layer = Builder::new(Vec::new());
        for (folder, mode) in [("bin/", 0o755), ("results/", 0o1777), ("tmp/", 0o1777)] {
            let mut header = self.header(EntryType::Directory, mode, 0);
            layer.append_data(&mut header, folder, io::empty())?;
        }
        for (name, bytes) in self.programs {
            self.file(&mut layer, name, bytes, 0o755)?;
        }
        if let Some((first, _)) = self.programs.first() {
            let mut header = self.header(EntryType::Symlink, 0o777, 0);
            layer.append_link(&mut header, "bin/tar", format!("/{first}"))?;
        }
        Ok(layer.into_inner()?)
    }

    fn config(&self, machine: &str, layer: &str) -> Value {
        let first = self.programs.first().map_or("", |(name, _)| name.as_str());
        let mut labels = json!({
            "org.opencontainers.image.title": "plimsoll",
            "org.opencontainers.image.version": VERSION,
            "org.opencontainers.image.licenses": "MIT",
        });
        if let Some(commit) = self.commit {
            labels["org.opencontainers.image.revision"] = json!(commit);
        }
        json!({
            "architecture": machine,
            "os": "linux",
            "created": self.created,
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": ["PATH=/:/bin"],
                "Entrypoint": [format!("/{first}")],
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
            "history": [{"created": self.created, "created_by": "plimsoll generate image"}],
        })
    }

    fn file(
        &self,
        into: &mut Builder<Vec<u8>>,
        path: &str,
        bytes: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        let mut header = self.header(EntryType::Regular, mode, bytes.len() as u64);
        into.append_data(&mut header, path, bytes)
    }

    fn header(&self, kind: EntryType, mode: u32, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_mtime(self.epoch);
        header.set_uid(0);
        header.set_gid(0);
        header
    }
}

fn document(value: Value) -> Vec<u8> {
    sorted(value).to_string().into_bytes()
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{}", digest(bytes)), "size": bytes.len()})
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The machine that a program is for, by its ELF head, if nothing has to be loaded for it.
fn machine(name: &str, bytes: &[u8]) -> Result<&'static str, Error> {
    let not = || Error::NotAProgram {
        name: name.to_owned(),
    };
    let number = |at: usize, length: usize| -> Option<u64> {
        let part = bytes.get(at..at.checked_add(length)?)?;
        Some(
            part.iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    if bytes.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        return Err(not());
    }
    let machine = match number(18, 2) {
        Some(62) => "amd64",
        Some(183) => "arm64",
        _ => return Err(not()),
    };
    let field = |at, length| {
        number(at, length)
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(not)
    };
    let (table, size, count) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
    for header in 0..count {
        let at = size
            .checked_mul(header)
            .and_then(|offset| offset.checked_add(table))
            .ok_or_else(not)?;
        // PT_INTERP names the loader.
        if field(at, 4)? == 3 {
            let (begin, length) = (
                field(at.saturating_add(8), 8)?,
                field(at.saturating_add(32), 8)?,
            );
            let end = begin.checked_add(length).ok_or_else(not)?;
            let interpreter = bytes.get(begin..end).ok_or_else(not)?;
            return Err(Error::NotStatic {
                name: name.to_owned(),
                interpreter: String::from_utf8_lossy(interpreter)
                    .trim_end_matches('\0')
                    .to_owned(),
            });
        }
    }
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    /// The head of a program, with a loader or without.
    fn elf(machine: u16, loader: Option<&str>) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1u16.to_le_bytes());
        bytes[64..68].copy_from_slice(&(if loader.is_some() { 3u32 } else { 1 }).to_le_bytes());
        if let Some(loader) = loader {
            bytes[72..80].copy_from_slice(&120u64.to_le_bytes());
            bytes[96..104].copy_from_slice(&(loader.len() as u64).to_le_bytes());
            bytes.extend_from_slice(loader.as_bytes());
        }
        bytes
    }

    fn archive(programs: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Error> {
        Image {
            name: "localhost/plimsoll:0.1.0",
            programs,
            commit: Some("abc"),
            epoch: 1_000_000_000,
            created: "2001-09-09T01:46:40Z",
        }
        .archive()
    }

    fn program(name: &str, bytes: Vec<u8>) -> (String, Vec<u8>) {
        (name.to_owned(), bytes)
    }

    fn entries(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().expect("entries").map(|entry| {
            let mut entry = entry.expect("one");
            assert_eq!(entry.header().mtime().expect("a time"), 1_000_000_000);
            let path = entry.path().expect("a path").display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("bytes");
            (path, bytes)
        });
        entries.collect()
    }

    #[test]
    fn its_parts_name_each_other_and_its_bytes_are_the_same_each_time() {
        let programs = [
            program("plimsoll", elf(62, None)),
            program("other", elf(62, None)),
        ];
        let bytes = archive(&programs).expect("made");
        assert_eq!(bytes, archive(&programs).expect("made"));
        let files = entries(&bytes);
        let read = |path: &str| -> Value { serde_json::from_slice(&files[path]).expect("JSON") };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"]
                .as_str()
                .expect("text")
                .replace("sha256:", "blobs/sha256/");
            assert_eq!(descriptor["size"], files[&digest].len());
            assert!(digest.ends_with(&super::digest(&files[&digest])));
            digest
        };
        let index = read("index.json");
        let manifest = read(&blob(&index["manifests"][0]));
        let config = read(&blob(&manifest["config"]));
        assert_eq!(config["architecture"], "amd64");
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"][0], "/plimsoll");
        let layer = &files[&blob(&manifest["layers"][0])];
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(layer.as_slice())
            .read_to_end(&mut plain)
            .expect("packed");
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            format!("sha256:{}", super::digest(&plain))
        );
        let inside = entries(&plain);
        assert_eq!(inside["plimsoll"], programs[0].1);
        let names: Vec<&str> = inside.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["bin/", "bin/tar", "other", "plimsoll", "results/", "tmp/"]
        );
    }

    #[test]
    fn what_cannot_run_alone_is_refused() {
        let refused =
            |programs: &[(String, Vec<u8>)]| archive(programs).expect_err("refused").to_string();
        let dynamic = program("p", elf(62, Some("/lib64/ld-linux-x86-64.so.2\0")));
        assert!(refused(&[dynamic]).starts_with(
            "p is not a static program: it asks for /lib64/ld-linux-x86-64.so.2; build"
        ));
        for bytes in [
            elf(3, None),
            b"#!/bin/sh".to_vec(),
            elf(62, None)[..60].to_vec(),
            Vec::new(),
        ] {
            assert!(refused(&[program("p", bytes)]).starts_with("p is no 64-bit ELF program"));
        }
        let mixed = [program("a", elf(62, None)), program("b", elf(183, None))];
        assert_eq!(refused(&mixed), "the programs are for different machines");
        let second = [program("a", elf(62, None)), program("b", Vec::new())];
        assert!(refused(&second).starts_with("b is no 64-bit ELF"));
    }
}
