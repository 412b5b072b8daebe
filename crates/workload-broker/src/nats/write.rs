//! The client's commands ("Client Protocol" of the NATS documentation).

use serde::Serialize;

use crate::Login;
use crate::decimal;

/// The answer to PING.
pub const PONG: &[u8] = b"PONG\r\n";

/// Wants a PONG.
pub const PING: &[u8] = b"PING\r\n";

/// What CONNECT says.
#[derive(Serialize)]
struct Connect<'a> {
    verbose: bool,
    pedantic: bool,
    lang: &'a str,
    version: &'a str,
    name: &'a str,
    protocol: u8,
    headers: bool,
    no_responders: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a str>,
}

/// Appends CONNECT: no `+OK` for each command, headers, and a status 503 where nobody listens.
pub fn connect(out: &mut Vec<u8>, login: Option<&Login>) {
    let connect = Connect {
        verbose: false,
        pedantic: false,
        lang: "rust",
        version: env!("CARGO_PKG_VERSION"),
        name: "plimsoll",
        protocol: 1,
        headers: true,
        no_responders: true,
        user: login.map(|login| login.user.as_str()),
        pass: login.map(|login| login.password.as_str()),
    };
    out.extend_from_slice(b"CONNECT ");
    // Booleans, a number and texts: nothing in it can fail to become JSON.
    out.extend_from_slice(&serde_json::to_vec(&connect).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

/// Appends SUB: from now on, what comes to `subject` arrives with this number.
pub fn subscribe(out: &mut Vec<u8>, subject: &[u8], sid: u64) {
    out.extend_from_slice(b"SUB ");
    out.extend_from_slice(subject);
    out.push(b' ');
    decimal::write(out, sid);
    out.extend_from_slice(b"\r\n");
}

/// Appends UNSUB.
pub fn unsubscribe(out: &mut Vec<u8>, sid: u64) {
    out.extend_from_slice(b"UNSUB ");
    decimal::write(out, sid);
    out.extend_from_slice(b"\r\n");
}

/// Appends PUB.
pub fn publish(out: &mut Vec<u8>, subject: &[u8], reply: &[u8], payload: &[u8]) {
    out.extend_from_slice(b"PUB ");
    addressed(out, subject, reply);
    decimal::write(out, payload.len() as u64);
    ended(out, &[payload]);
}

/// Appends HPUB. `headers` is a block as it is on the wire: `NATS/1.0`, its lines, and an empty line.
pub fn publish_with_headers(
    out: &mut Vec<u8>,
    subject: &[u8],
    reply: &[u8],
    headers: &[u8],
    payload: &[u8],
) {
    out.extend_from_slice(b"HPUB ");
    addressed(out, subject, reply);
    decimal::write(out, headers.len() as u64);
    out.push(b' ');
    decimal::write(out, (headers.len() + payload.len()) as u64);
    ended(out, &[headers, payload]);
}

fn addressed(out: &mut Vec<u8>, subject: &[u8], reply: &[u8]) {
    out.extend_from_slice(subject);
    out.push(b' ');
    if !reply.is_empty() {
        out.extend_from_slice(reply);
        out.push(b' ');
    }
}

fn ended(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.extend_from_slice(b"\r\n");
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_are_those_of_the_document() {
        assert_eq!(
            written(|out| publish(out, b"FOO", b"", b"Hello NATS!")),
            "PUB FOO 11\r\nHello NATS!\r\n"
        );
        assert_eq!(
            written(|out| publish(out, b"FRONT.DOOR", b"JOKE.22", b"Knock Knock")),
            "PUB FRONT.DOOR JOKE.22 11\r\nKnock Knock\r\n"
        );
        assert_eq!(
            written(|out| publish(out, b"NOTIFY", b"", b"")),
            "PUB NOTIFY 0\r\n\r\n"
        );
        assert_eq!(
            written(|out| publish_with_headers(
                out,
                b"FRONT.DOOR",
                b"JOKE.22",
                b"NATS/1.0\r\nBREAKFAST: donut\r\nLUNCH: burger\r\n\r\n",
                b"Knock Knock"
            )),
            "HPUB FRONT.DOOR JOKE.22 45 56\r\nNATS/1.0\r\nBREAKFAST: donut\r\nLUNCH: burger\r\n\r\nKnock Knock\r\n"
        );
        assert_eq!(written(|out| subscribe(out, b"FOO", 1)), "SUB FOO 1\r\n");
        assert_eq!(written(|out| unsubscribe(out, 1)), "UNSUB 1\r\n");
    }

    #[test]
    fn connect_has_a_login_only_if_there_is_one() {
        let plain = written(|out| connect(out, None));
        assert!(
            plain.starts_with(r#"CONNECT {"verbose":false,"pedantic":false,"#),
            "{plain}"
        );
        assert!(plain.ends_with("\"no_responders\":true}\r\n"), "{plain}");
        let login = Login {
            user: "a\"b".to_owned(),
            password: "c".to_owned(),
        };
        let known = written(|out| connect(out, Some(&login)));
        assert!(
            known.ends_with("\"user\":\"a\\\"b\",\"pass\":\"c\"}\r\n"),
            "{known}"
        );
    }
}
