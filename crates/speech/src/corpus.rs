//! The clips that sessions say: the project's own corpus with its pinned index, or a user's recordings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::clip::{Clip, RATE_HZ};
use crate::words::words;

/// The longest clip, in seconds. Recognisers cut what is much longer at places of their own.
const CLIP_AT_MOST_S: usize = 60;

/// The most audio of a corpus, in seconds: it is held in memory, packed for the wire.
const CORPUS_AT_MOST_S: usize = 3_600;

const CONVERT: &str = "ffmpeg -i IN -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav";

/// The file of a clip; `None` if nobody has made it.
pub type ClipFile = Option<Vec<u8>>;

/// Clips, in an order that is the same on each machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// At least one.
    pub clips: Vec<Clip>,
    /// Clips of the index that are not in the folder, because nobody has made them.
    pub absent: usize,
}

/// Why there is no corpus: one line, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder that cannot be read.
    #[error("{}: {source}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The index is not what `make-corpus` writes.
    #[error("{}: {reason}; get the file from the repository again", .path.display())]
    Index {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A clip is not the one that the index pins.
    #[error("{}: not the clip that the index describes; make it again with make-corpus and {made_with}", .path.display())]
    Differs {
        /// Which.
        path: PathBuf,
        /// Programs and their versions.
        made_with: String,
    },
    /// Nothing to say.
    #[error("{}: no clips; {remedy}", .path.display())]
    Empty {
        /// Which folder.
        path: PathBuf,
        /// What to do.
        remedy: &'static str,
    },
    /// A recording without its text, or a text without its recording.
    #[error("{}: {} is missing; each recording NAME.wav needs a file NAME.txt with what is said", .path.display(), .missing.display())]
    Alone {
        /// What is there.
        path: PathBuf,
        /// What is not.
        missing: PathBuf,
    },
    /// Not a WAV file.
    #[error("{}: not a WAV file ({reason}); convert it with: {CONVERT}", .path.display())]
    NotWav {
        /// Which.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// Another format.
    #[error("{}: {format}, but 16000 Hz, 1 channel, 16 bits are needed; convert it with: {CONVERT}", .path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// What it has.
        format: String,
    },
    /// A recording or a text of no use.
    #[error("{}: {reason}", .path.display())]
    Unfit {
        /// Which.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Index {
    made_with: BTreeMap<String, String>,
    sample_rate_hz: u32,
    clips: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    clip: String,
    sentence: String,
    words: Vec<String>,
    samples: usize,
    onset_ms: usize,
    end_ms: usize,
    sha256: String,
}

impl Corpus {
    /// The project's corpus: `index.json`, and those of its clips that are in `clips/` of the same folder.
    ///
    /// # Errors
    /// An unreadable or wrong index, a clip that is not the pinned one, or no clip at all.
    pub fn pinned(folder: &Path) -> Result<Self, CorpusError> {
        let path = folder.join("index.json");
        let index = read(&path)?;
        let clips = folder.join("clips");
        Self::of_index(&path, &index, &|name| {
            let clip = clips.join(format!("{name}.wav"));
            match clip.exists() {
                true => read(&clip).map(Some),
                false => Ok(None),
            }
        })
    }

    /// The clips of an index, those that there are. `path` is where the index came from, for messages; `file` gives the file of
    /// a clip by its name, `None` if it was not made.
    ///
    /// # Errors
    /// As of [`Corpus::pinned`].
    pub fn of_index(
        path: &Path,
        index: &[u8],
        file: &dyn Fn(&str) -> Result<ClipFile, CorpusError>,
    ) -> Result<Self, CorpusError> {
        let wrong = |reason: String| CorpusError::Index {
            path: path.to_owned(),
            reason,
        };
        let index: Index =
            serde_json::from_slice(index).map_err(|error| wrong(error.to_string()))?;
        if index.sample_rate_hz != RATE_HZ {
            return Err(wrong(format!(
                "sample_rate_hz is {}, not {RATE_HZ}",
                index.sample_rate_hz
            )));
        }
        let mut corpus = Self {
            clips: Vec::with_capacity(index.clips.len()),
            absent: 0,
        };
        for entry in &index.clips {
            let Some(bytes) = file(&entry.clip)? else {
                corpus.absent += 1;
                continue;
            };
            let at = path.with_file_name("clips");
            let at = at.join(format!("{}.wav", entry.clip));
            corpus
                .clips
                .push(pinned_clip(&at, &bytes, entry, &index.made_with)?);
        }
        let folder = path.parent().unwrap_or(path);
        corpus.checked(folder, "make them with targets/stt-real/corpus/make-corpus")
    }

    /// A user's recordings: each `NAME.wav` of the folder with its words in `NAME.txt`, in the order of names. Other files
    /// are ignored. Silence more than 100 ms away from the speech is cut off ([`Clip::trimmed`]).
    ///
    /// # Errors
    /// A recording without its text or the other way round, another format, silence, a text without words, too much audio.
    pub fn own(folder: &Path) -> Result<Self, CorpusError> {
        let mut paths = Vec::new();
        let unreadable = |source| CorpusError::Unreadable {
            path: folder.to_owned(),
            source,
        };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.sort();
        let mut corpus = Self {
            clips: Vec::new(),
            absent: 0,
        };
        for path in &paths {
            let (wav, text) = (path.with_extension("wav"), path.with_extension("txt"));
            let ending = path.extension().and_then(|ending| ending.to_str());
            let needed = match ending {
                Some("wav") => &text,
                Some("txt") => &wav,
                _ => continue,
            };
            if paths.binary_search(needed).is_err() {
                return Err(CorpusError::Alone {
                    path: path.clone(),
                    missing: PathBuf::from(needed.file_name().unwrap_or_default()),
                });
            }
            if ending == Some("wav") {
                corpus.clips.push(own_clip(&wav, &text)?);
            }
        }
        corpus.checked(
            folder,
            "put recordings NAME.wav with their words in NAME.txt there",
        )
    }

    fn checked(self, folder: &Path, remedy: &'static str) -> Result<Self, CorpusError> {
        let path = folder.to_owned();
        if self.clips.is_empty() {
            return Err(CorpusError::Empty { path, remedy });
        }
        let samples: usize = self.clips.iter().map(|clip| clip.samples.len()).sum();
        let seconds = samples / RATE_HZ as usize;
        if seconds > CORPUS_AT_MOST_S {
            let reason = format!(
                "{seconds} s of audio; at most {CORPUS_AT_MOST_S} s are held in memory, so leave some out"
            );
            return Err(CorpusError::Unfit { path, reason });
        }
        Ok(self)
    }
}

fn pinned_clip(
    path: &Path,
    bytes: &[u8],
    entry: &Entry,
    made_with: &BTreeMap<String, String>,
) -> Result<Clip, CorpusError> {
    let digest: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let samples = samples_of(path, bytes)?;
    let per_ms = RATE_HZ as usize / 1000;
    let speech = entry.onset_ms * per_ms..samples.len().min(entry.end_ms * per_ms);
    let as_described = digest == entry.sha256
        && samples.len() == entry.samples
        && words(&entry.sentence) == entry.words
        && !speech.is_empty();
    if !as_described {
        let versions = made_with
            .iter()
            .map(|(name, version)| format!("{name} {version}"));
        return Err(CorpusError::Differs {
            path: path.to_owned(),
            made_with: versions.collect::<Vec<_>>().join(", "),
        });
    }
    Ok(Clip {
        name: entry.clip.clone(),
        words: entry.words.clone(),
        samples,
        speech,
    })
}

fn own_clip(wav: &Path, text: &Path) -> Result<Clip, CorpusError> {
    let unfit = |path: &Path, reason: String| CorpusError::Unfit {
        path: path.to_owned(),
        reason,
    };
    let said = String::from_utf8(read(text)?)
        .map_err(|_| unfit(text, "not UTF-8; save it as UTF-8".to_owned()))?;
    let said = words(&said);
    if said.is_empty() {
        return Err(unfit(text, "no words; write down what is said".to_owned()));
    }
    let samples = samples_of(wav, &read(wav)?)?;
    let seconds = samples.len().div_ceil(RATE_HZ as usize);
    if seconds > CLIP_AT_MOST_S {
        return Err(unfit(
            wav,
            format!("{seconds} s; cut it into sentences of at most {CLIP_AT_MOST_S} s"),
        ));
    }
    let name = wav
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Clip::trimmed(name, said, &samples)
        .ok_or_else(|| unfit(wav, "only silence; record it again".to_owned()))
}

fn read(path: &Path) -> Result<Vec<u8>, CorpusError> {
    fs::read(path).map_err(|source| CorpusError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// The samples of a WAV file: 16 kHz, mono, signed 16 bit.
fn samples_of(path: &Path, file: &[u8]) -> Result<Vec<i16>, CorpusError> {
    let not_wav = |error: hound::Error| CorpusError::NotWav {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let reader = hound::WavReader::new(file).map_err(not_wav)?;
    let spec = reader.spec();
    let float = spec.sample_format == hound::SampleFormat::Float;
    if (spec.sample_rate, spec.channels, spec.bits_per_sample) != (RATE_HZ, 1, 16) || float {
        let format = format!(
            "{} Hz, {} channels, {} bits{}",
            spec.sample_rate,
            spec.channels,
            spec.bits_per_sample,
            if float { " float" } else { "" }
        );
        return Err(CorpusError::Format {
            path: path.to_owned(),
            format,
        });
    }
    reader
        .into_samples::<i16>()
        .collect::<Result<_, _>>()
        .map_err(not_wav)
}

#[cfg(test)]
#[path = "corpus_tests.rs"]
mod tests;
