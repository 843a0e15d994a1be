//! Clients that use up what a master has: connections, memory, time. A cluster works beside each attack, and the master
//! answers and stays small. What is measured is printed.

#![allow(clippy::disallowed_methods, reason = "an attack lasts for some time, and how long answers take is measured")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::client::User;
use crate::tenant::Cluster;

/// Memory that a master may take for an attack.
const MEMORY: u64 = 200 << 20;

/// Number of clients of an attack.
fn clients() -> usize {
    std::env::var("ATTACK_CLIENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// How long an attack lasts.
fn duration() -> Duration {
    let seconds = std::env::var("ATTACK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    Duration::from_secs(seconds)
}

/// Clients that hold connections, and one that acts again and again, until this is dropped.
struct Attack {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attack {
    /// Connections that begin with some bytes each and are held; when one has ended, another takes its place.
    fn hold(address: &str, begin: &[u8]) -> Attack {
        let (address, begin) = (address.to_owned(), begin.to_vec());
        let threads = 8;
        let share = clients() / threads;
        let held: Mutex<Vec<Vec<TcpStream>>> = Mutex::new((0..threads).map(|_| Vec::new()).collect());
        Attack::start(threads, move |number| {
            let mut own = std::mem::take(&mut held.lock().expect("no client panics")[number]);
            own.retain(is_open);
            if own.len() < share {
                own.extend(idle(&address, 1, &begin));
            }
            held.lock().expect("no client panics")[number] = own;
        })
    }

    /// `client` is called again and again by each of the threads.
    fn start(threads: usize, client: impl Fn(usize) + Send + Sync + 'static) -> Attack {
        let (stop, client) = (Arc::new(AtomicBool::new(false)), Arc::new(client));
        let run = |number: usize| {
            let (stop, client) = (stop.clone(), client.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    client(number);
                    // Attackers have another machine than the master.
                    std::thread::park_timeout(Duration::from_millis(2));
                }
            })
        };
        let threads = (0..threads).map(run).collect();
        Attack { stop, threads }
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Whether a connection has not been closed by the master; what it sends is not read.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).is_ok() && !matches!(stream.peek(&mut [0]), Ok(0)) && {
        let ended = stream.peek(&mut [0]).err().is_some_and(|error| error.kind() != ErrorKind::WouldBlock);
        !ended
    }
}

/// Asks for `/health` during the attack; prints how long that took, and the memory that the master has taken.
fn endure(name: &str, cluster: &Cluster, attack: Attack) {
    let before = cluster.master_memory();
    let (begin, mut times, mut most) = (Instant::now(), Vec::new(), 0);
    while begin.elapsed() < duration() || times.len() < 20 {
        let asked = Instant::now();
        let (status, _) = User::None.ask(&cluster.master, "GET", "/health", "");
        assert_eq!(status, 200);
        times.push(asked.elapsed());
        most = most.max(cluster.master_memory());
    }
    drop(attack);
    times.sort_unstable();
    let (median, p99) = (times[times.len() / 2], times[(times.len() - 1) * 99 / 100]);
    let taken = most.saturating_sub(before);
    println!("{name}: /health p50 {median:?}, p99 {p99:?} of {}; memory +{} MiB", times.len(), taken >> 20);
    assert!(taken < MEMORY, "{name}: the master has taken {} MiB", taken >> 20);
    cluster.is_untouched();
}

/// Opens connections that begin with some bytes and then send no more.
fn idle(address: &str, number: usize, begin: &[u8]) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(begin).ok()?;
        Some(stream)
    };
    (0..number).filter_map(open).collect()
}

fn credentials(user: &str) -> &'static str {
    match user {
        "dev" => "Authorization: Basic ZGV2Ong=\r\n",
        _ => "",
    }
}

#[test]
fn heads_that_do_not_end() {
    let cluster = Cluster::start("heads");
    let attack = Attack::hold(&cluster.master, b"GET /state HTTP/1.1\r\nHost: x\r\nX-Slow: ");
    endure("slow heads", &cluster, attack);
}

#[test]
fn bodies_that_do_not_end() {
    let cluster = Cluster::start("bodies");
    let part = "x".repeat(1 << 20);
    for user in ["nobody", "dev"] {
        let head = format!(
            "POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{part}",
            credentials(user),
            60 << 20
        );
        // A client that is refused before its body is read may be cut off while it sends.
        let attack = Attack::hold(&cluster.master, head.as_bytes());
        endure(&format!("half bodies of {user}"), &cluster, attack);
    }
}

#[test]
fn bodies_that_decompress_to_very_much() {
    let cluster = Cluster::start("bombs");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![b' '; 1 << 20];
    (0..250).for_each(|_| packed.write_all(&zeros).expect("memory takes everything"));
    let packed = packed.finish().expect("memory takes everything");
    for user in ["nobody", "dev"] {
        let head = format!(
            "POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\n{}Content-Type: application/json\r\n\
             Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            credentials(user),
            packed.len()
        );
        let (address, request) = (cluster.master.clone(), [head.as_bytes(), &packed].concat());
        let attack = Attack::start(24, move |_| {
            let mut streams = idle(&address, 1, &request);
            streams.iter_mut().for_each(|stream| drop(stream.read(&mut [0; 512])));
        });
        endure(&format!("bombs of {user}"), &cluster, attack);
    }
}

#[test]
fn readers_that_do_not_read() {
    let cluster = Cluster::start("readers");
    let call = r#"{"type": "SUBSCRIBE"}"#;
    let request = format!(
        "POST /api/v1 HTTP/1.1\r\nHost: x\r\n{}Content-Type: application/json\r\nAccept: application/json\r\n\
         Content-Length: {}\r\n\r\n{call}",
        credentials("dev"),
        call.len()
    );
    let attack = Attack::hold(&cluster.master, request.as_bytes());
    endure("subscribers that do not read", &cluster, attack);
    let state = format!("GET /state HTTP/1.1\r\nHost: x\r\n{}\r\n", credentials("dev")).repeat(50);
    let attack = Attack::hold(&cluster.master, state.as_bytes());
    endure("clients that do not read /state", &cluster, attack);
}

#[test]
fn passwords_that_are_guessed() {
    let cluster = Cluster::start("guesses");
    let address = cluster.master.clone();
    // ops:y
    let guess = "GET /state HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b3BzOnk=\r\n\r\n";
    let attack = Attack::start(4, move |_| {
        let Ok(mut stream) = TcpStream::connect(&address) else { return };
        for _ in 0..100 {
            if stream.write_all(guess.as_bytes()).is_err() || stream.read(&mut [0; 1024]).is_err() {
                return;
            }
        }
    });
    let begin = Instant::now();
    let mut refused = false;
    while begin.elapsed() < duration() {
        refused |= User::Powerless.ask(&cluster.master, "GET", "/state", "").0 != 200;
    }
    assert!(!refused, "another user is held up");
    drop(attack);
    let request = "GET /state HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b3BzOnk=\r\nConnection: close\r\n\r\n";
    let answer = crate::support::exchange(&cluster.master, request).expect("the master answers");
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");
}
