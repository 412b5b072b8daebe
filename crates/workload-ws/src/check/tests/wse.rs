//! What a server of dialect `wse` says, with the defects under test.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use serde_json::{Value, json};

use super::Defect;
use super::http::Request;
use crate::check::wse::session::now_s;
use crate::jwt::Credentials;

/// What a message of a client leads to.
pub(super) enum Heard {
    /// The engine answers it, or has nothing to say.
    Engine(Option<String>),
    /// It goes to the application.
    Application,
    /// It goes to every connection.
    Everybody(String),
}

/// Why a request is refused, by the code of the error, if it is.
pub(super) fn refusal(request: &Request, defect: Defect) -> Option<&'static str> {
    let cookie = request.field("Cookie");
    let cookie = cookie.and_then(|cookie| cookie.strip_prefix("access_token="));
    let bearer = request.field("Authorization");
    let bearer = bearer.and_then(|bearer| bearer.strip_prefix("Bearer "));
    let bearer = bearer.filter(|_| defect != Defect::CookieOnly);
    match cookie.or(bearer) {
        None if defect == Defect::FailedForAbsent => Some("AUTH_FAILED"),
        None => Some("AUTH_REQUIRED"),
        Some(token) if is_good(token, defect) => None,
        Some(_) => Some("AUTH_FAILED"),
    }
}

/// Whether a token is what the default credentials sign.
fn is_good(token: &str, defect: Defect) -> bool {
    if defect == Defect::AnyToken {
        return true;
    }
    let claims = token.split('.').nth(1).unwrap_or_default();
    let claims = BASE64URL.decode(claims).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
    let Some(issued) = claims["iat"].as_u64() else {
        return false;
    };
    let mut credentials = Credentials::default();
    if defect == Defect::AnySubject {
        credentials.subject = claims["sub"].as_str().unwrap_or_default().to_owned();
    }
    let over = issued + 3600 < now_s() && defect != Defect::NeverExpires;
    token == credentials.token(issued) && !over
}

/// The error before the close of a refused connection.
pub(super) fn error(code: &str, defect: Defect) -> String {
    let mut error = json!({"c": "WSE", "t": "error", "v": 1,
        "p": {"code": code, "message": "no", "timestamp": now_s()}});
    if defect == Defect::RefusalWithoutMessage {
        error["p"]["message"] = Value::Null;
    }
    error.to_string()
}

pub(super) fn ready(connection: u64, defect: Defect) -> String {
    let connection = if defect == Defect::SameConnectionId {
        1
    } else {
        connection
    };
    let mut ready = json!({"c": "WSE", "t": "server_ready", "id": "1", "seq": 1, "ts": now_s(), "v": 1, "p": {"details": {
        "connection_id": connection, "features": {}, "server_time": now_s(), "user_id": "bench-user", "version": "2"}}});
    if defect == Defect::ReadyWithoutVersion {
        ready["p"]["details"]["version"] = Value::Null;
    }
    format!("WSE{ready}")
}

fn hello(defect: Defect) -> String {
    let mut hello = json!({"c": "WSE", "t": "server_hello", "v": 1, "p": {"features": {}, "ping_interval": 25_000, "server_version": "2",
        "limits": {"max_message_size": 1_048_576, "rate_limit_capacity": 1, "rate_limit_refill": 1}}});
    match defect {
        Defect::OtherPingInterval => hello["p"]["ping_interval"] = json!(25),
        Defect::LimitsAreText => hello["p"]["limits"]["rate_limit_refill"] = json!("1"),
        _ => {}
    }
    hello.to_string()
}

/// Takes a text of a client.
pub(super) fn hear(text: &str, defect: Defect) -> Heard {
    let brace = text.find('{').unwrap_or(0);
    let brace = if defect == Defect::NoPrefixes {
        0
    } else {
        brace
    };
    let Ok(message) = serde_json::from_str::<Value>(&text[brace..]) else {
        return Heard::Application;
    };
    match message["t"].as_str() {
        Some("client_hello") => Heard::Engine(Some(hello(defect))),
        Some("ping") => Heard::Engine(Some(pong(&message["p"], defect))),
        Some("pong" | "PONG") => Heard::Engine(None),
        Some("fanout") => {
            let class = if defect == Defect::HubOfAnotherClass {
                "S"
            } else {
                "U"
            };
            let delivery = json!({"c": class, "t": "fanout", "p": message["p"]});
            Heard::Everybody(delivery.to_string())
        }
        _ => Heard::Application,
    }
}

fn pong(ping: &Value, defect: Defect) -> String {
    let stamp = match defect {
        Defect::PongOfItsOwnTime => json!(now_s()),
        Defect::PongIsUnsigned => json!(ping["timestamp"].as_u64().unwrap_or(0)),
        Defect::AnyNameOfTimestamp => {
            let fields = ping.as_object().into_iter().flatten();
            fields
                .map(|(_, value)| value.clone())
                .next()
                .unwrap_or(json!(0))
        }
        _ => json!(ping["timestamp"].as_i64().unwrap_or(0)),
    };
    let mut pong = json!({"c": "WSE", "t": "PONG", "v": 1,
        "p": {"client_timestamp": stamp, "server_timestamp": now_s(), "latency": 0}});
    if defect == Defect::PongWithoutLatency {
        pong["p"]["latency"] = Value::Null;
    }
    pong.to_string()
}
