//! A master or an agent of the release binary, as a process in its own directory; dropping it stops the process and
//! deletes the directory.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::http::Connection;
use super::proc;

/// Returns the path of the binary: $TEPUI, otherwise the one that cargo built for this benchmark.
pub fn binary() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_tepui").unwrap_or("target/release/tepui");
    std::env::var_os("TEPUI").map_or_else(|| PathBuf::from(built), PathBuf::from)
}

/// Returns a free port of 127.0.0.1.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A process that serves HTTP on 127.0.0.1.
pub struct Daemon {
    child: Child,
    /// Command with which it was started, for a restart.
    process: Command,
    /// Address at which it listens.
    pub address: SocketAddrV4,
    directory: PathBuf,
}

impl Daemon {
    /// Starts a master, and waits until it answers.
    ///
    /// # Errors
    /// It does not start, or does not answer.
    pub fn master(flags: &[&str]) -> Result<Daemon> {
        let mut all = vec!["--registry=in_memory", "--hostname=127.0.0.1"];
        all.extend(flags);
        Daemon::start("master", &all)
    }

    /// Starts an agent of a master, and waits until it answers (it may not have registered by then).
    ///
    /// # Errors
    /// It does not start, or does not answer.
    pub fn agent(master: &Daemon, resources: &str) -> Result<Daemon> {
        let of = format!("--master={}", master.address);
        let resources = format!("--resources={resources}");
        Daemon::start("agent", &[&of, &resources, "--hostname=127.0.0.1", "--registration_backoff_factor=10ms"])
    }

    /// Starts a daemon command (master, agent, local).
    ///
    /// # Errors
    /// It does not start, or does not answer.
    pub fn start(command: &str, flags: &[&str]) -> Result<Daemon> {
        let mut daemon = Daemon::at(free_port()?, command, flags)?;
        daemon.wait_until_healthy()?;
        Ok(daemon)
    }

    /// Starts a daemon command at a port of 127.0.0.1, and does not wait for it.
    ///
    /// # Errors
    /// It does not start.
    pub fn at(port: u16, command: &str, flags: &[&str]) -> Result<Daemon> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("tepui-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let log = File::create(directory.join("log"))?;
        let mut process = Command::new(binary());
        process.arg(command).args(flags).arg(format!("--port={port}"));
        let work = directory.join("work");
        if command == "local" {
            process.arg(format!("--work-dir={}", work.display()));
        } else {
            process.arg("--ip=127.0.0.1").arg(format!("--work_dir={}", work.display()));
        }
        if command == "agent" {
            process.arg(format!("--runtime_dir={}", directory.join("run").display()));
        }
        process.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = process.spawn().with_context(|| format!("cannot start {}", binary().display()))?;
        Ok(Daemon { child, process, address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port), directory })
    }

    /// Kills the daemon with SIGKILL, and restarts it with the same work directory.
    ///
    /// # Errors
    /// It does not start again.
    pub fn restart(&mut self) -> Result<()> {
        self.restart_after(Signal::SIGKILL)
    }

    /// Ends the daemon with a signal, waits for its end, and restarts it with the same work directory.
    ///
    /// # Errors
    /// It does not start again.
    pub fn restart_after(&mut self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.pid().cast_signed()), signal)?;
        self.child.wait()?;
        self.child = self.process.spawn().context("cannot start again")?;
        Ok(())
    }

    /// Waits until the daemon has been idle for 50 ms.
    pub fn settle(&self) {
        let mut last = self.cpu();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.cpu();
            if now - last < Duration::from_millis(1) {
                return;
            }
            last = now;
        }
    }

    /// Waits until the daemon answers.
    ///
    /// # Errors
    /// It ended, or does not answer.
    pub fn wait_until_healthy(&mut self) -> Result<()> {
        let start = Instant::now();
        loop {
            if let Ok(mut connection) = Connection::open(self.address)
                // With TLS it answers plain requests with 400.
                && connection.get("/health").is_ok_and(|answer| matches!(answer.status, 200 | 400))
            {
                return Ok(());
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || start.elapsed() > Duration::from_secs(20) {
                bail!("the daemon does not answer ({ended:?}): {}", self.log());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the last lines of the daemon's log.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Returns the process id of the daemon.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU time that the daemon has used so far, without children.
    pub fn cpu(&self) -> Duration {
        proc::cpu(self.pid())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A process that does not end in time is killed.
        let _ = kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGTERM);
        let start = Instant::now();
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if start.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if std::env::var_os("TEPUI_BENCH_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}
