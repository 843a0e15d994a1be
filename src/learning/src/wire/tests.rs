//! Tests of sessions over the frames, as a client has them, and of bytes that are not frames.

use proptest::prelude::*;

use super::*;
use crate::files::NoFiles;
use crate::serve::serve;

fn frame(kind: u8, pieces: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, kind, pieces).unwrap();
    bytes
}

fn hello() -> Vec<u8> {
    frame(1, &[GREETING, &VERSION.to_le_bytes()])
}

/// Runs a session. Returns the kinds and bodies of the answers.
fn answers(session: &[Vec<u8>]) -> Vec<(u8, Vec<u8>)> {
    let (input, mut output) = (session.concat(), Vec::new());
    serve(&mut input.as_slice(), &mut output, &NoFiles).unwrap();
    let (mut rest, mut all, mut body) = (output.as_slice(), Vec::new(), Vec::new());
    while let Some(kind) = read_frame(&mut rest, &mut body).unwrap() {
        all.push((kind, body.clone()));
    }
    all
}

fn error(answer: &(u8, Vec<u8>)) -> String {
    assert_eq!(answer.0, answer::ERROR);
    String::from_utf8(answer.1.clone()).unwrap()
}

const OPEN: &[u8] = br#"{"name": "LoadBalance", "settings": {"servers": 2, "jobs": 3}, "count": 2, "autoreset": true}"#;

#[test]
fn a_session() {
    let handle = 0_u32.to_le_bytes();
    let reset = [1, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    let all = answers(&[
        hello(),
        frame(2, &[OPEN]),
        frame(3, &[&handle, &reset]),
        frame(4, &[&handle, &[0, 0, 0, 0, 1, 0, 0, 0]]),
        frame(5, &[&handle, br#"{"policy": "soonest-end", "seeds": [1, 2, 3]}"#]),
        frame(6, &[&handle]),
        frame(6, &[&handle]),
    ]);
    let kinds: Vec<u8> = all.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [1, 2, 3, 3, 5, 6, 255]);
    let spaces: serde_json::Value = serde_json::from_slice(&all[1].1[4..]).unwrap();
    assert_eq!(spaces["action"]["choices"], serde_json::json!([2]));
    assert_eq!(spaces["observation"][0]["shape"], serde_json::json!([2]));
    // Work and speed of two servers, the job's size: 20 bytes; reward, seed, 3 measurements; two bytes.
    let each = 20 + 8 + 8 + 3 * 8 + 2;
    assert_eq!((all[2].1.len(), all[3].1.len(), all[4].1.len()), (2 * each, 2 * each, 3 * 4 * 8));
    assert_eq!(all[3].1[16..][..8], 7_u64.to_le_bytes());
    assert_eq!(error(&all[6]), "invalid frame: handle 0 must be open");
}

#[test]
fn what_is_refused_names_the_item_and_the_rule() {
    let first = answers(&[frame(2, &[OPEN])]);
    assert_eq!(error(&first[0]), "invalid frame: kind must be hello in the first frame");
    let all = answers(&[
        frame(1, &[b"HELLO"]),
        frame(1, &[GREETING, &9_u16.to_le_bytes()]),
        hello(),
        frame(9, &[]),
        frame(3, &[&[0, 0]]),
        frame(3, &[&[0; 4], &[0; 8]]),
        frame(3, &[&[0; 4], &[3, 0, 0, 0, 0, 0, 0, 0, 0]]),
        frame(2, &[b"{}"]),
        frame(6, &[&[0; 5]]),
    ]);
    let errors: Vec<String> = all.iter().filter(|(kind, _)| *kind == answer::ERROR).map(error).collect();
    let expected = [
        "invalid frame: hello must be TEPUI-LAB and a version",
        "invalid frame: version 9 must be 1",
        "invalid frame: kind 9 must be 1 to 6",
        "invalid frame: handle must have 4 bytes",
        "invalid frame: seeds must have 9 bytes for each environment",
        "invalid frame: way 3 must be 0, 1 or 2",
        "invalid frame: open must be as described: missing field `name`",
        "invalid frame: close must have a handle only",
    ];
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
    }
    assert_eq!(errors.len(), expected.len());
}

#[test]
fn a_length_that_breaks_its_rule_ends_the_session_with_an_answer() {
    for length in [0, MOST_FRAME as u32 + 1] {
        let (input, mut output) = ([&length.to_le_bytes()[..], &[1]].concat(), Vec::new());
        assert!(serve(&mut input.as_slice(), &mut output, &NoFiles).is_err());
        assert!(String::from_utf8_lossy(&output).contains("must be 1 to 67108864"));
    }
}

proptest! {
    #[test]
    fn any_bytes_get_answers(kinds in prop::collection::vec((1..8_u8, prop::collection::vec(any::<u8>(), 0..40)), 0..8)) {
        let mut session = vec![hello(), frame(2, &[OPEN])];
        session.extend(kinds.iter().map(|(kind, body)| frame(*kind, &[body])));
        prop_assert_eq!(answers(&session).len(), session.len());
    }
}
