//! What a server of these tests answers.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::Defect;
use super::request::Request;
use super::server::Shared;
use crate::check::exchange::{json, pattern, sum};
use crate::check::offer::{LARGEST, Route};

struct Page {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
}

fn page(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    Page { status, kind, body }
}

/// The whole answer to a request.
pub(super) fn answer(request: &Request, shared: &Shared) -> Vec<u8> {
    let defect = shared.rules.defect;
    let page = route(request, shared);
    let head = request.method == "HEAD";
    let draining = shared.life.is_draining() && defect != Defect::AnnouncesNoClose;
    let mut bytes = start(&page, request.close || draining, shared).into_bytes();
    let chunked = defect == Defect::AnswersChunked;
    if chunked {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    } else if head && defect == Defect::HeadWithoutLength {
        bytes.extend_from_slice(b"\r\n");
    } else {
        let length = format!("Content-Length: {}\r\n\r\n", page.body.len());
        bytes.extend_from_slice(length.as_bytes());
    }
    if !head || defect == Defect::BodyToHead {
        let body = if chunked {
            crate::check::exchange::in_chunks(&page.body, &[])
        } else {
            page.body
        };
        bytes.extend_from_slice(&body);
    }
    bytes
}

/// The answer to what is no request.
pub(super) fn refusal(status: u16, shared: &Shared) -> Vec<u8> {
    let page = page(status, "text/plain", "no");
    let start = start(&page, true, shared);
    format!("{start}Content-Length: 2\r\n\r\nno").into_bytes()
}

fn start(page: &Page, close: bool, shared: &Shared) -> String {
    let date = match shared.rules.defect {
        Defect::NoDate => String::new(),
        Defect::FrozenDate => date_line(shared.started),
        _ => date_line(SystemTime::now()),
    };
    let close = if close { "Connection: close\r\n" } else { "" };
    let version = match shared.rules.defect {
        Defect::OtherVersion if page.kind == "text/plain" => "HTTP/3.7",
        _ => "HTTP/1.1",
    };
    format!(
        "{version} {} Answer\r\nContent-Type: {}\r\n{date}{close}",
        page.status, page.kind
    )
}

fn date_line(at: SystemTime) -> String {
    format!("Date: {}\r\n", httpdate::fmt_http_date(at))
}

fn route(request: &Request, shared: &Shared) -> Page {
    let (defect, offer) = (shared.rules.defect, &shared.offer);
    let path = match defect {
        Defect::QueryIsPath => request.path.as_str(),
        _ => request.path.split('?').next().unwrap_or_default(),
    };
    let get = ["GET", "HEAD"].contains(&request.method.as_str());
    match path {
        "/" | "/healthz" if !get => page(405, "text/plain", ""),
        "/healthz" if defect == Defect::HealthIsUnavailable => page(503, "text/plain", ""),
        "/" if shared.life.is_early() => page(503, "text/plain", ""),
        "/" if defect == Defect::RootSaysMore => page(200, "text/plain", "ok\n"),
        "/" if defect == Defect::RootIsHtml => page(200, "text/html", "ok"),
        "/" | "/healthz" => page(200, "text/plain", "ok"),
        "/metrics" if offer.metrics => metrics(shared),
        "/sum" if offer.has(Route::Sum) && request.method == "POST" => sum_of(request, shared),
        "/sum" if offer.has(Route::Sum) => page(405, "text/plain", ""),
        _ if !get => page(404, "text/plain", ""),
        _ => numbered(path, shared).unwrap_or_else(|| page(404, "text/plain", "no")),
    }
}

/// `/bytes/N` and `/json/K`.
fn numbered(path: &str, shared: &Shared) -> Option<Page> {
    let defect = shared.rules.defect;
    let (route, digits) = path.strip_prefix('/')?.split_once('/')?;
    let plain = digits.bytes().all(|letter| letter.is_ascii_digit());
    let canonical = plain && (digits == "0" || !digits.starts_with('0'));
    let number: u64 = digits.parse().ok()?;
    if !canonical && defect != Defect::AnyNumber {
        return None;
    }
    match route {
        "bytes" if shared.offer.has(Route::Bytes) => {
            let size = usize::try_from(number).ok()?;
            let there = shared.offer.sizes.has(size);
            let kind = match defect {
                Defect::BytesAreText => "text/plain",
                _ => "application/octet-stream; charset=binary",
            };
            let mut body = pattern(size.min(LARGEST));
            if defect == Defect::BytesAreShifted {
                body.rotate_left(1);
            }
            there.then(|| page(200, kind, body))
        }
        "json" if shared.offer.has(Route::Json) => {
            // The largest number is not one of them in 52 bits.
            let kept = match defect {
                Defect::JsonLosesBits => number & ((1 << 52) - 1),
                _ => number,
            };
            let body = match defect {
                Defect::JsonHasSpaces => json(kept).replace(",\"", ", \""),
                _ => json(kept),
            };
            Some(page(200, "application/json", body))
        }
        _ => None,
    }
}

fn sum_of(request: &Request, shared: &Shared) -> Page {
    let body = match shared.rules.defect {
        Defect::ForgetsTheLast => &request.body[..request.body.len().saturating_sub(1)],
        Defect::EmptyIsNoBody if request.body.is_empty() => {
            return page(411, "text/plain", "");
        }
        _ => &request.body,
    };
    let own = sum(body);
    // What one client is answered, another sent: the sums go round.
    let text = match shared.rules.defect {
        Defect::MixesClients => {
            let mut last = shared.last_sum.lock().expect("sound");
            std::mem::replace(&mut *last, own)
        }
        _ => own,
    };
    page(200, "text/plain; charset=utf-8", text)
}

fn metrics(shared: &Shared) -> Page {
    let counters = &shared.counters;
    let gauge = match shared.rules.defect {
        Defect::GaugeIsCounter => "counter",
        _ => "gauge",
    };
    let rows = [
        ("http_requests_total", "counter", &counters.requests),
        (
            "http_connections_accepted_total",
            "counter",
            &counters.accepted,
        ),
        ("http_connections_open", gauge, &counters.open),
    ];
    let text = rows.map(|(name, kind, value)| {
        let value = value.load(Ordering::Relaxed);
        format!("# TYPE {name} {kind}\n{name} {value}\n")
    });
    let kind = match shared.rules.defect {
        Defect::MetricsAreJson => "application/json",
        _ => "text/plain; version=0.0.4",
    };
    page(200, kind, text.concat())
}
