//! Bytes of one connection on the libprocess port: heads, pids, framings. Cutting them must change nothing.
#![no_main]

use std::sync::Mutex;

use libfuzzer_sys::fuzz_target;
use wire::Limits;
use wire::libprocess::{Delivery, Message, MessageSink, replay};

#[derive(Default)]
struct Inbox(Mutex<Vec<Message>>);

impl MessageSink for Inbox {
    fn deliver(&self, message: Message) -> Delivery {
        self.0.lock().unwrap().push(message);
        Delivery::Accepted
    }
}

fn read(parts: &[&[u8]]) -> Vec<Message> {
    let limits = Limits { head: 4096, body: 4096, ..Limits::default() };
    let inbox = Inbox::default();
    replay(parts, ([127, 0, 0, 1], 1).into(), &limits, &inbox);
    inbox.0.into_inner().unwrap()
}

fuzz_target!(|input: &[u8]| {
    let whole = read(&[input]);
    let cut: Vec<&[u8]> = input.chunks(3).collect();
    assert_eq!(read(&cut), whole);
});
