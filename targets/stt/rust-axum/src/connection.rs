//! The rim around a [`Session`]: one task that moves bytes, answers and time between it and the world.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::time::Sleep;

use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::inference;
use crate::limit::Permit;
use crate::messages::Inference;
use crate::session::{CloseReason, Session};
use crate::websocket::{self, Incoming, Limits, Message, Violation, WebSocket};

/// Most that a message may declare as its length, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Three frames are more than a socket holds unless the gateway is late. What is written is at most a little longer than
/// the longest answer of the inference server.
pub const LIMITS: Limits = Limits {
    text_max: MESSAGE_BYTES_MAX,
    binary_max: MESSAGE_BYTES_MAX,
    read_buffer: 2 * 1024,
    write_buffer_max: 2 * inference::ANSWER_BYTES_MAX,
};

/// Messages taken from the socket before the timer, the request and all other tasks get their turn, so that a flood starves none of them.
///
/// Few, for the connection to the inference server is one task among those of all sessions. Under twice the load line each session has dozens of frames
/// waiting; with 32 of them in a turn that one task had its turn so seldom that every request timed out. What is not taken yet waits in the kernel, where the
/// client feels it.
const MESSAGES_PER_TURN: usize = 4;

/// How a session ended.
#[derive(Debug)]
enum End {
    /// By us.
    Closing(CloseReason),
    /// By the client, with a close.
    ClosedByClient,
    /// By the client or the network, without one.
    Gone,
}

/// Serves one session to its end and closes its socket.
pub async fn serve(socket: WebSocket, gateway: &Gateway, permit: Permit) {
    let jitter = gateway.config.flush_phase_jitter.mul_f64(fastrand::f64());
    let session = Session::new(gateway.config.session, jitter, Instant::now());
    let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
    let mut connection = Connection { gateway, socket, session, timer, armed_for: None };

    // Registers this task to be woken when draining begins. Polled this once only: the registration holds for as long
    // as the task lives, and polling it again, for every frame, would lock a list that all sessions share. The flag,
    // which every turn looks at, tells what the wake was for.
    let mut drain_wake = pin!(gateway.drain.wake.notified());
    poll_fn(|context| {
        let _ = drain_wake.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
    let end = poll_fn(|context| connection.poll_turn(context)).await;

    let Connection { mut session, socket, .. } = connection;
    gateway.metrics.fold(&session.take_tally());
    // Gives up the request in flight, and the place: the next client may have it before this one's close is through.
    drop(session);
    drop(permit);
    match end {
        End::Closing(reason) => socket.close(reason.code()).await,
        End::ClosedByClient => socket.acknowledge_close().await,
        End::Gone => {}
    }
}

impl From<Violation> for CloseReason {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::Protocol | Violation::NotUtf8 => Self::Protocol,
            Violation::TooLarge => Self::TooLarge,
        }
    }
}

/// A request on its way. Boxed once per flush, so that its state does not lie idle in every session's task.
type Request = Pin<Box<dyn Future<Output = Result<Inference, Failure>> + Send>>;

struct Connection<'a> {
    gateway: &'a Gateway,
    socket: WebSocket,
    session: Session<Request>,
    /// The session's one timer: start timeout, ticks and request timeout.
    timer: Pin<Box<Sleep>>,
    armed_for: Option<Instant>,
}

impl Connection<'_> {
    /// Does all that can be done now. A hand-written poll and not `select!`, since a `select!` loop makes, registers
    /// and drops the futures of all its branches for each frame.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<End> {
        if let Some(until) = self.gateway.drain.give_up_at() {
            self.session.drain(until);
        }
        if let Poll::Ready(end) = self.poll_socket(context) {
            return Poll::Ready(end);
        }
        self.poll_request(context);
        if let Poll::Ready(reason) = self.poll_timer(context) {
            return Poll::Ready(End::Closing(reason));
        }
        if self.poll_outbox(context).is_err() {
            return Poll::Ready(End::Gone);
        }
        if self.session.is_drained() {
            return Poll::Ready(End::Closing(CloseReason::GoingAway));
        }
        Poll::Pending
    }

    /// Hands the session what the client sent.
    fn poll_socket(&mut self, context: &mut Context<'_>) -> Poll<End> {
        // What is read in one turn arrived at one time, as far as the gateway can know.
        let mut arrived_at = None;
        for _ in 0..MESSAGES_PER_TURN {
            let incoming = match self.socket.poll_incoming(context) {
                Poll::Ready(incoming) => incoming,
                Poll::Pending => return Poll::Pending,
            };
            let now = *arrived_at.get_or_insert_with(Instant::now);
            let taken = match incoming {
                Incoming::Binary(payload) => self.session.on_binary(now, &payload),
                Incoming::Text(text) => self.session.on_text(now, text.as_bytes()),
                Incoming::Ping | Incoming::Pong => Ok(()),
                Incoming::Violation(violation) => Err(violation.into()),
                Incoming::Closed => return Poll::Ready(End::ClosedByClient),
                Incoming::Gone => return Poll::Ready(End::Gone),
            };
            if let Err(reason) = taken {
                return Poll::Ready(End::Closing(reason));
            }
        }
        // There may be more: have another turn soon.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Drives the request in flight, if there is one.
    fn poll_request(&mut self, context: &mut Context<'_>) {
        if let Some(request) = self.session.request_mut()
            && let Poll::Ready(answer) = request.as_mut().poll(context)
        {
            self.session.on_answer(Instant::now(), answer);
            self.gateway.metrics.fold(&self.session.take_tally());
        }
    }

    /// Does what is due and arms the timer for what comes next.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<CloseReason> {
        loop {
            let wake_at = self.session.wake_at();
            if wake_at != self.armed_for {
                self.armed_for = wake_at;
                if let Some(wake_at) = wake_at {
                    self.timer.as_mut().reset(wake_at.into());
                }
            }
            if wake_at.is_none() || self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let woken = self.wake();
            self.gateway.metrics.fold(&self.session.take_tally());
            if let Err(reason) = woken {
                return Poll::Ready(reason);
            }
            // A new request does nothing, not even get sent, until it has been polled once.
            self.poll_request(context);
        }
    }

    fn wake(&mut self) -> Result<(), CloseReason> {
        let gateway = self.gateway;
        self.session.on_wake(Instant::now(), || {
            let job = gateway.jobs.acquire()?;
            Some(move |pcm: Bytes| -> Request {
                let answer = gateway.inference.infer(pcm, gateway.config.session.cpu_passes);
                Box::pin(async move {
                    let answer = answer.await;
                    drop(job);
                    answer
                })
            })
        })
    }

    /// Writes messages for as long as the client takes them. Never waits: a client that does not read must not keep
    /// its own frames from being read.
    fn poll_outbox(&mut self, context: &mut Context<'_>) -> Result<(), websocket::Error> {
        while self.session.outbox().unsent() > 0 {
            // Also what is not ours, such as a pong: a message is begun only when nothing is left of the one before.
            match self.socket.poll_flush(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(flushed) => flushed?,
            }
            let outbox = self.session.outbox();
            outbox.sent();
            if let Some(message) = outbox.next_to_send()
                && let Poll::Ready(sent) = self.socket.poll_send(context, Message::text(message))
            {
                sent?;
            }
        }
        Ok(())
    }
}
