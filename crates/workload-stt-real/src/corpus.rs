//! The clips that sessions say.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use plimsoll_speech::clip::Clip;
use plimsoll_speech::corpus::{Corpus, CorpusError};
use sha2::{Digest, Sha256};

/// What an index file is called. A folder with one has clips that are pinned by it.
const INDEX: &str = "index.json";

macro_rules! clip {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!(
                "../../../targets/stt-real/corpus/clips/",
                $name,
                ".wav"
            )),
        )
    };
}

/// The eight clips that this program has in itself, by their names in the index.
const BUILT_IN: [(&str, &[u8]); 8] = [
    clip!("012-slt"),
    clip!("029-awb"),
    clip!("051-en-us"),
    clip!("052-rms"),
    clip!("056-en-us+m3"),
    clip!("060-en-gb"),
    clip!("103-slt"),
    clip!("104-en-gb-scotland"),
];

/// Clips with a name for the record.
#[derive(Debug, Clone)]
pub(crate) struct Speech {
    pub(crate) clips: Arc<[Clip]>,
    /// The first 16 hexadecimal digits of the SHA-256 of all words and samples: the same clips have the same.
    pub(crate) digest: String,
}

impl Speech {
    /// The built-in clips.
    pub(crate) fn built_in() -> Self {
        static SPEECH: OnceLock<Speech> = OnceLock::new();
        let made = SPEECH.get_or_init(|| {
            let index = include_bytes!("../../../targets/stt-real/corpus/index.json");
            let corpus = Corpus::of_index(Path::new(INDEX), index, &|name| {
                let named = BUILT_IN.iter().find(|(known, _)| *known == name);
                Ok(named.map(|(_, bytes)| bytes.to_vec()))
            });
            // The test below reads them all.
            Self::of(corpus.unwrap_or_else(|error| unreachable!("built-in clips: {error}")))
        });
        made.clone()
    }

    /// The clips of a folder: pinned by its index if it has one, else the user's own recordings.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, CorpusError> {
        let corpus = match folder.join(INDEX).is_file() {
            true => Corpus::pinned(folder),
            false => Corpus::own(folder),
        };
        corpus.map(Self::of)
    }

    fn of(corpus: Corpus) -> Self {
        let mut hash = Sha256::new();
        for clip in &corpus.clips {
            hash.update(clip.words.join(" "));
            for sample in &clip.samples {
                hash.update(sample.to_le_bytes());
            }
        }
        let digest = hash.finalize();
        let digits = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
        Self {
            digest: digits.collect(),
            clips: corpus.clips.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_clips_are_those_of_the_index() {
        let speech = Speech::built_in();
        assert_eq!(speech.clips.len(), BUILT_IN.len());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/stt-real/corpus");
        let names: Vec<_> = speech.clips.iter().map(|clip| clip.name.as_str()).collect();
        let known = Speech::in_folder(&folder).unwrap();
        for name in names {
            assert!(known.clips.iter().any(|clip| clip.name == name), "{name}");
        }
    }
}
