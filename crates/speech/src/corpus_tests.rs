//! Tests of corpora: the project's own, and folders with everything that can be wrong.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::clip::speech_of;

/// The folder of the project's corpus.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets/stt-real/corpus")
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-speech-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// What is wrong with it, without the folder's own name.
    fn refused(&self, read: fn(&Path) -> Result<Corpus, CorpusError>) -> String {
        let text = read(&self.0).unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text}");
        text.replace(&format!("{}", self.0.display()), "DIR")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn wav(rate_hz: u32, samples: &[i16]) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate_hz,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    for sample in samples {
        writer.write_sample(*sample).unwrap();
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

#[test]
fn the_committed_clips_are_the_pinned_ones_and_speech_is_where_the_index_says() {
    let corpus = Corpus::pinned(&project()).unwrap();
    assert_eq!(corpus.clips.len() + corpus.absent, 120);
    assert!(corpus.clips.len() >= 8, "{} clips", corpus.clips.len());
    for clip in &corpus.clips {
        // Two programs, in two languages, agree on onset and end.
        assert_eq!(
            speech_of(&clip.samples),
            Some(clip.speech.clone()),
            "{}",
            clip.name
        );
        let margins = [clip.speech.start, clip.samples.len() - clip.speech.end];
        assert!(
            margins.iter().all(|margin| *margin <= 1_600),
            "{}: {margins:?}",
            clip.name
        );
        let trimmed = Clip::trimmed(clip.name.clone(), clip.words.clone(), &clip.samples);
        assert_eq!(trimmed.as_ref(), Some(clip));
    }
}

#[test]
fn the_sentences_are_what_they_should_be() {
    let index: Index =
        serde_json::from_slice(&read(&project().join("index.json")).unwrap()).unwrap();
    let sentences = fs::read_to_string(project().join("sentences.txt")).unwrap();
    let in_index: Vec<&str> = index
        .clips
        .iter()
        .map(|entry| entry.sentence.as_str())
        .collect();
    assert_eq!(in_index, sentences.lines().collect::<Vec<_>>());
    assert_eq!(in_index.len(), 120);
    for entry in &index.clips {
        assert_eq!(entry.words, words(&entry.sentence), "{}", entry.clip);
        assert!((6..=14).contains(&entry.words.len()), "{}", entry.sentence);
        assert!(
            !entry.sentence.contains(|c: char| c.is_numeric()),
            "{}",
            entry.sentence
        );
    }
    for (n, one) in index.clips.iter().enumerate() {
        for other in &index.clips[n + 1..] {
            let rate = crate::errors::WordErrors::between(&one.words, &other.words).rate();
            assert!(
                rate > Some(0.5),
                "alike: {} {}",
                one.sentence,
                other.sentence
            );
        }
    }
}

#[test]
fn a_clip_that_is_not_the_pinned_one_is_named_with_the_versions_to_install() {
    let index = read(&project().join("index.json")).unwrap();
    let mut clip = read(&project().join("clips/051-en-us.wav")).unwrap();
    let good = Folder::new()
        .with("index.json", &index)
        .with("clips/051-en-us.wav", &clip);
    let corpus = Corpus::pinned(&good.0).unwrap();
    assert_eq!((corpus.clips.len(), corpus.absent), (1, 119));

    *clip.last_mut().unwrap() ^= 1;
    let text = good
        .with("clips/051-en-us.wav", &clip)
        .refused(Corpus::pinned);
    assert_eq!(
        text,
        "DIR/clips/051-en-us.wav: not the clip that the index describes; make it again with make-corpus and espeak-ng \
         1.51+dfsg-10+deb12u2, flite 2.2-5"
    );
}

#[test]
fn an_index_that_is_missing_wrong_or_alone_is_refused() {
    let text = Folder::new().refused(Corpus::pinned);
    assert!(text.starts_with("DIR/index.json: No such file"), "{text}");
    let text = Folder::new()
        .with("index.json", "{")
        .refused(Corpus::pinned);
    assert!(
        text.contains("EOF") && text.contains("from the repository"),
        "{text}"
    );
    let text = Folder::new()
        .with(
            "index.json",
            r#"{"made_with":{},"sample_rate_hz":8000,"clips":[]}"#,
        )
        .refused(Corpus::pinned);
    assert!(text.contains("sample_rate_hz is 8000"), "{text}");
    let index = read(&project().join("index.json")).unwrap();
    let text = Folder::new()
        .with("index.json", index)
        .refused(Corpus::pinned);
    assert_eq!(
        text,
        "DIR: no clips; make them with targets/stt-real/corpus/make-corpus"
    );
}

#[test]
fn own_recordings_are_read_in_the_order_of_names() {
    let speech = wav(16_000, &[900; 8_000]);
    let folder = Folder::new()
        .with("b.wav", &speech)
        .with("b.txt", "Second one.\n")
        .with(
            "a.wav",
            wav(
                16_000,
                &[[0; 4_000].as_slice(), &[900; 800], &[0; 4_000]].concat(),
            ),
        )
        .with("a.txt", "Well-known first")
        .with("notes.md", "ignored");
    let corpus = Corpus::own(&folder.0).unwrap();
    let said: Vec<_> = corpus
        .clips
        .iter()
        .map(|clip| (clip.name.as_str(), clip.words.join(" ")))
        .collect();
    assert_eq!(
        said,
        [
            ("a", "well known first".to_owned()),
            ("b", "second one".to_owned())
        ]
    );
    assert_eq!(corpus.clips[0].samples.len(), 1_600 + 800 + 1_600);
    assert_eq!(corpus.clips[0].speech, 1_600..2_400);
    assert_eq!(corpus.clips[1].speech, 0..8_000);
}

#[test]
fn wrong_recordings_are_refused_in_one_line() {
    let speech = wav(16_000, &[900; 8_000]);
    let text = Folder::new().refused(Corpus::own);
    assert_eq!(
        text,
        "DIR: no clips; put recordings NAME.wav with their words in NAME.txt there"
    );
    let text = Folder::new().with("a.wav", &speech).refused(Corpus::own);
    assert!(
        text.starts_with("DIR/a.wav: a.txt is missing; each recording"),
        "{text}"
    );
    let text = Folder::new().with("a.txt", "words").refused(Corpus::own);
    assert!(
        text.starts_with("DIR/a.txt: a.wav is missing; each recording"),
        "{text}"
    );

    for (wav, words, expected) in [
        (
            speech.clone(),
            "… 42 …".as_bytes(),
            "DIR/a.txt: no words; write down what is said",
        ),
        (
            speech.clone(),
            b"\xff\xfe",
            "DIR/a.txt: not UTF-8; save it as UTF-8",
        ),
        (
            wav(16_000, &[0; 8_000]),
            b"hush",
            "DIR/a.wav: only silence; record it again",
        ),
        (
            wav(16_000, &[9; 61 * 16_000]),
            b"hm",
            "DIR/a.wav: 61 s; cut it into sentences of at most 60 s",
        ),
        (
            wav(44_100, &[9; 9_000]),
            b"hm",
            "DIR/a.wav: 44100 Hz, 1 channels, 16 bits, but 16000 Hz, 1 channel, 16 bits are needed; convert it with: ffmpeg \
             -i IN -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav",
        ),
    ] {
        let folder = Folder::new().with("a.wav", wav).with("a.txt", words);
        assert_eq!(folder.refused(Corpus::own), expected);
    }
    let text = Folder::new()
        .with("a.wav", "RIFFxxxx")
        .with("a.txt", "hm")
        .refused(Corpus::own);
    assert!(
        text.starts_with("DIR/a.wav: not a WAV file (") && text.contains("ffmpeg"),
        "{text}"
    );
}
