//! Checks frames of `tepui lab serve`.

use learning::files::NoFiles;
use learning::serve::serve;
use learning::wire::{GREETING, Request, VERSION, answer, read_frame, write_frame};

/// Request that opens two small environments before the bytes of the fuzzer.
const OPEN: &[u8] = br#"{"name": "LoadBalance", "settings": {"servers": 3, "jobs": 5}, "count": 2, "autoreset": true}"#;

/// Checks that every frame gets one answer. Requests whose work is not bounded (open and baseline) are only parsed.
pub fn frames(data: &[u8]) {
    let mut session = Vec::new();
    write_frame(&mut session, 1, &[GREETING, &VERSION.to_le_bytes()]).expect("a vector");
    write_frame(&mut session, 2, &[OPEN]).expect("a vector");
    let (mut rest, mut body, mut frames) = (data, Vec::new(), 2);
    while let Ok(Some(kind)) = read_frame(&mut rest, &mut body) {
        match Request::read(kind, &body) {
            Ok(Request::Open(_) | Request::Baseline(..)) => {}
            _ => {
                write_frame(&mut session, kind, &[&body]).expect("a vector");
                frames += 1;
            }
        }
    }
    let mut output = Vec::new();
    serve(&mut session.as_slice(), &mut output, &NoFiles).expect("whole frames");
    let (mut rest, mut answers) = (output.as_slice(), 0);
    while let Some(kind) = read_frame(&mut rest, &mut body).expect("whole answers") {
        assert!(kind != answer::ERROR || !body.is_empty(), "an error says what is wrong");
        answers += 1;
    }
    assert_eq!(answers, frames);
}
