//! Measures the cost of the framework of jobs of stages compared with a plain scheduler, and the gain of sizes that are
//! found at run time (Libra) on real files.
//!
//! - `tasks`: 10,000 times `true` in one stage on one agent, alternately with the same tasks of the scheduler of
//!   `benches/tasks.rs`; with the state of the framework in memory and on disk. The framework requests checkpoints, so
//!   that its tasks survive a restart of the agent; the other scheduler runs once without and once with them.
//! - `sizes`: the words of generated text files, counted by two slots: fixed sizes of parts, one file a task, one part
//!   a slot, and `size = "auto"` without and with what an earlier run has learned.
//!
//! Run with `cargo bench --bench stages`; `--quick` does less, `--only=tasks` or `--only=sizes` one of both,
//! `--tasks=N`, `--rounds=N`, `--megabytes=N` and `--files=N` set other numbers.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::daemon::{Daemon, binary};
use support::report::{Report, rate};
use support::scheduler::{CHECKPOINTING, Encoding, Scheduler};
use support::{number, option, quantile, quick, wait_for};

fn main() -> Result<()> {
    let only = option("only");
    let runs = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if runs("tasks") {
        tasks()?;
    }
    if runs("sizes") {
        sizes()?;
    }
    Ok(())
}

/// A directory that is deleted when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("tepui-stages-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process of `tepui framework dag`, which is interrupted when this is dropped.
struct Framework {
    child: Child,
    master: String,
}

impl Framework {
    fn start(master: &Daemon, name: &str, flags: &[&str]) -> Result<Framework> {
        let master = master.address.to_string();
        let mut process = Command::new(binary());
        process.args(["framework", "dag", "--json", "--master", &master, "--name", name]).args(flags);
        let child = process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let framework = Framework { child, master };
        wait_for("the framework is known to the master", || {
            framework.dag(&["list", "--framework", name]).is_ok_and(|status| status)
        })?;
        Ok(framework)
    }

    fn dag(&self, words: &[&str]) -> Result<bool> {
        let mut command = Command::new(binary());
        command.arg("dag").args(words).env("TEPUI_MASTER", &self.master);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
    }

    /// Runs a job to its end and returns the time that it took.
    fn run(&self, name: &str, file: &Path) -> Result<Duration> {
        let start = Instant::now();
        let file = file.display().to_string();
        ensure!(self.dag(&["submit", "--wait", "--framework", name, &file])?, "the job of {file} failed");
        Ok(start.elapsed())
    }
}

impl Drop for Framework {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
        let _ = self.child.wait();
    }
}

/// Starts a master and an agent with these resources.
fn cluster(resources: &str) -> Result<(Daemon, Daemon)> {
    let master = Daemon::master(&["--allocation_interval=50ms"])?;
    let agent = Daemon::agent(&master, resources)?;
    Ok((master, agent))
}

fn tasks() -> Result<()> {
    let (tasks, rounds) = (number("tasks", if quick() { 500 } else { 10_000 }), number("rounds", 3));
    let report = Report::new(&format!("{tasks} tasks of `true` on one agent with cpus:64, {rounds} rounds in turn"));
    let scratch = Scratch::new("tasks")?;
    let (master, _agent) = cluster("cpus:64;mem:65536;disk:65536;ports:[]")?;
    let state = format!("--state-dir={}", scratch.0.join("state").display());
    let memory = ["--refuse=1ms"];
    let disk = ["--refuse=1ms", state.as_str()];
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..rounds {
        for (place, role) in ["bench", CHECKPOINTING].into_iter().enumerate() {
            let mut scheduler = Scheduler::subscribe(master.address, Encoding::Json, role)?;
            times[place].push(scheduler.run_all(tasks, "true")?.0);
            scheduler.teardown()?;
        }
        for (place, (kind, flags)) in [("memory", &memory[..]), ("disk", &disk[..])].into_iter().enumerate() {
            let name = format!("{kind}-{round}");
            let framework = Framework::start(&master, &name, flags)?;
            let job = format!("name = '{name}'\n[[stage]]\nname = 's'\ncommand = 'true'\ntasks = {tasks}\ncpus = 1\n");
            times[place + 2].push(framework.run(&name, &scratch.file("job.toml", &job)?)?);
        }
    }
    let [plain, checkpoints, memory, disk] = times.map(|mut times| quantile(&mut times, 0.5));
    report.note("plain scheduler, tasks a second (median)", &rate(tasks, plain));
    report.note("plain scheduler with checkpoints, tasks a second (median)", &rate(tasks, checkpoints));
    for (time, what) in [(memory, "state in memory"), (disk, "state on disk")] {
        report.note(&format!("jobs of stages, {what}, tasks a second (median)"), &rate(tasks, time));
        for (other, of, promise) in [(checkpoints, " with checkpoints", "85 %"), (plain, "", "")] {
            let share = format!("{:.0} %", 100.0 * other.as_secs_f64() / time.as_secs_f64());
            report.row(&format!("jobs of stages, {what}, of the plain scheduler{of}"), &share, "", promise, "");
        }
    }
    Ok(())
}

/// Returns lines of generated words, the same ones each time.
fn text(bytes: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut text = String::with_capacity(bytes + 80);
    while text.len() < bytes {
        for _ in 0..10 {
            // Short words are the most frequent ones.
            let most = draw(5_000);
            let word = draw(1 + most);
            let _ = write!(
                text,
                "w{} ",
                char::from(b'a' + (word % 26) as u8).to_string().repeat(1 + (word / 26 % 9) as usize)
            );
        }
        text.push('\n');
    }
    text
}

/// Returns a job that counts words as `examples/pipelines/wordcount.toml` does, with parts of this size.
fn count(name: &str, by: &str, size: &str, files: &str) -> String {
    let map = "tr -cs '[:alpha:]' '\\n' | grep . | sort | uniq -c > $TEPUI_OUTPUT/counts";
    let reduce =
        "awk '{ n[$2] += $1 } END { for (word in n) print n[word], word }' $TEPUI_INPUT/* | sort -k 2 > counts";
    format!(
        "name = '{name}'\n[[stage]]\nname = 'map'\ninput = {{ files = '{files}', by = '{by}', size = {size} }}\nstdin = true\n\
         command = \"\"\"{map}\"\"\"\noutputs = ['counts']\ncpus = 1\n[[stage]]\nname = 'reduce'\n\
         input = {{ stage = 'map' }}\ncommand = \"\"\"{reduce}\"\"\"\ncpus = 1\n",
        map = map.replace('\\', "\\\\")
    )
}

fn sizes() -> Result<()> {
    let (megabytes, rounds) = (number("megabytes", if quick() { 8 } else { 96 }), number("rounds", 3));
    let files = number("files", if quick() { 20 } else { 400 });
    let scratch = Scratch::new("sizes")?;
    let directory = scratch.0.join("text");
    fs::create_dir_all(&directory)?;
    // Sizes of files differ by a factor of 16, as in real directories.
    let weights: Vec<usize> = (0..files).map(|file| 1 << (file % 5)).collect();
    let unit = megabytes * 1_000_000 / weights.iter().sum::<usize>().max(1);
    for (file, weight) in weights.iter().enumerate() {
        let mut out = fs::File::create(directory.join(format!("{file:05}.txt")))?;
        out.write_all(text(unit * weight, file as u64 + 1).as_bytes())?;
    }
    let pattern = format!("{}/*.txt", directory.display());
    let total = megabytes as u64 * 1_000_000;
    let report = Report::new(&format!("words of {megabytes} MB in {files} files, two slots, {rounds} rounds in turn"));
    let (master, _agent) = cluster("cpus:2;mem:8192;disk:8192")?;
    let shared = format!("--shared={}", scratch.0.join("shared").display());
    let fixed = [64_000, 256_000, 1_000_000, 4_000_000, 16_000_000];
    let mut kinds: Vec<(String, &str, String)> =
        fixed.iter().map(|size| (format!("parts of {} kB", size / 1000), "bytes", size.to_string())).collect();
    kinds.push(("one file a task".to_owned(), "files", "1".to_owned()));
    kinds.push(("one part a slot".to_owned(), "bytes", total.div_ceil(2).to_string()));
    kinds.push(("auto, nothing known".to_owned(), "bytes", "\"auto\"".to_owned()));
    kinds.push(("auto, after an earlier run".to_owned(), "bytes", "\"auto\"".to_owned()));
    let mut times = vec![Vec::new(); kinds.len()];
    for round in 0..rounds {
        let mut framework = Framework::start(&master, &format!("sizes-{round}"), &[&shared])?;
        for (kind, (what, by, size)) in kinds.iter().enumerate() {
            // The history of a stage is kept for the second run with `auto` only, which is the last.
            if what.starts_with("auto, nothing") {
                framework = Framework::start(&master, &format!("auto-{round}"), &[&shared])?;
            }
            let name = if what.starts_with("auto") { format!("auto-{round}") } else { format!("sizes-{round}") };
            let job = scratch.file("job.toml", &count(&format!("count-{kind}"), by, size, &pattern))?;
            times[kind].push(framework.run(&name, &job)?);
        }
    }
    let medians: Vec<Duration> = times.iter_mut().map(|times| quantile(times, 0.5)).collect();
    let best = medians[..fixed.len() + 2].iter().min().copied().context("there are fixed sizes")?;
    if best.is_zero() {
        bail!("nothing was measured");
    }
    for ((what, ..), time) in kinds.iter().zip(&medians) {
        let (seconds, of_best) = (time.as_secs_f64(), time.as_secs_f64() / best.as_secs_f64());
        let promise = if what.starts_with("auto") { "1.10" } else { "" };
        report.row(
            &format!("{what}: {seconds:.2} s, of the best fixed size"),
            &format!("{of_best:.2}"),
            "",
            promise,
            "",
        );
    }
    Ok(())
}
