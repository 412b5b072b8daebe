use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackFlaw> {
    let mut list = FieldList::new();
    decoder.decode(block, &mut list)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(list
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect())
}

fn fields(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

const C3: [&[(&str, &str)]; 3] = [
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

#[test]
fn single_fields_of_appendix_c_2() {
    for (hex, name, value) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path",
            "/sample/path",
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password",
            "secret",
        ),
        ("82", ":method", "GET"),
    ] {
        assert_eq!(
            decode(&mut Decoder::new(), &bytes(hex)),
            Ok(fields(&[(name, value)]))
        );
    }
}

#[test]
fn requests_without_huffman_of_appendix_c_3() {
    let mut decoder = Decoder::new();
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    for (block, expected) in blocks.iter().zip(C3) {
        assert_eq!(decode(&mut decoder, &bytes(block)), Ok(fields(expected)));
    }
}

/// The same requests with Huffman code: here both directions give the vectors' bytes.
#[test]
fn requests_with_huffman_of_appendix_c_4() {
    let (mut decoder, mut encoder) = (Decoder::new(), Encoder::new());
    let blocks = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for (block, expected) in blocks.iter().zip(C3) {
        assert_eq!(decode(&mut decoder, &bytes(block)), Ok(fields(expected)));
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in expected {
            encoder.field(
                name.as_bytes(),
                value.as_bytes(),
                Indexing::Incremental,
                &mut out,
            );
        }
        assert_eq!(out, bytes(block));
    }
}

const C5: [&[(&str, &str)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        (
            "set-cookie",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ],
];

/// A table of 256 bytes, from which entries are evicted.
#[test]
fn answers_of_appendix_c_5_and_c_6() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new();
        // The vectors assume a table of 256 bytes.
        assert_eq!(decode(&mut decoder, &[0x3F, 0xE1, 0x01]), Ok(vec![]));
        for (block, expected) in blocks.iter().zip(C5) {
            assert_eq!(decode(&mut decoder, &bytes(block)), Ok(fields(expected)));
        }
    }
}

#[test]
fn what_breaks_the_rules_is_refused() {
    for (block, flaw) in [
        (&[0x80][..], HpackFlaw::Index(0)),
        (&[0xBE], HpackFlaw::Index(62)),
        (&[0x7E, 0x00], HpackFlaw::Index(62)),
        (&[0x40], HpackFlaw::Torn),
        (&[0x40, 0x05, b'a'], HpackFlaw::Torn),
        (&[0x00, 0x01, b'a'], HpackFlaw::Torn),
        (&[0x3F, 0xE2, 0x1F], HpackFlaw::TableSize(4097)),
        (&[0x82, 0x20], HpackFlaw::LateTableSize),
        (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], HpackFlaw::Number),
        (&[0x00, 0x81, 0x00, 0x00], HpackFlaw::Huffman),
    ] {
        assert_eq!(decode(&mut Decoder::new(), block), Err(flaw), "{block:x?}");
    }
}

#[test]
fn a_small_block_cannot_become_a_large_list() {
    let mut decoder = Decoder::new();
    let mut block = vec![0x40, 1, b'x', 0x7F, 0xA1, 0x1E];
    block.extend([b'y'; 4000]);
    block.extend([0xBE; 20]);
    assert_eq!(decode(&mut decoder, &block), Err(HpackFlaw::ListTooLarge));
}

#[test]
fn the_encoder_obeys_the_peers_table() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
    let field = |encoder: &mut Encoder, out: &mut Vec<u8>| {
        encoder.begin(out);
        encoder.field(b"x-name", b"a value", Indexing::Incremental, out);
    };
    let mut first = Vec::new();
    field(&mut encoder, &mut first);
    decode(&mut decoder, &first).unwrap();
    // Smaller, then larger again: both must be said, or the entry would seem to be there still.
    encoder.set_peer_limit(0);
    encoder.set_peer_limit(4096);
    let mut out = Vec::new();
    field(&mut encoder, &mut out);
    assert_eq!(out[..4], [0x20, 0x3F, 0xE1, 0x1F]);
    assert_eq!(
        decode(&mut decoder, &out).unwrap(),
        fields(&[("x-name", "a value")])
    );
    // No table at all: always a literal that enters nothing.
    encoder.set_peer_limit(0);
    for _ in 0..2 {
        out.clear();
        field(&mut encoder, &mut out);
        assert_eq!(
            decode(&mut decoder, &out).unwrap(),
            fields(&[("x-name", "a value")])
        );
    }
    assert_eq!(out[0], 0x00);
    // More than we use is not used.
    encoder.set_peer_limit(1 << 20);
    out.clear();
    field(&mut encoder, &mut out);
    assert_eq!(out[..3], [0x3F, 0xE1, 0x1F]);
    assert_eq!(
        decode(&mut decoder, &out).unwrap(),
        fields(&[("x-name", "a value")])
    );
}

fn parts() -> Vec<Part> {
    let field =
        |name: &str, value: &str| Part::Field(name.as_bytes().into(), value.as_bytes().into());
    vec![
        field(":method", "GET"),
        field(":authority", "127.0.0.1:8080"),
        Part::NumberedPath(b"/json/"[..].into()),
        field("x-first", "1"),
        field("x-second", "2"),
    ]
}

#[test]
fn a_block_that_came_before_is_a_few_bytes() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
    let mut block = CachedBlock::default();
    let mut lengths = Vec::new();
    for (i, limit) in [None, None, None, Some(40), None, None]
        .into_iter()
        .enumerate()
    {
        if let Some(limit) = limit {
            encoder.set_peer_limit(limit);
        }
        let mut out = Vec::new();
        block.append(&parts(), i.to_string().as_bytes(), &mut encoder, &mut out);
        lengths.push(out.len());
        let expected = fields(&[
            (":method", "GET"),
            (":authority", "127.0.0.1:8080"),
            (":path", &format!("/json/{i}")),
            ("x-first", "1"),
            ("x-second", "2"),
        ]);
        assert_eq!(decode(&mut decoder, &out), Ok(expected));
    }
    assert!(
        lengths[0] > 30 && lengths[1] <= 12 && lengths[1] == lengths[2],
        "{lengths:?}"
    );
    assert!(lengths[3] > 30 && lengths[4] == lengths[5], "{lengths:?}");
}

proptest! {
    #[test]
    fn fields_come_back(
        blocks in prop::collection::vec(
            (
                prop::collection::vec(("[a-z-]{1,10}", prop_oneof!["[ -~]{0,40}", Just("same".to_owned())], any::<bool>()), 0..8),
                prop::option::weighted(0.2, 0u32..8000),
            ),
            1..10,
        ),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (list, limit) in blocks {
            if let Some(limit) = limit {
                encoder.set_peer_limit(limit);
            }
            let mut out = Vec::new();
            encoder.begin(&mut out);
            for (name, value, indexed) in &list {
                let indexing = if *indexed { Indexing::Incremental } else { Indexing::Without };
                encoder.field(name.as_bytes(), value.as_bytes(), indexing, &mut out);
            }
            let expected: Vec<_> = list.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(decode(&mut decoder, &out), Ok(expected));
        }
    }

    #[test]
    fn garbage_never_panics(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..6)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            let _ = decode(&mut decoder, &block);
        }
    }
}
