//! Tests RecordIO. Invariants:
//! - however the bytes are split, the decoder returns the same records, in order;
//! - records before a bad length are returned, those after it never are;
//! - nothing longer than the limit is buffered, and no bytes cause a panic.

use proptest::prelude::*;
use protos::recordio::{Decoder, RecordError, encode};

fn drain(decoder: &mut Decoder) -> (Vec<Vec<u8>>, Option<RecordError>) {
    let mut records = Vec::new();
    loop {
        match decoder.pull() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

#[test]
fn the_form_of_a_record() {
    let mut out = Vec::new();
    encode(br#"{"type":"HEARTBEAT"}"#, &mut out);
    encode(b"", &mut out);
    assert_eq!(out, b"20\n{\"type\":\"HEARTBEAT\"}0\n");
}

#[test]
fn bad_lengths_end_the_stream() {
    let cases: [(&[u8], RecordError); 6] = [
        (b"\nabc", RecordError::BadLength(String::new())),
        (b"-1\na", RecordError::BadLength("-".into())),
        (b"1 \na", RecordError::BadLength("1 ".into())),
        (b"{\"type\"", RecordError::BadLength("{".into())),
        (b"101\n", RecordError::TooLong { length: 101, limit: 100 }),
        (b"000000000000000000001\na", RecordError::LongLength(20)),
    ];
    for (bytes, want) in cases {
        let mut decoder = Decoder::new(100);
        decoder.push(b"2\nok");
        decoder.push(bytes);
        decoder.push(b"2\nno");
        assert_eq!(drain(&mut decoder), (vec![b"ok".to_vec()], Some(want.clone())), "{bytes:?}");
        assert_eq!(decoder.pull(), Err(want), "the error stays");
        assert!(!decoder.at_boundary());
    }
    let mut decoder = Decoder::new(100);
    decoder.push(b"18446744073709551616\n");
    assert!(decoder.pull().is_err());
}

#[test]
fn a_stream_may_end_only_between_records() {
    let mut decoder = Decoder::new(100);
    assert!(decoder.at_boundary());
    for (i, b) in b"3\nabc".iter().enumerate() {
        decoder.push(&[*b]);
        assert_eq!(decoder.at_boundary(), i == 4);
    }
}

proptest! {
    #[test]
    fn splits_do_not_matter(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
        cuts in prop::collection::vec(1usize..9, 1..20),
    ) {
        let mut bytes = Vec::new();
        for record in &records {
            encode(record, &mut bytes);
        }
        let mut decoder = Decoder::new(64);
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            decoder.push(now);
            found.extend(drain(&mut decoder).0);
            rest = later;
        }
        prop_assert!(decoder.at_boundary());
        prop_assert_eq!(found, records);
    }

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::new(16);
        decoder.push(&bytes);
        let (records, _) = drain(&mut decoder);
        prop_assert!(records.iter().all(|record| record.len() <= 16));
    }
}
