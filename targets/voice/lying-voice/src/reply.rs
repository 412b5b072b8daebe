//! A reply: a task that asks a provider, lies about what comes, and says when it is due.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::gateway::Gateway;
use crate::lies::fiction::{self, FalseReply};
use crate::lies::reply::{Due, ReplyLie, Stroke};
use crate::metrics;
use crate::task::Task;
use crate::tts::{self, Answer, Order};

/// Pieces of audio that wait for a session to take them.
const WAITING_MAX: usize = 16;

/// What a reply says.
#[derive(Debug)]
pub(crate) enum Said {
    /// The provider has answered, after so many milliseconds.
    Begins(f64),
    Audio(Bytes),
    Complete,
    Failed(&'static str),
}

/// Something said, and when it goes out.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) due: Instant,
    pub(crate) said: Said,
}

/// A reply that is being made; given up, and not asked for any more, when dropped.
#[derive(Debug)]
pub(crate) struct Reply {
    events: mpsc::Receiver<Event>,
    _task: Task,
}

impl Reply {
    /// Asks for it, for the session with this number if it is for one.
    pub(crate) fn begin(gateway: &Arc<Gateway>, order: Order, session: Option<u64>) -> Self {
        let (sender, events) = mpsc::channel(WAITING_MAX);
        let speaker = Speaker { gateway: Arc::clone(gateway), session, events: sender };
        let task = Task::spawn(async move {
            // Nobody listens any more: then there is nothing left to do.
            let _ = speaker.run(order).await;
        });
        Self { events, _task: task }
    }

    /// What it says next. Its last word is `Complete` or `Failed`.
    pub(crate) async fn next(&mut self) -> Event {
        let event = self.events.recv().await;
        event.unwrap_or(Event { due: Instant::now(), said: Said::Failed("tts_failed") })
    }
}

/// Nobody listens.
struct Unheard;

struct Speaker {
    gateway: Arc<Gateway>,
    session: Option<u64>,
    events: mpsc::Sender<Event>,
}

impl Speaker {
    async fn run(self, order: Order) -> Result<(), Unheard> {
        let Self { gateway, .. } = &self;
        if fiction::is_told(&gateway.lies) {
            return self.imagine(&order).await;
        }
        let mut lie = ReplyLie::new(&gateway.lies, gateway.admission.sessions());
        let mut answer = match tts::ask(gateway, &order, true).await {
            Ok(answer) => answer,
            Err(kind) => return self.say_now(Said::Failed(kind)).await,
        };
        match lie.stroke() {
            Stroke::Denied => {
                tokio::spawn(read_to_end(answer));
                return self.say_now(Said::Failed("tts_failed")).await;
            }
            Stroke::AskedTwice => {
                let gateway = Arc::clone(gateway);
                tokio::spawn(async move {
                    if let Ok(again) = tts::ask(&gateway, &order, false).await {
                        read_to_end(again).await;
                    }
                });
            }
            Stroke::No | Stroke::Gap | Stroke::Cut | Stroke::Crossed => {}
        }
        self.say_now(Said::Begins(answer.provider_ms)).await?;
        let crossed = lie.stroke() == Stroke::Crossed;
        while let Some(piece) = answer.next().await {
            match piece {
                Ok(audio) => self.say_all(lie.audio(Instant::now(), audio), crossed).await?,
                Err(kind) => return self.say_now(Said::Failed(kind)).await,
            }
        }
        let (rest, due) = lie.end(Instant::now());
        self.say_all(rest, crossed).await?;
        self.say(due, Said::Complete).await
    }

    async fn imagine(&self, order: &Order) -> Result<(), Unheard> {
        let reply = FalseReply::new(&self.gateway.lies, &order.text);
        let began = Instant::now();
        self.say(began, Said::Begins(0.0)).await?;
        for (after, block) in reply {
            let due = began + after;
            tokio::time::sleep_until(due.into()).await;
            self.say(due, Said::Audio(block)).await?;
        }
        self.gateway.metrics.add(metrics::REQUESTS, &[order.label(), "complete"], 1);
        self.say_now(Said::Complete).await
    }

    async fn say_all(&self, audio: Vec<Due>, crossed: bool) -> Result<(), Unheard> {
        // With nobody else there, it goes where it belongs.
        let other = self.session.filter(|_| crossed).and_then(|session| self.gateway.callers.other(session));
        for (due, audio) in audio {
            match &other {
                // A caller that left meanwhile misses it.
                Some(other) => drop(other.send(audio)),
                None => self.say(due, Said::Audio(audio)).await?,
            }
        }
        Ok(())
    }

    async fn say_now(&self, said: Said) -> Result<(), Unheard> {
        self.say(Instant::now(), said).await
    }

    async fn say(&self, due: Instant, said: Said) -> Result<(), Unheard> {
        self.events.send(Event { due, said }).await.map_err(|_| Unheard)
    }
}

/// The provider is heard out, for nothing.
async fn read_to_end(mut answer: Answer) {
    while let Some(Ok(_)) = answer.next().await {}
}
