//! Checks a group of masters: messages of its protocol, and the journals of its members.

use std::sync::LazyLock;
use std::time::Duration;

use base::Time;
use peers::{Leader, Peer, Secret, Settings, Stored};

use crate::pieces::Pieces;

const ADDRESSES: [&str; 3] = ["a:1", "b:1", "c:1"];
const LEASE: Duration = Duration::from_secs(3);
/// Maximum number of messages that a master sends for one received message, or for one tick.
const MESSAGES_MAX: usize = 64;
/// Magic number at the beginning of a journal.
const MAGIC: &[u8; 8] = b"tepui-p\x01";

fn settings(address: &str, secret: Option<Secret>) -> Settings {
    let peers = ADDRESSES.map(str::to_owned).to_vec();
    Settings { address: address.to_owned(), peers, lease: LEASE, secret, info: b"{}".to_vec(), registry: None }
}

/// Stored state of a group that has a leader with two writes, and the time of that.
static GROUP: LazyLock<(Vec<Stored>, Time)> = LazyLock::new(|| {
    let start = |(disk, address)| Peer::start(settings(address, None), Stored::new(disk), Time::EPOCH);
    let mut peers: Vec<Peer> = (1..).zip(ADDRESSES).map(start).collect();
    let (mut now, mut writes) = (Time::EPOCH, 0);
    for _ in 0..400 {
        now = now + LEASE / 30;
        peers.iter_mut().for_each(|peer| peer.tick(now));
        for _ in 0..8 {
            let sent: Vec<_> = peers.iter_mut().flat_map(|peer| peer.take().messages).collect();
            for (to, bytes) in sent {
                let at = ADDRESSES.iter().position(|address| *address == to).expect("a member");
                peers[at].receive(&bytes, now).expect("a message of a member");
            }
        }
        let leader = peers.iter_mut().find(|peer| peer.leader(now) == Leader::Own);
        if let Some(leader) = leader.filter(|_| writes < 2) {
            writes += 1;
            leader.write(vec![(format!("key{writes}"), Some(vec![7; 9]))], now).expect("the leader writes");
        }
    }
    assert_eq!(writes, 2, "the group has a leader");
    (peers.iter().map(Peer::stored).collect(), now)
});

/// Checks an input whose first byte says what follows: a journal, its records, or messages to a master that is outside
/// of a group, in one, or in one with a secret.
pub fn peers(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    match pieces.byte() {
        b'j' => journal(pieces.rest()),
        b'r' => {
            let mut file = MAGIC.to_vec();
            while !pieces.is_empty() {
                record(&mut file, pieces.bytes());
            }
            journal(&file);
        }
        b'o' => messages(Peer::start(settings("a:1", None), Stored::new(1), Time::EPOCH), Time::EPOCH, pieces),
        b's' => {
            let secret = Secret::new(b"the secret of the group".to_vec());
            let (disks, now) = &*GROUP;
            let mut peer = Peer::start(settings("a:1", Some(secret)), disks[0].clone(), *now);
            while !pieces.is_empty() {
                assert!(peer.receive(pieces.bytes(), *now).is_err(), "a message without its code");
            }
            let output = peer.take();
            assert!(output.messages.is_empty() && output.changes.is_empty() && !output.anew);
        }
        _ => {
            let (disks, now) = &*GROUP;
            messages(Peer::start(settings("a:1", None), disks[0].clone(), *now), *now, pieces);
        }
    }
}

/// Appends a record with its length and checksum.
fn record(file: &mut Vec<u8>, body: &[u8]) {
    let length = u32::try_from(body.len()).expect("at most 64 KiB").to_le_bytes();
    let sum = crc32fast::hash(&[&length[..], body].concat());
    file.extend_from_slice(&length);
    file.extend_from_slice(&sum.to_le_bytes());
    file.extend_from_slice(body);
}

/// Checks that a journal is the same after writing and reading.
fn journal(bytes: &[u8]) {
    let Ok((stored, whole)) = Stored::read(bytes) else { return };
    assert!(whole <= bytes.len());
    let file = stored.file();
    assert_eq!(Stored::read(&file), Ok((stored, file.len())));
}

/// Lets time pass and messages of any bytes arrive: a master sends a bounded number of messages, and the state that it
/// would store can be read again.
fn messages(mut peer: Peer, start: Time, mut pieces: Pieces<'_>) {
    let mut now = start;
    while !pieces.is_empty() {
        match pieces.byte() {
            ticks @ 0..=9 => {
                for _ in 0..=ticks {
                    now = now + LEASE / 10;
                    peer.tick(now);
                }
            }
            _ => drop(peer.receive(pieces.bytes(), now)),
        }
        let output = peer.take();
        assert!(output.messages.len() <= MESSAGES_MAX * 10, "{} messages", output.messages.len());
        if output.anew || !output.changes.is_empty() {
            let stored = peer.stored();
            let file = stored.file();
            assert_eq!(Stored::read(&file), Ok((stored, file.len())));
        }
    }
}
