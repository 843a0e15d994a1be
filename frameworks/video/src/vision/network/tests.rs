//! Tests of networks in files: a model of one operator, which turns the pixels of its input into boxes.

use std::path::PathBuf;

use super::*;

/// Encodes a field of a protobuf message with bytes as its value.
#[cfg(feature = "network")]
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(value.len()).expect("a short value")];
    out.extend(value);
    out
}

/// Encodes a field with a small number as its value.
#[cfg(feature = "network")]
fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// Encodes the ONNX model `Reshape` from an input of this shape to an output of the other.
#[cfg(feature = "network")]
fn reshape(from: &[u8], to: &[u8]) -> Vec<u8> {
    let value = |name: &[u8], shape: &[u8]| {
        let dimensions: Vec<u8> = shape.iter().flat_map(|side| field(1, &number(1, *side))).collect();
        let tensor = [number(1, 1), field(2, &dimensions)].concat();
        [field(1, name), field(2, &field(1, &tensor))].concat()
    };
    let node = [field(1, b"x"), field(1, b"to"), field(2, b"y"), field(4, b"Reshape")].concat();
    // Data of type 7 are 64-bit integers.
    let target = [number(1, to.len() as u8), number(2, 7), field(7, to), field(8, b"to")].concat();
    let graph = [
        field(1, &node),
        field(2, b"g"),
        field(5, &target),
        field(11, &value(b"x", from)),
        field(12, &value(b"y", to)),
    ];
    [number(1, 8), field(8, &number(2, 13)), field(7, &graph.concat())].concat()
}

/// Writes a file for a test and returns its path.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tepui-network-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).expect("writes");
    path
}

#[cfg(feature = "network")]
#[test]
fn a_network_detects_people() {
    let path = file("people.onnx", &reshape(&[1, 3, 4, 4], &[1, 8, 6]));
    let network = Network::open_if_any(Some(&path)).expect("opens").expect("a network");
    std::fs::remove_file(&path).expect("removes");
    let black = Frame::filled(4, 4, crate::frame::Colour::grey(0));
    assert!(network.detect(&black).is_empty());
    // Of a white picture all numbers are 1: the centre, the size, and the scores of each box.
    let white = Frame::filled(4, 4, crate::frame::Colour::grey(255));
    let person = Object { place: Rect { x: 0.125, y: 0.125, w: 0.25, h: 0.25 }, vehicle: Some(false) };
    assert_eq!(network.detect(&white), [person]);
}

#[cfg(feature = "network")]
#[test]
fn models_that_are_no_detectors_are_named_with_the_rule() {
    let cases = [
        ("input.onnx", reshape(&[1, 4, 4, 3], &[1, 8, 6]), "its input has the form [1, 4, 4, 3]"),
        ("output.onnx", reshape(&[1, 3, 4, 4], &[1, 48]), "its output has the form [1, 48]"),
        ("text.onnx", b"no model".to_vec(), "not an ONNX model"),
    ];
    for (name, bytes, rule) in cases {
        let path = file(name, &bytes);
        let error = Network::open(&path).expect_err(name).to_string();
        std::fs::remove_file(&path).expect("removes");
        assert!(error.contains(rule) && error.contains(name), "{error}");
    }
}

#[test]
fn files_that_cannot_be_used() {
    assert!(Network::open_if_any(None).expect("no file").is_none());
    let missing = Network::open(Path::new("/does/not/exist.onnx")).expect_err("missing");
    assert!(matches!(missing, NetworkError::Io { .. }), "{missing}");
    if cfg!(not(feature = "network")) {
        let path = file("any.onnx", b"");
        let error = Network::open(&path).expect_err("no runtime");
        std::fs::remove_file(&path).expect("removes");
        assert!(matches!(error, NetworkError::Absent), "{error}");
    }
}
