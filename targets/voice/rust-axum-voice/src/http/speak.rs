//! `POST /speak`: a text in, its audio out as it comes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Frame;
use rust_axum::limit;
use serde::Deserialize;

use super::{authorize, failure, refused};
use crate::admission::Refusal;
use crate::gateway::Gateway;
use crate::json::{Object, object};
use crate::messages::{LINEAR16, TEXT_BYTES_MAX, TTS_SAMPLE_RATE, TtsConfig, TtsFields};
use crate::metrics::Spoken;
use crate::problem::{Kind, Problem};
use crate::reply::{Piece, Reply, TimedReply};

/// Most bytes of a body: the longest text with every byte as an escape, and room for the rest.
const BODY_BYTES_MAX: usize = 1 << 20;

pub(super) async fn speak(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    if let Err(refusal) = authorize(&gateway, request.headers()) {
        return refused(&gateway, refusal);
    }
    if gateway.drain.has_begun() {
        return refused(&gateway, Refusal::Draining);
    }
    let (text, tts) = match read(request).await {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    let reply = Reply::new(&gateway, &gateway.upstream(), &tts, &text);
    let socket = gateway.sockets.acquire();
    let mut audio = Audio { gateway, reply: TimedReply::new(reply), first: None, spoken: None, _socket: socket };
    match poll_fn(|context| audio.poll_piece(context)).await {
        Piece::Audio(first) => audio.first = Some(first),
        // A reply never ends well without a byte.
        Piece::End => return failure(StatusCode::BAD_GATEWAY, "provider_failed", "the provider sent no audio"),
        Piece::Failed(problem) => return failed(&problem),
    }
    let provider_ms = HeaderValue::try_from(format!("{:.3}", audio.reply.provider_ms()));
    let mut response = Response::new(Body::new(audio));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("audio/pcm"));
    headers.insert(HeaderName::from_static("x-audio-format"), HeaderValue::from_static(LINEAR16));
    headers.insert(HeaderName::from_static("x-sample-rate"), HeaderValue::from(TTS_SAMPLE_RATE));
    if let Ok(provider_ms) = provider_ms {
        headers.insert(HeaderName::from_static("x-provider-ms"), provider_ms);
    }
    response
}

/// The text and who is to speak it, or the answer to a request that has them not.
async fn read(request: Request) -> Result<(String, TtsConfig), Response> {
    #[derive(Deserialize)]
    struct Fields {
        text: String,
        tts_config: Object<TtsFields>,
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            too_large()
        } else {
            failure(StatusCode::BAD_REQUEST, "bad_json", "the body did not arrive whole")
        }
    })?;
    let fields: Fields = object(&body.to_bytes()).map_err(|error| {
        let is_json = error.is_data();
        failure(StatusCode::BAD_REQUEST, if is_json { "bad_field" } else { "bad_json" }, &error.to_string())
    })?;
    if fields.text.is_empty() {
        return Err(failure(StatusCode::BAD_REQUEST, "empty_text", "text is empty"));
    }
    if fields.text.len() > TEXT_BYTES_MAX {
        return Err(too_large());
    }
    let Object(tts) = fields.tts_config;
    let tts = tts.check().map_err(|problem| failure(StatusCode::BAD_REQUEST, "bad_field", &problem.message))?;
    Ok((fields.text, tts))
}

fn too_large() -> Response {
    let told = format!("text is longer than {TEXT_BYTES_MAX} bytes");
    failure(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &told)
}

fn failed(problem: &Problem) -> Response {
    match problem.kind {
        Kind::TtsTimeout => failure(StatusCode::GATEWAY_TIMEOUT, "provider_timeout", &problem.message),
        _ => failure(StatusCode::BAD_GATEWAY, "provider_failed", &problem.message),
    }
}

/// A reply as the body of an answer.
struct Audio {
    gateway: Arc<Gateway>,
    reply: TimedReply,
    /// Came before the head of the answer.
    first: Option<Bytes>,
    /// How it ended, once it has.
    spoken: Option<Spoken>,
    /// The end of the gateway waits for it.
    _socket: Option<limit::Permit>,
}

impl Audio {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        let piece = ready!(self.reply.poll(context));
        match piece {
            Piece::Audio(_) => {}
            Piece::End => self.spoken = Some(Spoken::Complete),
            Piece::Failed(_) => self.spoken = Some(Spoken::Failed),
        }
        Poll::Ready(piece)
    }
}

impl hyper::body::Body for Audio {
    type Data = Bytes;
    /// Makes hyper close the connection without the end of the body.
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = match self.first.take() {
            Some(first) => Piece::Audio(first),
            None => ready!(self.poll_piece(context)),
        };
        Poll::Ready(match piece {
            Piece::Audio(audio) => {
                self.gateway.metrics.audio_out.add(audio.len() as u64);
                Some(Ok(Frame::data(audio)))
            }
            Piece::End => None,
            Piece::Failed(problem) => Some(Err(problem.message)),
        })
    }
}

impl Drop for Audio {
    fn drop(&mut self) {
        self.gateway.metrics.spoke(self.spoken.unwrap_or(Spoken::Dropped), 1);
    }
}
