//! Encoder of messages as HTTP requests, byte for byte as libprocess writes them (docs/mesos/libprocess.md).

use std::io::Write;

use base::Pid;
use bytes::{BufMut, BytesMut};

use super::SenderToken;

/// Appends a message, with the token `sender_token` if there is one.
pub(super) fn push(
    out: &mut BytesMut,
    from: &Pid,
    to: &str,
    name: &str,
    sender_token: Option<&SenderToken>,
    body: &[u8],
) {
    out.reserve(250 + to.len() + name.len() + 2 * from.id().len() + body.len());
    let mut writer = out.writer();
    // Writing into memory does not fail.
    let _ = write!(
        writer,
        "POST /{to}/{name} HTTP/1.1\r\nUser-Agent: libprocess/{from}\r\nLibprocess-From: {from}\r\n\
         Connection: Keep-Alive\r\nHost: \r\n"
    );
    if let Some(sender_token) = sender_token {
        let _ = write!(out.writer(), "{}: {}\r\n", SenderToken::HEADER, sender_token.digits());
    }
    if body.is_empty() {
        out.extend_from_slice(b"\r\n");
        return;
    }
    let _ = write!(out.writer(), "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n0\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_bytes() {
        let from: Pid = "master@10.0.0.1:5050".parse().unwrap();
        let mut out = BytesMut::new();
        push(&mut out, &from, "slave(1)", "mesos.internal.PingSlaveMessage", None, b"\x08\x01");
        assert_eq!(
            &out[..],
            b"POST /slave(1)/mesos.internal.PingSlaveMessage HTTP/1.1\r\n\
              User-Agent: libprocess/master@10.0.0.1:5050\r\n\
              Libprocess-From: master@10.0.0.1:5050\r\n\
              Connection: Keep-Alive\r\n\
              Host: \r\n\
              Transfer-Encoding: chunked\r\n\
              \r\n\
              2\r\n\x08\x01\r\n0\r\n\r\n"
                .as_slice()
        );
        out.clear();
        let sender_token = SenderToken::new([1; 16]);
        push(&mut out, &from, "slave-observer(1)", "mesos.internal.PongSlaveMessage", Some(&sender_token), b"");
        let end = "Host: \r\nTepui-Session: 01010101010101010101010101010101\r\n\r\n";
        assert!(out.ends_with(end.as_bytes()), "{out:?}");
    }
}
