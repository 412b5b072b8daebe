//! The asker against the toy server.

use super::toy::{Toy, VERSIONS, group, reader, setup, writer};
use super::{Asker, Confirm, GroupDepth, Question, Told, Version};
use crate::rig::Server;

#[test]
fn the_asker_tells_depths_and_settings() {
    for version in VERSIONS {
        let mut toy = Toy::default();
        let mut peer = reader(&mut toy, version, group("g", "a", true), 2);
        reader(&mut toy, version, group("idle", "a", true), 2);
        let mut w = writer(&mut toy, Confirm::Reply);
        for body in [b"1", b"2", b"3"] {
            w.publish(&mut toy, body, 0);
        }
        peer.talk(&mut toy).unwrap();
        let line = toy.connect();
        let mut asker = Asker::new(setup(version));
        let mut out = Vec::new();
        asker.open(&mut out);
        let names = vec!["appendfsync".to_owned(), "appendonly".to_owned()];
        for question in [
            Question::Alive,
            Question::Length,
            Question::Groups,
            Question::Config(names),
            Question::Delete,
        ] {
            asker.ask(&mut out, question);
        }
        toy.received(line, &out);
        let mut told = Vec::new();
        for piece in toy.written(line).chunks(3) {
            asker.received(piece, &mut |one| told.push(one)).unwrap();
        }
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let Told::Groups(groups) = told.remove(2) else {
            panic!("{told:?}");
        };
        assert_eq!(
            groups[0],
            GroupDepth {
                name: "g".to_owned(),
                pending: 2,
                lag: Some(1)
            }
        );
        assert_eq!((groups.len(), &*groups[1].name), (2, "idle"));
        assert_eq!(
            told,
            [
                Told::Alive,
                Told::Length(3),
                Told::Config(vec![
                    pair("appendfsync", "always"),
                    pair("appendonly", "yes")
                ]),
                Told::Deleted,
            ]
        );
    }
}

#[test]
fn an_unknown_lag_and_an_error_are_told() {
    let mut asker = Asker::new(setup(Version::Resp2));
    let mut out = Vec::new();
    for _ in 0..2 {
        asker.ask(&mut out, Question::Groups);
    }
    let mut told = Vec::new();
    let replies = b"*1\r\n*6\r\n$4\r\nname\r\n$1\r\ng\r\n$7\r\npending\r\n:0\r\n$3\r\nlag\r\n$-1\r\n-ERR no such key\r\n";
    asker.received(replies, &mut |one| told.push(one)).unwrap();
    assert_eq!(
        told,
        [
            Told::Groups(vec![GroupDepth {
                name: "g".to_owned(),
                pending: 0,
                lag: None
            }]),
            Told::Failed("ERR no such key".to_owned()),
        ]
    );
}
