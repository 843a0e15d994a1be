//! Replay of the recorded bytes of a connection, without the connection.

use std::net::SocketAddr;

use super::{ConnectionId, Incoming, MessageSink, Origin};
use crate::Limits;
use crate::budget::Budget;

/// Handles the bytes of one connection as a server does, in these parts. Messages go to the sink; the responses are
/// returned.
///
/// It ends where the server would close the connection, or at a request that is not a message.
pub fn replay<S: MessageSink>(parts: &[&[u8]], peer: SocketAddr, limits: &Limits, sink: &S) -> Vec<u8> {
    let origin = Origin { connection: ConnectionId(0), peer, is_libprocess: false, sender_token: None };
    let share = Budget::new(limits.bodies).share(peer.ip());
    let mut incoming = Incoming::new(origin, share, limits.head, limits.body);
    for part in parts {
        if incoming.is_over() {
            break;
        }
        incoming.take(part, sink);
    }
    incoming.into_answers()
}

#[cfg(test)]
mod tests {
    //! Tests the invariants: no bytes cause a panic; it does not matter how the bytes are cut; what is sent is what is
    //! received.

    use std::sync::Mutex;

    use base::Pid;
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::libprocess::{Delivery, Message, encode};

    #[derive(Default)]
    struct Inbox(Mutex<Vec<Message>>);

    impl MessageSink for Inbox {
        fn deliver(&self, message: Message) -> Delivery {
            if message.to == "nobody" {
                return Delivery::NoSuchProcess;
            }
            self.0.lock().unwrap().push(message);
            Delivery::Accepted
        }
    }

    fn limits() -> Limits {
        Limits { head: 2000, body: 2000, ..Limits::default() }
    }

    /// Returns the messages, and the status lines of the responses.
    fn read(parts: &[&[u8]]) -> (Vec<Message>, Vec<String>) {
        let inbox = Inbox::default();
        let answers = replay(parts, "127.0.0.1:1".parse().unwrap(), &limits(), &inbox);
        let answers = String::from_utf8(answers).unwrap();
        let statuses = answers.lines().filter(|line| line.starts_with("HTTP/1.1 ")).map(str::to_owned).collect();
        (inbox.0.into_inner().unwrap(), statuses)
    }

    fn same_however_cut(input: &[u8], size: usize) {
        let whole = read(&[input]);
        let cut: Vec<&[u8]> = input.chunks(size).collect();
        assert_eq!(read(&cut), whole, "cut in parts of {size}");
    }

    fn part() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20),
            Just(b"POST /master/mesos.Message HTTP/1.1\r\n".to_vec()),
            Just(b"POST /%6daster/n HTTP/1.0\r\n".to_vec()),
            Just(b"POST /nobody/n HTTP/1.1\r\n".to_vec()),
            Just(b"GET /state HTTP/1.1\r\n".to_vec()),
            Just(b"Libprocess-From: slave(1)@10.0.0.1:5051\r\n".to_vec()),
            Just(b"User-Agent: libprocess/slave(1)@10.0.0.1:5051\r\n".to_vec()),
            Just(b"User-Agent: curl\r\n".to_vec()),
            Just(b"Connection: close\r\n".to_vec()),
            Just(b"Content-Length: 5\r\n".to_vec()),
            Just(b"Content-Length: 99999999999999999999\r\n".to_vec()),
            Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"hello".to_vec()),
            Just(b"5\r\nhello\r\n".to_vec()),
            Just(b"0\r\n\r\n".to_vec()),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes(parts in prop::collection::vec(part(), 0..30), size in 1usize..40) {
            same_however_cut(&parts.concat(), size);
        }

        #[test]
        fn sent_is_received(
            messages in prop::collection::vec(
                ("[a-z]{1,9}(\\([0-9]\\))?", "[a-zA-Z.]{1,40}", prop::collection::vec(any::<u8>(), 0..300)), 0..6),
            size in 1usize..500,
        ) {
            let from: Pid = "scheduler-x@10.1.2.3:4567".parse().unwrap();
            let mut bytes = BytesMut::new();
            for (to, name, body) in &messages {
                encode::push(&mut bytes, &from, to, name, None, body);
            }
            let parts: Vec<&[u8]> = bytes.chunks(size).collect();
            let (got, _) = read(&parts);
            let sent: Vec<_> = messages.iter().filter(|(to, ..)| to != "nobody").collect();
            prop_assert_eq!(got.len(), sent.len());
            for (got, (to, name, body)) in got.iter().zip(sent) {
                prop_assert_eq!((&got.to, &got.name, &got.body[..], &got.from), (to, name, &body[..], &from));
            }
        }
    }
}
