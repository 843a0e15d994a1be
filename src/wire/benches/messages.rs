//! Measures messages and calls per second over loopback sockets, and the CPU time of each in this process.
//!
//! Both ends of every exchange run in this process, so the time of a message includes its sending, its receiving and
//! the response. Each is measured without TLS and with it. Run: `cargo bench -p wire`.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::Pid;
use bytes::Bytes;
use nix::sys::resource::{UsageWho, getrusage};
use tokio::sync::Notify;
use wire::client::Client;
use wire::http::{Handler, JSON, Request, Response, Running, Server};
use wire::libprocess::{Delivery, Message, MessageSink, Network};
use wire::tls::{Role, Settings, Tls};
use wire::{Connections, Limits};

/// A sink that counts messages, and reports when enough have arrived.
#[derive(Default)]
struct Counter {
    seen: AtomicUsize,
    wanted: AtomicUsize,
    reached: Notify,
}

impl Counter {
    async fn wait(&self, wanted: usize) {
        self.wanted.store(wanted, Ordering::SeqCst);
        while self.seen.load(Ordering::SeqCst) < wanted {
            let _ = tokio::time::timeout(Duration::from_millis(100), self.reached.notified()).await;
        }
    }
}

impl MessageSink for Counter {
    fn deliver(&self, message: Message) -> Delivery {
        std::hint::black_box(&message);
        if self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.wanted.load(Ordering::SeqCst) {
            self.reached.notify_one();
        }
        Delivery::Accepted
    }
}

struct Taker;

impl Handler for Taker {
    async fn handle(&self, request: Request) -> Response {
        std::hint::black_box(request.body.full());
        Response::accepted()
    }
}

/// Returns a TLS configuration with a certificate that this run creates, for servers and for clients.
fn make_tls() -> Tls {
    let directory = std::env::temp_dir().join(format!("wire-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("all.pem");
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    std::fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem()).expect("written");
    let file = Some(file);
    let settings = Settings { enabled: true, cert_file: file.clone(), key_file: file, ..Settings::default() };
    let tls = Tls::load(settings, Role::Server).expect("usable files");
    std::fs::remove_dir_all(&directory).expect("removed");
    tls
}

fn network(limits: Limits, tls: Option<&Tls>) -> Network {
    let connections = Connections::new(limits.connections, "this is a benchmark");
    Network::with_connections(limits, connections, tls.cloned(), |_| {})
}

fn serve(tls: Option<&Tls>) -> (Running, Arc<Counter>) {
    let counter = Arc::new(Counter::default());
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), Limits::default()).expect("a port");
    (server.with_tls(tls.cloned()).serve(Arc::new(Taker), counter.clone()), counter)
}

fn pid(id: &str, running: &Running) -> Pid {
    format!("{id}@{}", running.address()).parse().expect("a pid")
}

/// Returns the user and system time of this process so far.
fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the system tells");
    let of = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs()) + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    of(usage.user_time()) + of(usage.system_time())
}

/// Returns the resident memory in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

struct Stopwatch(Instant, Duration);

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Instant::now(), cpu())
    }

    fn print(&self, what: &str, count: usize) {
        let (wall, cpu) = (self.0.elapsed().as_secs_f64(), (cpu() - self.1).as_secs_f64());
        println!("{what:<64} {:>9.0} /s {:>8.2} us CPU each", count as f64 / wall, cpu * 1e6 / count as f64);
    }
}

/// Sends messages to one linked peer as fast as it accepts them: batched writes and reads.
async fn flood(count: usize, body: usize, tls: Option<&Tls>) {
    let (running, counter) = serve(tls);
    let network = network(Limits { peer: 1 << 30, ..Limits::default() }, tls);
    let to = pid("master", &running);
    network.link(&to);
    let body = vec![1; body];
    let watch = Stopwatch::start();
    for sent in 0..count {
        network.send(&to, &to, "mesos.internal.StatusUpdateMessage", &body);
        if sent % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    counter.wait(count).await;
    watch.print(&format!("messages of {} B, one peer, back to back: sent+received", body.len()), count);
}

/// Sends one message to each of many peers per round, so that nothing can be batched.
async fn rounds(peers: usize, rounds: usize, tls: Option<&Tls>) {
    let (running, counter) = serve(tls);
    let before = resident();
    // Each network has one link to the server, as each agent has to its master.
    let networks: Vec<_> = (0..peers).map(|_| network(Limits::default(), tls)).collect();
    let to = pid("master", &running);
    let watch = Stopwatch::start();
    for (number, network) in networks.iter().enumerate() {
        network.link(&to);
        network.send(&to, &to, "mesos.internal.RegisterSlaveMessage", &[1; 500]);
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    counter.wait(peers).await;
    watch.print(&format!("{peers} peers link and send: connect+accept+sent+received"), peers);
    let per = resident().saturating_sub(before) * 1024 / peers;
    // Later runs use the memory that the first one left.
    if per > 0 {
        println!("{:<64} {per:>9} B", format!("{peers} idle connections, both ends: memory of a connection"));
    }
    let watch = Stopwatch::start();
    for round in 1..=rounds {
        for network in &networks {
            network.send(&to, &to, "mesos.internal.PingSlaveMessage", &[1; 2]);
        }
        counter.wait(peers + round * peers).await;
    }
    watch.print(&format!("{peers} peers, a message each per round: sent+received"), peers * rounds);
    // Closing thousands of sockets must not count in the next result.
    drop(networks);
    running.stop().await;
}

/// Sends calls of one client, one at a time.
async fn calls(count: usize, tls: Option<&Tls>) {
    let (running, _) = serve(tls);
    let client = Client::new(&running.address().to_string()).expect("an address");
    let mut client = match tls {
        Some(tls) => client.with_tls(tls.clone()),
        None => client,
    };
    let body = Bytes::from_static(&[b'x'; 300]);
    let watch = Stopwatch::start();
    for _ in 0..count {
        client.post("/api/v1/scheduler", JSON, JSON, &[], body.clone()).await.expect("an answer");
    }
    watch.print("HTTP calls of 300 B, one client in turn: client+server", count);
}

/// Sends many requests over one connection without waiting, written and read in bulk: the server's share of the cost.
async fn pipelined(count: usize) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (running, _) = serve(None);
    let mut stream = tokio::net::TcpStream::connect(running.address()).await.expect("a connection");
    let (mut reading, mut writing) = stream.split();
    let mut batch = Vec::new();
    for _ in 0..100 {
        batch.extend_from_slice(
            b"POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 300\r\n\r\n",
        );
        batch.extend_from_slice(&[b'x'; 300]);
    }
    let watch = Stopwatch::start();
    let write = async {
        for _ in 0..count / 100 {
            writing.write_all(&batch).await.expect("written");
        }
    };
    let read = async {
        let (mut seen, mut part) = (0, vec![0; 64 << 10]);
        while seen < count {
            let length = reading.read(&mut part).await.expect("answers");
            assert!(length > 0, "closed");
            seen += part[..length].iter().filter(|byte| **byte == b'H').count();
        }
    };
    tokio::join!(write, read);
    watch.print("HTTP calls of 300 B, pipelined: mostly server", count);
}

fn main() {
    wire::raise_open_files_limit().expect("a limit");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        tokio::spawn(async {
            let tls = make_tls();
            for tls in [None, Some(&tls)] {
                println!("{}", if tls.is_some() { "\nwith TLS" } else { "without TLS" });
                // This run comes first, so that the memory is not that of an earlier run.
                rounds(9000, 10, tls).await;
                rounds(1000, 100, tls).await;
                flood(1_000_000, 200, tls).await;
                flood(50_000, 20_000, tls).await;
                calls(50_000, tls).await;
            }
            pipelined(200_000).await;
        })
        .await
        .expect("a run");
    });
}
