//! Checks messages of Mesos: JSON in both dialects, protobuf, RecordIO.

use protos::json::{Dialect, FromJson, JsonError, ToJson, Value};
use protos::mesos::{internal, master, scheduler};
use protos::recordio::{Decoder, encode};

/// Checks JSON: the parsers agree on which input is JSON, and a message that was read, written and read again is the
/// same.
pub fn json(data: &[u8]) {
    let general = Value::parse(data);
    if let Ok(value) = &general {
        assert_eq!(Value::parse(value.to_string().as_bytes()).as_ref(), Ok(value));
    }
    for dialect in [Dialect::V0, Dialect::V1] {
        message::<scheduler::Call>(data, dialect, &general);
        message::<master::Call>(data, dialect, &general);
    }
}

fn message<M: FromJson + ToJson>(data: &[u8], dialect: Dialect, general: &Result<Value, JsonError>) {
    match M::from_json(data, dialect) {
        Ok(message) => {
            assert!(general.is_ok());
            let json = message.json(dialect);
            let again = M::from_json(&json, dialect).expect("what was written is read");
            assert_eq!(again.json(dialect), json);
        }
        Err(error @ JsonError::Syntax(_)) => assert_eq!(general.as_ref().err(), Some(&error)),
        Err(_) => assert!(general.is_ok()),
    }
}

/// Checks RecordIO: the records are the same whether the bytes arrive at once or one by one, and none exceeds the
/// limit. The executors' parser agrees with the other one.
pub fn recordio(data: &[u8]) {
    const LIMIT: usize = 1000;
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = Decoder::new(LIMIT);
        let mut out = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Ok(Some(record)) = decoder.pull() {
                assert!(record.len() <= LIMIT);
                encode(&record, &mut out);
            }
        }
        (out, decoder.pull().is_err(), decoder.at_boundary())
    };
    let whole = read(&mut std::iter::once(data));
    assert_eq!(read(&mut data.chunks(1)), whole);
    let of_executor = |size: usize| {
        let (mut records, mut out) = (executor::Records::new(), Vec::new());
        let fed = data.chunks(size).try_for_each(|piece| records.feed(piece, &mut |record| encode(record, &mut out)));
        (out, fed.is_err())
    };
    let of_executor_whole = of_executor(usize::MAX);
    assert_eq!(of_executor(1), of_executor_whole);
    if !whole.1 {
        assert_eq!(of_executor_whole, (whole.0, false));
    }
}

/// Checks protobuf: a message is either rejected or complete, and complete messages are the same after encoding and
/// decoding.
pub fn binary(data: &[u8]) {
    decoded::<scheduler::Call>(data);
    decoded::<internal::ReregisterSlaveMessage>(data);
    let _ = protos::evolve::scheduler_call(data);
    let _ = protos::evolve::master_call(data);
}

fn decoded<M: protos::Described>(data: &[u8]) {
    if let Ok(message) = protos::decode::<M>(data) {
        assert!(protos::missing_fields::<M>(data).is_empty());
        let bytes = message.encode_to_vec();
        let again: M = protos::decode(&bytes).expect("what was encoded is whole");
        assert_eq!(again.encode_to_vec(), bytes);
    }
}
