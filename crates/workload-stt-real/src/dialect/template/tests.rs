use super::super::{Encoding, Key, KeyPlace, ReadyAt};
use super::*;
use plimsoll_core::secret::Secret;

const SMALL: &str = r#"
path = "/stt/{param:room}"
ready = "message"
spans = "turn"

[query]
lang = "{language}"

[headers]
X-Key = "Key {key}"

[audio]
encoding = "f32le"
rate-hz = 24000
message = '{"type":"audio","data":"{audio}"}'

[send]
opening = ['{"type":"start","id":"s{session}","model":"{model}","empty":{}}']
end = '{"type":"stop","count":{last_seq}}'

[[hear]]
when = { "type" = "ready" }
events = ["ready"]

[[hear]]
when = { "type" = ["text", "words"], "list[1].done" = true }
events = ["final", "drained"]
text = "list[1].text"
"#;

fn small() -> String {
    // A path has no placeholders; this one is not for a server.
    SMALL
        .replace("/{param:room}", "")
        .replace("rate-hz", "rate_hz")
}

fn options() -> Options {
    Options {
        model: Some(r#"m "1""#.to_owned()),
        key: Some(Key {
            value: Secret::new("canary"),
            place: KeyPlace::Header,
        }),
        ..Options::default()
    }
}

fn events(session: &mut dyn Transcription, incoming: Incoming<'_>) -> Vec<Value> {
    let mut events = Vec::new();
    session.parse(incoming, 5_000_000, &mut |event| {
        events.push(serde_json::json!(event));
    });
    events
}

#[test]
fn placeholders_are_filled_in_and_audio_is_base64() {
    let template = Template::parse(&small(), &options()).unwrap();
    assert!(!format!("{template:?}").contains("Key canary"));
    assert_eq!(template.connect().target().expose(), "/stt?lang=en");
    assert_eq!(
        template.connect().headers,
        [Field::new("X-Key", "Key canary")]
    );
    assert_eq!(
        template.opening(7),
        [Message::text(
            r#"{"type":"start","id":"s7","model":"m \"1\"","empty":{}}"#
        )]
    );
    assert_eq!(template.audio().encoding, Encoding::F32le);
    let audio = Message::text(r#"{"type":"audio","data":"AP8Q"}"#);
    assert_eq!(template.pack(&[0, 255, 16]), audio);
    let mut session = template.transcription();
    let end = Message::text(r#"{"type":"stop","count":12}"#);
    assert_eq!(session.end(12, 0), Some(end));
    assert_eq!(session.flush(0), None);
    assert_eq!(template.facts().ready_at, ReadyAt::Message);
    assert_eq!(template.facts().cursor, Cursor::Turn);
}

#[test]
fn the_first_rule_that_holds_applies() {
    let template = Template::parse(&small(), &options()).unwrap();
    let session = &mut *template.transcription();
    let mut names = |text| -> Vec<String> {
        let events = events(session, Incoming::Text(text));
        let name = |event: Value| match event["fault"].as_str() {
            Some(fault) => format!("{fault} {}", event["field"]),
            None => event["event"].as_str().unwrap().to_owned(),
        };
        events.into_iter().map(name).collect()
    };
    assert_eq!(names(r#"{"type":"ready"}"#), ["ready"]);
    assert_eq!(names(r#"{"type":"words","list":[1]}"#), ["unknown"]);
    assert_eq!(
        names(r#"{"type":"words","list":[1,{"done":true,"text":"w"}]}"#),
        ["final", "drained"]
    );
    assert_eq!(
        names(r#"{"type":"text","list":[1,{"done":true}]}"#),
        [r#"missing "list[1].text""#]
    );
    assert_eq!(names("[]"), ["json null"]);
    assert_eq!(names("{"), ["json null"]);
}

#[test]
fn what_is_wrong_with_a_file_is_one_line() {
    let wrong = |from: &str, to: &str, options: &Options| {
        let text = small().replace(from, to);
        assert_ne!(text, small(), "{from}");
        let error = Template::parse(&text, options).unwrap_err().to_string();
        assert!(
            !error.contains('\n') && !error.contains("canary"),
            "{error}"
        );
        error
    };
    let options = options();
    for (from, to, part) in [
        ("path =", "paths =", "line 2: unknown field `paths`"),
        ("[query]", "[query", "line 6"),
        ("\"turn\"", "\"times\"", "has no time; give to"),
        ("text = \"list[1].text\"", "", "has no text; give text"),
        ("list[1].text", "list[1.text", "is no path"),
        ("list[1].text", "list[1]text", "is no path"),
        ("list[1].text", "list..text", "is no path"),
        ("{audio}", "{sound}", "{sound} is no placeholder"),
        ("{audio}", "audio", "lacks {audio}"),
        ("{language}", "{param:lang}", "--param lang=VALUE"),
        (
            "events = [\"ready\"]",
            "events = [\"interim\"]",
            "has no text",
        ),
        (
            "when = { \"type\" = \"ready\" }\nevents = [\"ready\"]",
            "events = [\"ignored\"]",
            "no rule has the event ready",
        ),
        ("[\"ready\"]", "[]", "has no events"),
        (
            "[\"ready\"]",
            "[\"received\"]\nto = \"seq_no\"",
            "has no unit",
        ),
    ] {
        let error = wrong(from, to, &options);
        assert!(error.contains(part), "{error}");
    }
    let no_model = Options {
        model: None,
        ..options.clone()
    };
    let error = wrong("empty", "full", &no_model);
    assert!(error.contains("give --model"), "{error}");
}
