//! What `plimsoll calibrate` measures of a workload: kinds of [`Work`] for the client.
//!
//! For each, a bare loop and the engine take turns against the same kind of sink. The bare loop does the [`Flow`], and
//! nothing else. The engine runs the workload's own sessions. The difference between the two is the engine's own work,
//! so both must write the same bytes at the same pace, and get as many back.

use std::fmt;
use std::time::Duration;

use plimsoll_core::profile::{NS_PER_S, Profile};
use plimsoll_core::record::{LoadUnit, ServerWords};
use plimsoll_core::session::Endpoint;
pub use plimsoll_core::speaker::{After, Speaker};

use crate::Refusal;
use crate::drive::Drive;

/// A kind of work for the client.
///
/// How much of it there is, the `amount`, is what the calibration varies: connections that send, or connections that
/// arrive each second.
pub trait Work: fmt::Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// What its load counts.
    fn unit(&self) -> LoadUnit;

    /// An amount as a load, in that unit.
    fn load(&self, amount: u32) -> u32;

    /// What costs are given for: one `frame`, `message` or `connection`.
    fn one(&self) -> String {
        self.unit().noun()
    }

    /// The size of a message's payload, in bytes; `None` if the work is not messages.
    fn message_bytes(&self) -> Option<usize>;

    /// How many messages of a connection go out in one write; `None` if the work is not messages.
    fn messages_per_write(&self) -> Option<u32> {
        self.message_bytes().map(|_| 1)
    }

    /// The number of sessions with which the costs are measured, unless another is given. There must be enough to keep
    /// a core busy: a frame costs twice as much if the core sleeps after each one.
    fn usual_sessions(&self) -> u32;

    /// The amount at which the costs are measured if the user asks for this many sessions.
    fn amount(&self, sessions: u32) -> u32 {
        sessions
    }

    /// The greatest amount for which there are descriptors if there are enough for this many sessions.
    fn amount_max(&self, sessions_max: u32) -> u32 {
        sessions_max
    }

    /// The step in which the amount can be changed.
    fn grain(&self) -> u32 {
        1
    }

    /// Which cores do the greatest load that is looked for.
    fn reach(&self) -> Reach {
        Reach::OneCore
    }

    /// What its load and its costs count.
    fn counts(&self) -> Counts {
        Counts::Written
    }

    /// Whether the sink answers every frame. The client then counts as on time only if all are answered.
    fn all_are_answered(&self) -> bool {
        true
    }

    /// What the bare loop does.
    fn flow(&self, amount: u32) -> Flow;

    /// The server that the engine talks to, and the bare loop too unless its answers are left unread.
    fn server(&self) -> Server;

    /// The path of the URL that sessions connect to.
    fn path(&self) -> &'static str {
        "/"
    }

    /// The engine's sessions.
    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions;
}

/// What the targets of a workload ask of their back end, so that the back end can be loaded alone: one batch per session
/// per second.
pub trait BackEndLoad: fmt::Debug + Send + Sync {
    /// Bytes of a batch.
    fn batch_bytes(&self) -> usize;

    /// The highest p99 of a batch, from its schedule, at which a back end counts as good enough, ms.
    fn p99_limit_ms(&self) -> f64;

    /// The engine's sessions for a load of so many gateway sessions over this transport: connections of a pool, which share
    /// the batches.
    ///
    /// # Errors
    /// One line with the remedy: there is no such transport, or no request can be made for that host.
    fn sessions(&self, load: u32, transport: &str, host: &str) -> Result<Sessions, Refusal>;

    /// What the server at this URL says of itself since the last [`Self::begin_window`]; `None` if it says nothing that is
    /// understood.
    fn says(&self, url: &str) -> Option<ServerWords>;

    /// Lets the server, which said something of itself, begin a new window.
    fn begin_window(&self, url: &str);
}

/// Which cores do the greatest load that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The first core of the client: what one core can do.
    OneCore,
    /// All cores of the client: what the client can do.
    AllCores,
}

/// What a load and its costs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// What the client writes. Its send lag says how late it was.
    Written,
    /// The same, if the frames of its sessions are something else than messages, such as turns of many messages. The
    /// [`Flow`] says how many messages there are.
    Paced,
    /// What the sink sends by the clock, and the client takes. When a frame was due at the sink is in the frame, so the
    /// latency from there says how late it was taken. A frame counts if it was due in the measured window.
    Taken,
}

/// The sessions that the engine drives.
pub struct Sessions {
    /// Their machines.
    pub machines: Box<dyn Drive>,
    /// How many there are over the whole run.
    pub count: u32,
}

/// What a bare loop does.
#[derive(Debug, Clone)]
pub enum Flow {
    /// It writes messages.
    Messages(Messages),
    /// It opens and closes connections.
    Connections(Connections),
    /// It takes messages that the sink sends by the clock.
    Deliveries(Deliveries),
}

impl Flow {
    /// How many messages or connections there are each second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a period")]
    pub fn per_second(&self) -> f64 {
        match self {
            Self::Messages(flow) => {
                f64::from(flow.connections) * NS_PER_S as f64 / flow.period_ns as f64
            }
            Self::Connections(flow) => f64::from(flow.per_s),
            Self::Deliveries(flow) => {
                let messages = f64::from(flow.connections) * f64::from(flow.batch);
                messages * NS_PER_S as f64 / flow.period_ns as f64
            }
        }
    }
}

/// Messages of connections that stay open. All are the same frame, except for its number if it has one.
#[derive(Debug, Clone)]
pub struct Messages {
    /// The connections.
    pub connections: u32,
    /// Time between two messages of a connection, ns. It is not zero.
    pub period_ns: u64,
    /// The frame as it goes on the wire. It is not empty.
    pub frame: Vec<u8>,
    /// The number that a frame carries, if each frame of a connection has another one.
    pub number: Option<Number>,
    /// Whether messages of a connection that are due together go out in one write, as they do in the engine's sessions.
    pub share_a_write: bool,
    /// What comes back.
    pub answers: Answers,
}

/// The number of a frame, which counts up on each connection: four bytes, the highest first.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// The place of its first byte in the frame.
    pub at: usize,
    /// The number of the first frame.
    pub first: u32,
    /// The difference between two numbers.
    pub step: u32,
}

/// What comes back to a bare loop.
#[derive(Debug, Clone)]
pub enum Answers {
    /// After so many frames, as many bytes as the server would send. The loop leaves them unread, because reading is
    /// work of the engine. Without them the traffic would be another: TCP acknowledges differently if one side is
    /// silent.
    Unread {
        /// The frames.
        frames: u64,
        /// The bytes.
        bytes: usize,
    },
    /// What the server sends. The loop reads it, because that is half of what is measured.
    Read(Opening),
}

/// How a bare loop opens a connection.
#[derive(Debug, Clone)]
pub struct Opening {
    /// What it writes.
    pub request: Vec<u8>,
    /// The end of what it then waits for.
    pub answer_end: &'static [u8],
}

/// Connections that are opened, and closed after a while.
#[derive(Debug, Clone)]
pub struct Connections {
    /// Connections each second.
    pub per_s: u32,
    /// What the loop writes on a new connection.
    pub request: Vec<u8>,
    /// What it writes when the connection's time is over. The server then closes.
    pub close: Vec<u8>,
    /// How long a connection stays open: several times the server's pace, so that the loop never has to wait.
    pub linger: Duration,
    /// How long the server has to answer the close.
    pub farewell: Duration,
}

/// Messages that the sink sends by the clock, several at once. The loop reads them, and settles each batch with one write.
#[derive(Debug, Clone)]
pub struct Deliveries {
    /// The connections.
    pub connections: u32,
    /// Time between two batches of a connection, ns. It is not zero.
    pub period_ns: u64,
    /// The messages of a batch.
    pub batch: u32,
    /// The bytes of a batch as it comes. It is not zero.
    pub batch_bytes: usize,
    /// How a connection is opened.
    pub opening: Opening,
    /// What the loop writes when it has read a batch.
    pub settlement: Vec<u8>,
}

/// A server for the sink to play. One thread looks at all its connections at intervals.
pub struct Server {
    /// Time between two looks. What arrives in between must fit into a socket.
    pub pace: Duration,
    /// Makes what speaks on a new connection.
    pub speakers: Speakers,
}

/// Makes what speaks on a new connection.
pub type Speakers = Box<dyn FnMut() -> Box<dyn Speaker> + Send>;

impl Server {
    /// A server with this pace.
    pub fn new<S: Speaker + 'static>(
        pace: Duration,
        mut speaker: impl FnMut() -> S + Send + 'static,
    ) -> Self {
        Self {
            pace,
            speakers: Box::new(move || Box::new(speaker())),
        }
    }
}
