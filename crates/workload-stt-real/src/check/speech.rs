//! What comes back of speech: words, spans and the end. Most cases are about one session, which says two clips.

use std::time::Duration;

use plimsoll_speech::ledger::TOLERANCE_NS;

use super::audio::{PAUSE, Speech};
use super::heard::{Heard, seconds, shown};
use super::site::Site;
use super::talk::{Talk, in_words};
use super::{Case, Miss, Outcome, case, not_run};
use crate::dialect::{Cursor, Dialect, Facts, OptionError, Options, Silence};

/// The silence in which a cursor may move.
const SILENCE: Duration = Duration::from_secs(3);

const NO_TIMES: &str = "text has no times in this dialect";

const WHOLE_TURN: &str = "a final speaks for all audio of its turn in this dialect";

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "words",
            "Speech of known words comes back as words",
            "at most 80 % of the words wrong: words, no garbage",
            |site| {
                let spoken = site.spoken()?;
                Ok(spoken.heard.must_be(&spoken.speech.words)?)
            },
        ),
        case(
            "final-spans",
            "Finals speak for audio that was sent, and for each part of it once",
            "spans that end at most 200 ms after the audio sent and overlap by at most 200 ms",
            |site| {
                let spoken = site.spoken()?;
                spoken.must_have_times()?;
                Ok(spoken.heard.must_have_spans()?)
            },
        ),
        case(
            "final-cursor",
            "Finals reach the end of speech",
            "the end of the last word, at most 200 ms before it",
            final_cursor,
        ),
        case(
            "speech-covered",
            "Finals leave no speech out",
            "at most 200 ms of speech in one place for which no final speaks",
            speech_covered,
        )
        .should(),
        case(
            "interims",
            "Interims come before the first final",
            "an interim with words",
            interims,
        )
        .should(),
        case(
            "messages",
            "Every message of the server is as the dialect has it",
            "no message that cannot be read, lacks a field or breaks RFC 6455, and none over 1 MiB",
            |site| Ok(site.spoken()?.heard.must_be_sound()?),
        ),
        case(
            "end",
            "The end that is asked for comes",
            "what the dialect has to say that all audio is transcribed",
            |site| {
                let took = site.spoken()?.end.clone()?;
                Ok(format!("after {}", in_words(took)))
            },
        ),
        case(
            "message-lengths",
            "The shortest and the longest message of audio are taken",
            "words of each length; the length that is usual is that of the other cases",
            message_lengths,
        ),
        case(
            "silence",
            "The cursor moves in silence, where the dialect says so",
            "progress in 3 s of silence; where servers of the dialect differ, either is right",
            silence,
        ),
    ]
}

/// The session that most cases are about.
pub(super) struct Spoken {
    facts: Facts,
    pub(super) speech: Speech,
    pub(super) heard: Heard,
    /// How long the end took.
    end: Result<Duration, String>,
}

impl Spoken {
    /// Says two clips with a pause between them, so that a turn ends and another one begins.
    pub(super) fn run(site: &Site<'_>) -> Result<Self, String> {
        let dialect = site.dialect()?;
        let clips = [site.clip(0), site.clip(1)];
        let speech = Speech::of(&clips, dialect.audio(), PAUSE);
        let mut talk = Talk::open(&site.server, &*dialect)?;
        talk.say_all(&speech);
        Ok(Self {
            facts: dialect.facts(),
            speech,
            end: talk.end(),
            heard: talk.heard,
        })
    }

    /// Passes where finals have times of the server's own.
    fn must_have_times(&self) -> Result<(), Miss> {
        match self.facts.cursor {
            Cursor::Times | Cursor::Answers => Ok(()),
            Cursor::Turn => Err(not_run(WHOLE_TURN)),
            Cursor::Inferred => Err(not_run(NO_TIMES)),
        }
    }
}

fn final_cursor(site: &Site<'_>) -> Outcome {
    let spoken = site.spoken()?;
    spoken.must_have_times()?;
    let end_ns = spoken.speech.spans_ns.last().map_or(0, |(_, end)| *end);
    let reached_ns = spoken.heard.reached_ns();
    let seen = format!(
        "the cursor came to {}, speech ends at {}",
        seconds(reached_ns),
        seconds(end_ns)
    );
    match reached_ns >= spoken.speech.reached_at_ns() {
        true => Ok(seen),
        false => Err((seen + &spoken.heard.remarks()).into()),
    }
}

fn speech_covered(site: &Site<'_>) -> Outcome {
    let spoken = site.spoken()?;
    spoken.must_have_times()?;
    let missing_ns = spoken.heard.uncovered_ns(&spoken.speech);
    let seen = format!("{} in one place", seconds(missing_ns));
    match missing_ns <= TOLERANCE_NS {
        true => Ok(seen),
        false => Err(seen.into()),
    }
}

fn interims(site: &Site<'_>) -> Outcome {
    let spoken = site.spoken()?;
    match spoken.facts.cursor {
        Cursor::Turn => return Err(not_run(WHOLE_TURN)),
        Cursor::Inferred => {
            return Err(not_run("text is final as it comes in this dialect"));
        }
        Cursor::Times | Cursor::Answers => {}
    }
    let (first, all) = (spoken.heard.interims_first, spoken.heard.interims);
    let seen = format!("{first} before the first final, {all} in all");
    match first {
        0 => Err(seen.into()),
        _ => Ok(seen),
    }
}

fn message_lengths(site: &Site<'_>) -> Outcome {
    let mut seen = Vec::new();
    let (least_ms, most_ms) = lengths_ms(site)?;
    for frame_ms in [least_ms, most_ms] {
        let options = Options {
            frame_ms: Some(frame_ms),
            ..site.options.clone()
        };
        let of_length = |seen: String| format!("messages of {frame_ms} ms: {seen}");
        let told = one_clip(site, &options).map_err(of_length)?;
        seen.push(of_length(told));
    }
    Ok(seen.join("; "))
}

/// The least and the greatest length of a message. The line that refuses a length that nobody has names both.
fn lengths_ms(site: &Site<'_>) -> Result<(u64, u64), String> {
    let nobodys = Options {
        frame_ms: Some(0),
        ..site.options.clone()
    };
    match site.dialect_of(&nobodys) {
        Err(OptionError::FrameLength {
            least_ms, most_ms, ..
        }) => Ok((least_ms, most_ms)),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("the dialect takes messages without audio".to_owned()),
    }
}

/// Says one clip in a session with these options, to its end; how well it was heard.
fn one_clip(site: &Site<'_>, options: &Options) -> Result<String, String> {
    let dialect = site.dialect_of(options);
    let dialect = dialect.map_err(|error| error.to_string())?;
    let talk = Talk::open(&site.server, &*dialect)?;
    one_clip_in(site, talk, &*dialect)
}

/// Says one clip in a session that is open, to its end; how well it was heard.
pub(super) fn one_clip_in(
    site: &Site<'_>,
    mut talk: Talk<'_>,
    dialect: &dyn Dialect,
) -> Result<String, String> {
    let speech = Speech::of(&[site.clip(2)], dialect.audio(), PAUSE);
    talk.say_all(&speech);
    talk.end()?;
    talk.heard.must_be(&speech.words)
}

fn silence(site: &Site<'_>) -> Outcome {
    let dialect = site.dialect()?;
    let times = site.server.times;
    // What must come is waited for; what may come has as long again as the silence was.
    let limit = match dialect.facts().silence {
        Silence::Undecidable => {
            return Err(not_run("silence moves no cursor in this dialect"));
        }
        Silence::Decidable => times.patience,
        Silence::Probe => times.look + SILENCE / times.speed.max(1),
    };
    let mut talk = Talk::open(&site.server, &*dialect)?;
    talk.say(&Speech::silence(SILENCE, dialect.audio()).frames);
    let moved = talk.listen(limit, |heard| heard.reached_ns() > 0 || heard.is_over());
    // More may be on its way.
    talk.listen(times.look, |_| false);
    if talk.heard.is_over() {
        return Err(format!("silence ended the session{}", talk.remarks()).into());
    }
    let heard = &talk.heard;
    let text = heard.text();
    let heard_there = match text.trim() {
        "" => String::new(),
        text => format!("; it heard {} there", shown(text)),
    };
    let (reached, written) = (seconds(heard.reached_ns()), seconds(talk.written_ns()));
    match (moved, dialect.facts().silence) {
        (true, _) => Ok(format!(
            "the cursor moves: to {reached} of {written}{heard_there}"
        )),
        (false, Silence::Decidable) => {
            Err(format!("the cursor did not move in {written} of silence{heard_there}").into())
        }
        (false, _) => Ok(format!(
            "the cursor does not move: lag cannot be told in silence{heard_there}"
        )),
    }
}
