//! Compares policies of a camera's uplink: how many crossings a query finds over links of limited bandwidth, and how
//! late. A generated street is played by one uplink; each policy has a reader and a link of its own. A relay simulates
//! the link: it reads no faster than the link carries, with a small receive buffer in the kernel.
//!
//! `-- --seconds N` sets the time on each link, `-- --shrink N` the factor by which the query divides sides.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use video::abr::made_traces;
use video::bitrate::{Markov, Trace};
use video::local::{LocalOptions, LocalReport, run};
use video::media::Source;
use video::pipeline::{Config, Finding, QueryKind, score, true_findings};
use video::scene::{SceneOptions, Truth, generate};
use video::scope::Scope;
use video::uplink::{Uplink, UplinkOptions};
use video::vision::Detector;

const POLICIES: [&str; 9] = ["linear", "predictive", "rate", "rate&most=3", "buffer", "0", "1", "3", "5"];
const KIND: QueryKind = QueryKind::Cars;
/// Time at the beginning that is not counted, in seconds: the background is learnt.
const WARM_UP: f64 = 10.0;
/// Size of the relay's receive buffer in the kernel, and number of bytes that it reads at once.
const RECEIVE_BUFFER: u32 = 16 << 10;
const PIECE: usize = 2 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, default: u32| {
        let given = arguments.iter().position(|a| a == flag).and_then(|at| arguments.get(at + 1));
        given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{flag}: a whole number")))
    };
    let (seconds, shrink) = (f64::from(number("--seconds", 120)), number("--shrink", 2));
    let directory = std::env::temp_dir().join(format!("tepui-bench-uplink-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for the video");
    let path = directory.join("street.mp4");
    let scene = SceneOptions { seconds: 60.0, seed: 11, ..SceneOptions::default() };
    let (truth, _) = generate(&scene, &path).expect("the scene");
    println!("cars on a street of {}x{} pixels, {seconds} s on each link, rungs 0 to 5", scene.width, scene.height);
    println!(
        "{:<12}{:<13}{:>7}{:>8}{:>8}{:>10}{:>8}",
        "link", "policy", "F1", "found", "true", "pictures/s", "late, s"
    );
    for megabits in [0.1, 0.3, 1.0, 3.0] {
        let trace = Arc::new(Trace::new(&[(1.0, megabits)]).expect("a trace"));
        measure(&format!("{megabits} Mbit/s"), &trace, (&path, &truth), seconds, shrink);
    }
    let made = made_traces(Markov::default(), 1, 3).expect("a trace").remove(0);
    measure("0.2 to 4.3", &made, (&path, &truth), seconds, shrink);
    std::fs::remove_dir_all(&directory).expect("the directory is there");
}

/// Result of one reader.
struct Reading {
    report: LocalReport,
    /// Findings, with the seconds of the uplink's time at which they were reported.
    findings: Vec<(f64, Finding)>,
    /// Time of the uplink at which the reader began, in seconds.
    began: f64,
}

/// Measures all policies at once on links of this kind.
fn measure(name: &str, trace: &Arc<Trace>, (path, truth): (&Path, &Truth), seconds: f64, shrink: u32) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = UplinkOptions { source: Source::File(path.to_owned()), repeat: true, listen, credential: None };
    #[expect(clippy::disallowed_methods, reason = "a video is played by the clock on the wall")]
    let start = Instant::now();
    let uplink = runtime.block_on(Uplink::start(options)).expect("an uplink");
    let readers = POLICIES.map(|policy| {
        let relay = runtime.block_on(relay(uplink.address(), trace.clone()));
        let source: Source = format!("uplink://{relay}/?policy={policy}").parse().expect("an address");
        std::thread::spawn(move || read(source, start, seconds, shrink))
    });
    for (policy, reader) in POLICIES.iter().zip(readers) {
        let reading = reader.join().expect("a reader");
        let wanted = true_findings(truth, KIND, reading.began + WARM_UP, reading.began + seconds);
        let found: Vec<Finding> = reading.findings.iter().map(|(_, finding)| finding.clone()).collect();
        let (offset, score) = best_offset(&found, &wanted, reading.began);
        let mut late: Vec<f64> = reading.findings.iter().map(|(at, finding)| at - finding.at - offset).collect();
        late.sort_by(f64::total_cmp);
        println!(
            "{name:<12}{policy:<13}{:>7.3}{:>8}{:>8}{:>10.1}{:>8.2}",
            score.f1(),
            score.right + score.wrong,
            wanted.len(),
            reading.report.frames as f64 / reading.report.seconds,
            late.get(late.len() / 2).copied().unwrap_or_default(),
        );
    }
}

/// Runs the query on an uplink.
fn read(source: Source, start: Instant, seconds: f64, shrink: u32) -> Reading {
    let options = LocalOptions {
        video: source,
        seconds: Some(seconds),
        reconnect: 0.0,
        kind: KIND,
        scope: Scope::default(),
        config: Config { every: 1, shrink, window: 3, detector: Detector::Colour },
        model: None,
        results: None,
        annotated: None,
        sheet: None,
        truth: None,
    };
    let (mut findings, began) = (Vec::new(), start.elapsed().as_secs_f64());
    let report = run(&options, &mut |finding| findings.push((start.elapsed().as_secs_f64(), finding.clone())))
        .expect("the uplink is read");
    findings.retain(|(_, finding)| finding.at >= WARM_UP);
    Reading { report, findings, began }
}

/// Returns the difference between the times of the uplink and those of the findings that fits best, and the score with
/// it. Capture times are known up to the delay of the picture that was delayed least.
fn best_offset(found: &[Finding], wanted: &[Finding], began: f64) -> (f64, video::pipeline::Score) {
    let with = |offset: f64| {
        let moved: Vec<Finding> = found.iter().map(|f| Finding { at: f.at + offset, ..f.clone() }).collect();
        (offset, score(KIND, &moved, wanted))
    };
    let all = (0..=30).map(|step| with(began - f64::from(step) * 0.1));
    all.max_by(|a, b| a.1.f1().total_cmp(&b.1.f1()).then(a.0.total_cmp(&b.0))).expect("there are offsets")
}

/// Starts a relay to an uplink over a link of limited bandwidth. Returns its address.
async fn relay(uplink: SocketAddr, trace: Arc<Trace>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((reader, _)) = listener.accept().await {
            let socket = TcpSocket::new_v4().expect("a socket");
            socket.set_recv_buffer_size(RECEIVE_BUFFER).expect("a small buffer");
            let sender = socket.connect(uplink).await.expect("the uplink listens");
            // The relay ends with its connections.
            tokio::spawn(carry(sender, reader, trace.clone()));
        }
    });
    address
}

/// Copies the request at once, and the response at the bandwidth of the link.
async fn carry(mut sender: TcpStream, mut reader: TcpStream, trace: Arc<Trace>) -> std::io::Result<()> {
    let mut request = [0; 1024];
    let length = reader.read(&mut request).await?;
    sender.write_all(&request[..length]).await?;
    let (start, mut through, mut piece) = (tokio::time::Instant::now(), 0.0_f64, [0; PIECE]);
    loop {
        let length = sender.read(&mut piece).await?;
        if length == 0 {
            return Ok(());
        }
        through = through.max(start.elapsed().as_secs_f64());
        through += trace.transfer(through, length as f64, 1.0);
        tokio::time::sleep_until(start + Duration::from_secs_f64(through)).await;
        reader.write_all(&piece[..length]).await?;
    }
}
