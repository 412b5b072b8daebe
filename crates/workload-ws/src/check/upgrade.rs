//! Sections 2 and 3 of the contract: which requests become a WebSocket.

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::{Connection, Socket, Upgrade, key};
use plimsoll_protocol::websocket::Opcode;
use plimsoll_protocol::websocket::handshake::key_text;

use super::talk::{connect, echoed, to, upgrade, usual};
use super::{Case, Site, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "upgrade-accepted",
            "A WebSocket upgrade gets 101, as RFC 6455 says",
            "101, with the accept that belongs to the key",
            |site| connect(site).map(|_| "101".to_owned()),
        ),
        case(
            "upgrade-any-path",
            "Every path but /healthz, /metrics and /fanout is an echo",
            "101 and an echo at /, /chat, /a/b/c and /x?y=z",
            any_path,
        )
        .only_when_started(),
        case(
            "upgrade-no-extension",
            "The server negotiates no extension and sends no Sec-WebSocket-Extensions",
            "101 without that field, though permessage-deflate was offered",
            no_extension,
        ),
        case(
            "upgrade-byte-by-byte",
            "A request that comes byte by byte is understood",
            "101",
            byte_by_byte,
        ),
        case(
            "upgrade-field-names",
            "The names of fields, and `websocket` and `upgrade` in them, are read in any case",
            "101",
            field_names,
        ),
        case(
            "upgrade-connection-list",
            "Connection may list other options beside upgrade",
            "101",
            connection_list,
        ),
        case(
            "upgrade-without-key",
            "An upgrade request that RFC 6455 forbids gets a status of 4xx: it has no key",
            "a status of 4xx",
            |site| refused(site, "GET", &[HOST, UPGRADE, CONNECTION, VERSION]),
        ),
        case(
            "upgrade-other-version",
            "An upgrade request that RFC 6455 forbids gets a status of 4xx: it asks for version 99",
            "a status of 4xx",
            |site| {
                refused(
                    site,
                    "GET",
                    &[HOST, UPGRADE, CONNECTION, KEY, "Sec-WebSocket-Version: 99"],
                )
            },
        ),
        case(
            "upgrade-by-post",
            "An upgrade request that RFC 6455 forbids gets a status of 4xx: it is a POST",
            "a status of 4xx",
            |site| {
                refused(
                    site,
                    "POST",
                    &[HOST, UPGRADE, CONNECTION, KEY, VERSION, "Content-Length: 0"],
                )
            },
        ),
    ]
}

const HOST: &str = "Host: localhost";
const UPGRADE: &str = "Upgrade: websocket";
const CONNECTION: &str = "Connection: Upgrade";
const VERSION: &str = "Sec-WebSocket-Version: 13";
/// Stands for the key of the request.
const KEY: &str = "Sec-WebSocket-Key: KEY";

/// The answer to a request with these fields.
fn ask(site: &Site<'_>, method: &str, fields: &[&str]) -> Result<Upgrade<Socket>, String> {
    let number = site.next_number();
    let Connection { path, .. } = usual(site);
    let fields = fields.join("\r\n");
    let fields = fields.replace("KEY", &key_text(key(number)));
    let request = format!("{method} {path} HTTP/1.1\r\n{fields}\r\n\r\n");
    Socket::open_with(site.address, &usual(site), request.as_bytes(), number)
}

fn granted(site: &Site<'_>, fields: &[&str]) -> Verdict {
    let mut socket = ask(site, "GET", fields)?.accepted()?;
    echoed(&mut socket, Opcode::Text, b"hello")?;
    Ok("101, and an echo".to_owned())
}

fn refused(site: &Site<'_>, method: &str, fields: &[&str]) -> Verdict {
    match ask(site, method, fields)? {
        Upgrade::Done(_) => Err("status 101".to_owned()),
        Upgrade::Refused { status, .. } if (400..500).contains(&status) => {
            Ok(format!("status {status}"))
        }
        Upgrade::Refused { status, .. } => Err(format!("status {status}")),
    }
}

fn any_path(site: &Site<'_>) -> Verdict {
    for path in ["/", "/chat", "/a/b/c", "/x?y=z"] {
        upgrade(site, &to(path))?
            .accepted()
            .and_then(|mut socket| echoed(&mut socket, Opcode::Text, b"hello"))
            .map_err(|seen| format!("{path}: {seen}"))?;
    }
    Ok("four echoes".to_owned())
}

/// The handshake's parser takes a 101 that names an extension for a fault.
fn no_extension(site: &Site<'_>) -> Verdict {
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits";
    granted(site, &[HOST, UPGRADE, CONNECTION, KEY, VERSION, offer])
}

fn byte_by_byte(site: &Site<'_>) -> Verdict {
    let slowly = Connection {
        byte_by_byte: true,
        ..usual(site)
    };
    upgrade(site, &slowly)?.accepted()?;
    Ok("101".to_owned())
}

fn field_names(site: &Site<'_>) -> Verdict {
    let key = KEY.replacen("Sec-WebSocket-Key", "SEC-WEBSOCKET-kEY", 1);
    granted(
        site,
        &[
            "hOST: localhost",
            "UPGRADE: WebSocket",
            "connection: uPGRADE",
            &key,
            "sec-websocket-version: 13",
        ],
    )
}

fn connection_list(site: &Site<'_>) -> Verdict {
    granted(
        site,
        &[
            HOST,
            UPGRADE,
            "Connection: keep-alive, Upgrade",
            KEY,
            VERSION,
        ],
    )
}
