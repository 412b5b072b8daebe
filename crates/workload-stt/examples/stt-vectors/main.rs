//! Writes the golden vectors of the streaming speech-to-text contract:
//! `cargo run -p plimsoll-workload-stt --example stt-vectors -- targets/stt/vectors`

mod answers;
mod generate;
mod messages;
mod sessions;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("stt-vectors: give the one folder to write to, e.g. targets/stt/vectors");
        return ExitCode::from(2);
    };
    let folder = Path::new(&folder);
    for file in generate::files() {
        let path = folder.join(file.name);
        if let Err(error) = write_whole(&path, &file.json) {
            eprintln!("stt-vectors: cannot write {}: {error}", path.display());
            return ExitCode::from(2);
        }
        println!("{}", path.display());
    }
    ExitCode::SUCCESS
}

/// A reader sees the old file or the new one, never a part.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("json.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, path)
}
