//! What is left out of text, and what is not.

use super::*;

#[test]
fn a_secret_is_shown_nowhere() {
    let secret = Secret::new("hunter2-canary");
    let shown = [
        format!("{secret}"),
        format!("{secret:?}"),
        serde_json::to_string(&secret).unwrap(),
    ];
    assert!(shown.iter().all(|text| text.contains(REDACTED)));
    assert!(!shown.concat().contains("canary"));
    assert_eq!(secret.expose(), "hunter2-canary");
}

#[test]
fn a_url_keeps_what_is_no_secret() {
    for (url, redacted) in [
        ("ws://h:1/a?b=c&format=json", "ws://h:1/a?b=c&format=json"),
        ("ws://u:p@h:1/a", "ws://[redacted]@h:1/a"),
        ("http://token@h", "http://[redacted]@h"),
        ("ws://h/a?token=x", "ws://h/a?token=[redacted]"),
        (
            "ws://h?a=1&API-Key=x&b=2",
            "ws://h?a=1&API-Key=[redacted]&b=2",
        ),
        ("/a?%74oken=x&sig=y", "/a?%74oken=[redacted]&sig=[redacted]"),
        ("/a?v=eyJh.eyJz.c2ln", "/a?v=[redacted]"),
        ("/a?token=&token", "/a?token=&token"),
        ("/a@b?c=d", "/a@b?c=d"),
        (
            "ws://h/a?access_token=a=b",
            "ws://h/a?access_token=[redacted]",
        ),
    ] {
        assert_eq!(redacted_url(url), redacted);
        assert_eq!(redacted_url(redacted), redacted, "once is enough");
    }
}

#[test]
fn a_command_line_keeps_flags_and_names() {
    let words = [
        "find",
        "--url=ws://h/?token=S1",
        "--header",
        "Authorization: Bearer S2",
        "--header=X-Key:S3",
        "--header",
        "S4",
        "--token-secret",
        "S5",
        "--token=S6",
        "--broker-password",
        "S8",
        "--token-file",
        "token.txt",
        "--keyboard",
        "us",
        "--inference",
        "http://u:S7@h",
        "--header-file",
        "headers.txt",
        "--max",
        "5",
    ];
    assert_eq!(
        redacted_command(&words),
        [
            "find",
            "--url=ws://h/?token=[redacted]",
            "--header",
            "Authorization: [redacted]",
            "--header=X-Key: [redacted]",
            "--header",
            "[redacted]",
            "--token-secret",
            "[redacted]",
            "--token=[redacted]",
            "--broker-password",
            "[redacted]",
            "--token-file",
            "token.txt",
            "--keyboard",
            "us",
            "--inference",
            "http://[redacted]@h",
            "--header-file",
            "headers.txt",
            "--max",
            "5",
        ]
    );
}

#[test]
fn a_field_on_the_command_line_keeps_its_name_and_what_is_no_secret() {
    let words = [
        "--param",
        "model=nova-2",
        "--param=auth_id=S1",
        "--param",
        "jwt=S2",
        "--param",
        "callback=https://u:S3@h/done?token=S4&n=1",
        "--param",
        "S5",
        "--param",
        "other=eyJh.eyJz.c2ln",
        "--param",
        "key=",
        "--params",
        "key=no-flag-of-ours",
    ];
    let redacted = redacted_command(&words);
    assert_eq!(
        redacted,
        [
            "--param",
            "model=nova-2",
            "--param=auth_id=[redacted]",
            "--param",
            "jwt=[redacted]",
            "--param",
            "callback=https://[redacted]@h/done?token=[redacted]&n=1",
            "--param",
            "[redacted]",
            "--param",
            "other=[redacted]",
            "--param",
            "key=",
            "--params",
            "key=no-flag-of-ours",
        ]
    );
    let mut secrets = Secrets::default();
    secrets.add_of_field("auth_id", "canary-1");
    secrets.add_of_field("callback", "https://h/?token=canary-2&n=canary");
    secrets.add_of_field("model", "nova-2-general");
    assert_eq!(
        secrets.scrub("canary-1 canary-2 canary nova-2-general"),
        "[redacted] [redacted] canary nova-2-general"
    );
}

#[test]
fn what_a_server_wrote_is_scrubbed() {
    let mut secrets = Secrets::default();
    assert!(secrets.is_empty());
    secrets.add("Bearer canary-1");
    secrets.add("access_token=canary-2; theme=dark");
    secrets.add_of_url("ws://h/?token=canary-3&n=1");
    secrets.add("gzip");
    let text = "GET /?token=canary-3&n=1 canary-1 gzip theme=light Bearer canary-1 canary-2";
    let clean = "GET /?token=[redacted]&n=1 [redacted] gzip theme=light [redacted] [redacted]";
    assert_eq!(secrets.scrub(text), clean);
    let bytes = secrets.scrubbed_bytes(text.as_bytes()).expect("some");
    assert_eq!(String::from_utf8(bytes).unwrap(), clean);
    assert_eq!(secrets.scrubbed_bytes(b"\xFFnothing"), None);
    assert!(!format!("{secrets:?}").contains("canary"));
}

#[test]
fn names_are_told_by_what_is_in_them() {
    for name in [
        "AUTH_TOKEN",
        "apiKey",
        "key",
        "X-Session-Id",
        "DB_PASSWORD",
        "jwt",
        "auth_id",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "format",
        "protocol_version",
        "monkey",
        "keyboard",
        "PORT",
        "MALLOC_ARENA_MAX",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}
