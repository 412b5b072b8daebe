//! Replies: byte by byte as a case wants them.

use std::time::{Duration, Instant};

use socket2::SockRef;

use super::scene::{Asked, How, Scene};
use super::{LOOK, Request, Shared, answer, query_value};
use crate::check::audio::{self, REPLY_BLOCK_BYTES};
use crate::check::wire::Wire;

/// How a request for a reply is answered.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Reply {
    /// 0 stands for 200.
    status: u16,
    fields: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

/// What a provider does, one after the other. Behind the last step the reply is whole.
#[derive(Debug, Clone)]
pub(in super::super) enum Step {
    /// Hands over these bytes, as one chunk.
    Audio(Vec<u8>),
    Pause(Duration),
    /// Does nothing until the gateway leaves.
    Stall,
    /// Resets the connection.
    Reset,
}

impl Reply {
    /// These steps.
    pub(in super::super) fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            ..Self::default()
        }
    }

    /// This audio at once.
    pub(in super::super) fn at_once(audio: &[u8]) -> Self {
        Self::of([Step::Audio(audio.to_vec())])
    }

    /// This audio in real time: 20 ms every 20 ms.
    pub(in super::super) fn in_real_time(audio: &[u8]) -> Self {
        let blocks = audio.chunks(REPLY_BLOCK_BYTES);
        Self::of(blocks.flat_map(|block| {
            let pause = Step::Pause(Duration::from_millis(20));
            [Step::Audio(block.to_vec()), pause]
        }))
    }

    /// An error instead of a reply.
    pub(in super::super) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Some audio, for a text of which a case said nothing.
    pub(super) fn short() -> Self {
        Self::at_once(&audio::reply(0, REPLY_BLOCK_BYTES))
    }

    /// The same with a field in its head.
    pub(in super::super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }
}

/// Whether requests for replies go to this path.
pub(super) fn is_of_a_provider(path: &str) -> bool {
    let of_a_voice = path.strip_prefix("/v1/text-to-speech/");
    let eleven_labs = of_a_voice.is_some_and(|rest| rest.ends_with("/stream"));
    eleven_labs || ["/v1/speak", "/v1/audio/speech", "/tts/bytes"].contains(&path)
}

/// The model that a request names, wherever its provider has it.
pub(super) fn model_of(request: &Request) -> String {
    let in_body = ["model", "model_id"].map(|name| request.body[name].as_str());
    match in_body {
        [Some(model), _] | [None, Some(model)] => model.to_owned(),
        [None, None] => query_value(&request.query, "model"),
    }
}

/// The text that a request wants spoken, whatever its provider calls it.
fn text_of(request: &Request) -> &str {
    let names = ["text", "input", "transcript"];
    let found = names.iter().find_map(|name| request.body[*name].as_str());
    found.unwrap_or_default()
}

/// Answers; the connection comes back if more can be asked on it.
pub(super) fn serve(
    mut wire: Wire,
    request: &Request,
    scene: &Scene,
    shared: &Shared,
) -> Option<Wire> {
    let reply = scene.next_reply(text_of(request));
    if !scene.remembers() {
        return (play(&mut wire, &reply, shared) == How::Whole).then_some(wire);
    }
    let number = scene.note(|seen| {
        seen.asked.push(Asked {
            place: request.place,
            path: request.path.clone(),
            query: request.query.clone(),
            head: request.head.clone(),
            body: request.body.clone(),
            ended: None,
        });
        seen.asked.len() - 1
    });
    let how = play(&mut wire, &reply, shared);
    let ended = Instant::now();
    let again = (how == How::Whole).then_some(wire);
    scene.note(|seen| seen.asked[number].ended = Some((ended, how)));
    again
}

fn play(wire: &mut Wire, reply: &Reply, shared: &Shared) -> How {
    if reply.status >= 400 {
        let status = format!("{} No", reply.status);
        return whole_if(
            wire.send(&answer(&status, r#"{"err":"as the case wants it"}"#))
                .is_ok(),
        );
    }
    let mut head = Some(head_of(reply));
    for step in &reply.steps {
        let gone = match step {
            Step::Audio(audio) => {
                let mut bytes = head.take().unwrap_or_default();
                bytes.extend(format!("{:x}\r\n", audio.len()).into_bytes());
                bytes.extend_from_slice(audio);
                bytes.extend_from_slice(b"\r\n");
                wire.send(&bytes).is_err()
            }
            Step::Pause(time) => wire.gone_within(*time),
            Step::Stall => {
                while !shared.over() && !wire.gone_within(LOOK / 5) {}
                true
            }
            Step::Reset => {
                // The stream is closed right behind this; with no time to linger that is a reset.
                let lingers = SockRef::from(wire.stream()).set_linger(Some(Duration::ZERO));
                debug_assert!(lingers.is_ok());
                return How::BrokenOff;
            }
        };
        if gone {
            return How::Cancelled;
        }
    }
    let mut bytes = head.take().unwrap_or_default();
    bytes.extend_from_slice(b"0\r\n\r\n");
    whole_if(wire.send(&bytes).is_ok())
}

fn whole_if(sent: bool) -> How {
    if sent { How::Whole } else { How::Cancelled }
}

fn head_of(reply: &Reply) -> Vec<u8> {
    let mut head =
        "HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n".to_owned();
    for (name, value) in &reply.fields {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    head.into_bytes()
}
