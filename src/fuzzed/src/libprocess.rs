//! Checks the bytes of a connection on the libprocess port.

use std::sync::Mutex;

use wire::Limits;
use wire::libprocess::{Delivery, Message, MessageSink, replay};

#[derive(Default)]
struct Inbox(Mutex<Vec<Message>>);

impl MessageSink for Inbox {
    fn deliver(&self, message: Message) -> Delivery {
        assert!(message.body.len() <= LIMIT);
        self.0.lock().expect("one thread").push(message);
        Delivery::Accepted
    }
}

const LIMIT: usize = 4096;

fn read(parts: &[&[u8]]) -> Vec<Message> {
    let limits = Limits { head: LIMIT, body: LIMIT, ..Limits::default() };
    let inbox = Inbox::default();
    replay(parts, ([127, 0, 0, 1], 1).into(), &limits, &inbox);
    inbox.0.into_inner().expect("one thread")
}

/// Checks heads, pids and framings: the messages do not depend on how the bytes are split.
pub fn libprocess(data: &[u8]) {
    let whole = read(&[data]);
    for size in [1, 3, 7] {
        let cut: Vec<&[u8]> = data.chunks(size).collect();
        assert_eq!(read(&cut), whole, "cut in parts of {size}");
    }
}
