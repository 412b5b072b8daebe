//! Whether a server takes a session: a target that starts is ready then, and one that runs already has the right key.

use std::io::ErrorKind;
use std::net::TcpStream;

use plimsoll_core::session::Endpoint;
use plimsoll_workload::{Conversation, Findings, Refusal, Speaker, Values};

use crate::choices;
use crate::dialect::{Dialect, Event, Kind, ReadyAt};
use crate::link::{Came, Link};

/// Opens a session as the dialect says, and ends it at once.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) values: Values,
}

impl Speaker for Opening {
    fn is_ready(&self, stream: &mut TcpStream) -> Result<(), String> {
        let dialect = choices::dialect(&self.values, "/").map_err(|refusal| refusal.to_string())?;
        let to = Endpoint {
            host: "localhost".to_owned(),
            path: dialect.connect().target().expose().to_owned(),
            headers: Vec::new(),
        };
        open(&*dialect, &to, stream).map_err(|why| why.text)
    }

    fn account(&self, _stream: &mut TcpStream, _to: &Endpoint) -> Findings {
        Findings::Null
    }
}

/// Refuses a server to which the key is wrong. Whatever else is wrong, such as that it is full, a trial shows.
pub(crate) fn must_let_in(
    dialect: &dyn Dialect,
    to: &Endpoint,
    stream: &mut dyn Conversation,
) -> Result<(), Refusal> {
    match open(dialect, to, stream) {
        Err(NotOpen {
            text,
            kind: Some(Kind::Auth),
        }) => Err(Refusal(format!(
            "{text}; give its key with --key-file FILE"
        ))),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Why a session did not open.
#[derive(Debug)]
struct NotOpen {
    text: String,
    /// What the server says it is about, if it says so.
    kind: Option<Kind>,
}

impl NotOpen {
    fn of(text: impl ToString) -> Self {
        Self {
            text: text.to_string(),
            kind: None,
        }
    }

    fn refused(kind: Kind) -> Self {
        Self {
            text: format!("it refuses a session: {}", kind.name()),
            kind: Some(kind),
        }
    }
}

/// Opens a session over a connection whose reads and writes end by themselves.
fn open(
    dialect: &dyn Dialect,
    to: &Endpoint,
    stream: &mut dyn Conversation,
) -> Result<(), NotOpen> {
    let mut link = Link::new(dialect.connect().transport, to, 1);
    let mut transcription = dialect.transcription();
    let mut opened = link.opens_at_once();
    let mut greeted = false;
    let mut buffer = [0; 4_096];
    loop {
        if opened && !greeted {
            greeted = true;
            for message in dialect.opening(0) {
                link.queue(&message);
            }
        }
        let count = link.control().len();
        if count > 0 {
            stream.write_all(link.control()).map_err(NotOpen::of)?;
            link.control_sent(count);
        }
        if greeted && dialect.facts().ready_at == ReadyAt::Open {
            return Ok(());
        }
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Err(NotOpen::of("it closed the connection before it was ready")),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(NotOpen::of(error)),
        };
        let mut ready = false;
        let mut failed = None;
        link.received(&buffer[..read], |came| match came {
            Came::Opened => opened = true,
            Came::Broken(reason) => failed = Some(NotOpen::of(reason)),
            Came::Message(incoming) => {
                transcription.parse(incoming, 0, &mut |event| match event {
                    Event::Ready => ready = true,
                    Event::Refused { kind } | Event::Error { kind, fatal: true } => {
                        failed.get_or_insert_with(|| NotOpen::refused(kind));
                    }
                    _ => {}
                });
            }
        });
        match failed {
            Some(reason) => return Err(reason),
            None if ready => return Ok(()),
            None => {}
        }
    }
}
