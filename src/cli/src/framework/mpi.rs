//! `tepui framework mpi`: runs one rank of a gang, as a part of an MPI program. It needs no ssh: ranks start the parts
//! of each other.
//!
//! Every rank's task runs this command. Rank 0 waits for the others and runs Open MPI's `mpirun`, which starts a daemon
//! on each node by a remote shell. That remote shell is this program again (`mpi-shell`), and it sends the daemon's
//! command to the rank of that node, over TCP, with the gang's token. The network is trusted, as Mesos trusts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::say::say;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

/// Time limit for the other ranks to listen.
const READY: Duration = Duration::from_secs(120);
/// Time limit for the rest of a request.
const REQUEST: Duration = Duration::from_secs(30);
/// Maximum size of a request, in bytes: the command of a daemon names all nodes.
const REQUEST_MAX: u64 = 1 << 20;
/// Prefix of the names by which mpirun knows the nodes of ranks. No host has them, so that mpirun starts each by the
/// remote shell.
const NODE: &str = "tepui-rank-";
/// Answer of a rank to the right token.
const WELCOME: &str = "welcome";

/// Flags of `tepui framework mpi`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The mpirun program of Open MPI
    #[arg(long, default_value = "mpirun", value_name = "PROGRAM")]
    mpirun: String,
    /// Processes on each rank's node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    slots: u32,
    /// The MPI program and its arguments; its path is the same on all agents
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Flags of `tepui framework mpi-shell`, as mpirun gives them to a remote shell.
#[derive(Debug, clap::Args)]
pub struct ShellArgs {
    /// The node
    node: String,
    /// The command for its shell
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// The environment of a rank.
#[derive(Debug)]
struct Gang {
    rank: usize,
    addresses: Vec<String>,
    token: String,
}

impl Gang {
    fn from_environment() -> Result<Gang> {
        let variable = |name: &str| {
            let hint = "this command is for the tasks of a gang: kind = \"gang\", ports = 1, ends = \"first\"";
            std::env::var(name).with_context(|| format!("{name} is not set; {hint}"))
        };
        let rank = variable("TEPUI_RANK")?.parse().context("TEPUI_RANK")?;
        let addresses: Vec<String> = variable("TEPUI_ADDRESSES")?.split(',').map(str::to_owned).collect();
        let token = variable("TEPUI_TOKEN")?;
        if token.len() < 16 || token.contains('\n') {
            bail!("TEPUI_TOKEN must be one line of at least 16 characters");
        }
        if rank >= addresses.len() {
            bail!("TEPUI_RANK is {rank}, and TEPUI_ADDRESSES has {} ranks", addresses.len());
        }
        Ok(Gang { rank, addresses, token })
    }

    /// Requests a rank to run a command; an empty one only tests the connection. Returns the connection, which reports
    /// how the command ended.
    fn ask(&self, rank: usize, command: &str) -> Result<BufReader<TcpStream>> {
        let address = self.addresses.get(rank).with_context(|| format!("the gang has no rank {rank}"))?;
        let mut stream = TcpStream::connect(address).with_context(|| format!("rank {rank} at {address}"))?;
        let request = format!("{}\n{}\n{command}", self.token, command.len());
        stream.write_all(request.as_bytes()).with_context(|| format!("rank {rank} at {address}"))?;
        let mut reader = BufReader::new(stream);
        let mut welcome = String::new();
        reader.read_line(&mut welcome)?;
        if welcome.trim_end() != WELCOME {
            bail!("rank {rank} at {address} does not know this gang");
        }
        Ok(reader)
    }
}

/// Runs this rank's part. The exit status of rank 0 is that of mpirun.
///
/// # Errors
/// The process is not a task of a gang, or a rank is not reachable.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let gang = Gang::from_environment()?;
    if gang.rank == 0 { lead(&gang, args) } else { serve(&gang) }
}

/// Runs rank 0: waits for the others, and runs mpirun over all.
fn lead(gang: &Gang, args: &Args) -> Result<ExitCode> {
    for rank in 1..gang.addresses.len() {
        wait_for(gang, rank)?;
    }
    let nodes: Vec<String> = (0..gang.addresses.len()).map(|rank| node_line(rank, args.slots)).collect();
    let hosts = std::env::current_dir()?.join("mpi-hosts");
    std::fs::write(&hosts, nodes.concat()).with_context(|| hosts.display().to_string())?;
    let shell = format!("{} framework mpi-shell", std::env::current_exe()?.display());
    let mut command = Command::new(&args.mpirun);
    command
        .args(["--hostfile", &hosts.display().to_string()])
        .args(["-np", &(gang.addresses.len() * args.slots as usize).to_string()])
        .args(["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", &shell, "--mca", "plm_rsh_no_tree_spawn", "1"])
        // The daemons end with their ranks' tasks. The agent limits the processors of a task, so mpirun does not bind
        // processes.
        .args(["--leave-session-attached", "--bind-to", "none"])
        .args(&args.program);
    if crate::execute::user() == "root" {
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    }
    let status = command
        .status()
        .with_context(|| format!("cannot start {}: is Open MPI (openmpi-bin) installed on this agent?", args.mpirun))?;
    Ok(exit_code(status.code()))
}

/// Formats the host file's line of a rank. The node of rank 0 is where mpirun runs.
fn node_line(rank: usize, slots: u32) -> String {
    if rank == 0 { format!("localhost slots={slots}\n") } else { format!("{NODE}{rank} slots={slots}\n") }
}

#[expect(clippy::disallowed_methods, reason = "another machine's task can only be asked again and again")]
fn wait_for(gang: &Gang, rank: usize) -> Result<()> {
    let began = Instant::now();
    loop {
        match gang.ask(rank, "") {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > READY => return Err(error.context("not all ranks have started")),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Runs any other rank: executes the commands of rank 0, until its task ends.
fn serve(gang: &Gang) -> Result<ExitCode> {
    let port = gang.addresses[gang.rank].rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let port = port.context("TEPUI_ADDRESSES has no port for this rank")?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).with_context(|| format!("port {port}"))?;
    say!("rank {} of {} waits for rank 0 on port {port}", gang.rank, gang.addresses.len());
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            scope.spawn(move || {
                if let Err(error) = answer(stream, &gang.token) {
                    stdio::err!("tepui: a request of another rank failed: {error:#}");
                }
            });
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// Runs the command of one request with a valid token, and reports how it ended. The command is killed when its
/// connection ends.
fn answer(stream: TcpStream, token: &str) -> Result<()> {
    stream.set_read_timeout(Some(REQUEST))?;
    let mut reader = BufReader::new(stream.try_clone()?.take(REQUEST_MAX));
    let (mut given, mut length) = (String::new(), String::new());
    reader.read_line(&mut given)?;
    if !base::same_text(given.trim_end_matches('\n'), token) {
        bail!("it has another token");
    }
    reader.read_line(&mut length)?;
    let length = length.trim_end().parse::<usize>().ok().filter(|n| *n as u64 <= REQUEST_MAX);
    let mut command = vec![0; length.context("its length is not a number, or too large")?];
    reader.read_exact(&mut command)?;
    let mut stream = stream;
    writeln!(stream, "{WELCOME}")?;
    if command.is_empty() {
        return Ok(());
    }
    let command = String::from_utf8(command)?;
    let child = Command::new("/bin/sh").args(["-c", &command]).stdin(Stdio::null()).process_group(0).spawn()?;
    let code = watch(child, &stream)?;
    writeln!(stream, "{code}")?;
    Ok(())
}

/// Waits for the child's end, and kills its process group when the requester disconnects.
fn watch(mut running: Child, stream: &TcpStream) -> Result<i32> {
    let mut peer = stream.try_clone()?;
    peer.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut byte = [0];
    loop {
        if let Some(status) = running.try_wait()? {
            return Ok(status.code().unwrap_or(255));
        }
        match peer.read(&mut byte) {
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Ok(1..) => {}
            Ok(0) | Err(_) => {
                // The child has not been reaped, so its group still has this id.
                if let Some(group) = i32::try_from(running.id()).ok().and_then(Pid::from_raw) {
                    rustix::process::kill_process_group(group, Signal::KILL)?;
                }
                return Ok(running.wait()?.code().unwrap_or(255));
            }
        }
    }
}

/// Acts as mpirun's remote shell: passes the command to the rank of a node, and exits with its status.
///
/// # Errors
/// The node is unknown, or its rank is not reachable.
pub(super) fn shell(args: &ShellArgs) -> Result<ExitCode> {
    let gang = Gang::from_environment()?;
    let rank = args.node.strip_prefix(NODE).and_then(|rank| rank.parse().ok());
    let rank = rank.with_context(|| format!("'{}' is not a node of this gang", args.node))?;
    // A remote shell joins the words, and the shell on the other side splits them.
    let mut reader = gang.ask(rank, &args.command.join(" "))?;
    let mut code = String::new();
    reader.read_line(&mut code)?;
    Ok(exit_code(code.trim().parse().ok()))
}

fn exit_code(code: Option<i32>) -> ExitCode {
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    /// Starts a rank that answers `requests` requests, and returns a gang in which it is rank 1.
    fn rank(requests: usize) -> (Gang, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = std::thread::spawn(move || {
            for stream in listener.incoming().take(requests) {
                let _ = answer(stream.unwrap(), TOKEN);
            }
        });
        (Gang { rank: 0, addresses: vec![String::new(), address], token: TOKEN.to_owned() }, serving)
    }

    #[test]
    fn a_command_is_run_for_holders_of_the_token() {
        let (mut gang, serving) = rank(3);
        gang.ask(1, "").unwrap();
        let mut reader = gang.ask(1, "exit 7").unwrap();
        let mut code = String::new();
        reader.read_line(&mut code).unwrap();
        assert_eq!(code, "7\n");
        gang.token = "0123456789abcdeX".to_owned();
        let error = gang.ask(1, "exit 0").unwrap_err().to_string();
        assert!(error.contains("does not know this gang"), "{error}");
        serving.join().unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "how long processes take is real time")]
    #[test]
    fn a_command_and_its_children_end_with_its_connection() {
        let (gang, serving) = rank(1);
        let file = std::env::temp_dir().join(format!("tepui-mpi-{}", std::process::id()));
        let mut reader =
            gang.ask(1, &format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display())).unwrap();
        let began = Instant::now();
        let patient = || assert!(began.elapsed() < Duration::from_secs(60), "too slow");
        let child = loop {
            match std::fs::read_to_string(&file) {
                Ok(text) => break text.trim().to_owned(),
                Err(_) => patient(),
            }
        };
        std::fs::remove_file(&file).unwrap();
        reader.get_mut().shutdown(std::net::Shutdown::Both).unwrap();
        serving.join().unwrap();
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while is_there() {
            patient();
        }
    }

    #[test]
    fn tokens_and_nodes() {
        assert_eq!(node_line(0, 2), "localhost slots=2\n");
        assert_eq!(node_line(3, 1), "tepui-rank-3 slots=1\n");
    }
}
