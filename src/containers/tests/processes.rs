//! Real processes: started, ended, signalled, measured and found again.
//!
//! Processes wait for pipes and files, and the tests for states, with a limit.
#![allow(clippy::disallowed_methods)] // limits of real waiting need the real clock

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Time;
use containers::{
    Attached, Guard, Launcher, Output, ProcessTable, Program, ProgramFile, Rlimit, RlimitKind, SpawnError, Spec,
    StartTime, Step, User, WaitStatus, create_sandbox, destroy, destroy_marked, group_is_empty, signal_group,
    signal_tree, start_time,
};

/// Time limit for an expected event, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// A directory that is removed with its test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tepui-containers-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !reached() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn shell(script: &str) -> Spec {
    let mut spec = Spec::new(Program::Shell(script.into()));
    spec.environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spec
}

fn argv(argv: &[&str]) -> Spec {
    let mut spec = shell("");
    spec.program = Program::Argv { file: argv[0].into(), argv: argv.iter().map(Into::into).collect() };
    spec
}

/// Runs a process to its end. Returns its status and its output.
fn output(mut spec: Spec) -> (WaitStatus, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    spec.stdout = Output::Fd(Arc::new(OwnedFd::from(writer)));
    let child = Launcher::posix().spawn(&spec).unwrap();
    drop(spec);
    let mut text = String::new();
    let mut reader = std::fs::File::from(OwnedFd::from(reader));
    reader.read_to_string(&mut text).unwrap();
    (child.wait(Some(LIMIT)).unwrap().unwrap(), text)
}

/// Starts a process and waits for its first line. Returns the process, a reader of its further output, and the line.
fn started(mut spec: Spec) -> (containers::Child, std::io::BufReader<std::fs::File>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    spec.stdout = Output::Fd(Arc::new(OwnedFd::from(writer)));
    let child = Launcher::posix().spawn(&spec).unwrap();
    let mut reader = std::io::BufReader::new(std::fs::File::from(OwnedFd::from(reader)));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    (child, reader, line.trim().to_owned())
}

fn is_root() -> bool {
    User::by_name("root").unwrap().is_current()
}

fn alive(pid: i32) -> bool {
    ProcessTable::scan().tree(pid).iter().any(|p| p.pid == pid)
}

#[test]
fn exit_codes_and_signals() {
    for (script, status) in [
        ("exit 0", WaitStatus::from_exit_code(0)),
        ("exit 3", WaitStatus::from_exit_code(3)),
        ("exit 255", WaitStatus::from_exit_code(255)),
        ("kill -9 $$", WaitStatus::from_signal(9, false)),
        ("kill -TERM $$", WaitStatus::from_signal(15, false)),
    ] {
        let child = Launcher::posix().spawn(&shell(script)).unwrap();
        assert_eq!(child.wait(Some(LIMIT)).unwrap(), Some(status), "{script}");
        assert!(child.try_wait().is_err(), "waited for twice");
    }
    let (pid, _pidfd) = Launcher::posix().spawn(&shell("exit 7")).unwrap().into_parts();
    assert_eq!(containers::wait(pid).unwrap().code(), Some(7));
    assert!(containers::wait(pid).is_err());
}

#[test]
fn programs_and_arguments() {
    let (status, text) = output(argv(&["printf", "%s|", "a  b", "$HOME", "*"]));
    assert_eq!((status.code(), text.as_str()), (Some(0), "a  b|$HOME|*|"));
    let mut other_name = shell("");
    other_name.program =
        Program::Argv { file: "/bin/sh".into(), argv: ["renamed", "-c", "echo $0"].map(Into::into).into() };
    assert_eq!(output(other_name).1, "renamed\n");
    assert_eq!(
        output(shell("x=3; echo one two | wc -w; echo $((x + 4))")).1.split_whitespace().collect::<Vec<_>>(),
        ["2", "7"]
    );
}

#[test]
fn a_script_without_a_first_line_is_run_by_the_shell() {
    let directory = Directory::new("script");
    let path = directory.0.join("script");
    std::fs::write(&path, "echo got $1\n").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(output(argv(&[path.to_str().unwrap(), "it"])).1, "got it\n");
}

#[test]
fn programs_that_cannot_run() {
    let directory = Directory::new("plain");
    let plain = directory.0.join("plain");
    std::fs::write(&plain, "text").unwrap();
    for (program, kind) in [
        ("no-such-program-here", std::io::ErrorKind::NotFound),
        ("/no/such/program", std::io::ErrorKind::NotFound),
        (plain.to_str().unwrap(), std::io::ErrorKind::PermissionDenied),
    ] {
        let Err(SpawnError::Failed { step: Step::Exec, program: named, source }) =
            Launcher::posix().spawn(&argv(&[program]))
        else {
            panic!("{program} was started");
        };
        assert_eq!((named.as_str(), source.kind()), (program, kind));
    }
    let mut nowhere = shell("true");
    nowhere.working_dir = Some("/no/such/directory".into());
    let error = Launcher::posix().spawn(&nowhere).unwrap_err();
    assert_eq!(error.to_string(), "Failed to enter the working directory of '/bin/sh'");
}

#[test]
fn environment_and_directory_are_exactly_those_given() {
    let directory = Directory::new("cwd");
    let mut spec = argv(&["env"]);
    spec.environment.extend([("ODD".into(), "a 'b' \"c\" $d".into()), ("EMPTY".into(), "".into())]);
    assert_eq!(output(spec).1, "PATH=/usr/bin:/bin\nODD=a 'b' \"c\" $d\nEMPTY=\n");
    let mut spec = argv(&["pwd", "-P"]);
    spec.working_dir = Some(directory.0.clone());
    assert_eq!(Path::new(output(spec).1.trim()), directory.0.canonicalize().unwrap());
}

#[test]
fn streams() {
    let directory = Directory::new("streams");
    let (out, err) = (directory.0.join("stdout"), directory.0.join("stderr"));
    std::fs::write(&out, "before\n").unwrap();
    let mut spec = shell("wc -c; echo to-err >&2");
    (spec.stdout, spec.stderr) = (Output::File(out.clone()), Output::File(err.clone()));
    let child = Launcher::posix().spawn(&spec).unwrap();
    child.wait(Some(LIMIT)).unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "before\n0\n");
    assert_eq!(std::fs::read_to_string(&err).unwrap(), "to-err\n");
    let link = directory.0.join("link");
    std::os::unix::fs::symlink(&out, &link).unwrap();
    spec.stdout = Output::File(link.clone());
    assert!(matches!(Launcher::posix().spawn(&spec), Err(SpawnError::Output { path, .. }) if path == link));
}

#[test]
fn nothing_else_is_inherited() {
    let (_reader, writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();
    // ls itself has the directory open as 3.
    assert_eq!(output(argv(&["ls", "/proc/self/fd"])).1.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    // Rust programs ignore SIGPIPE; their children must not.
    let (_, text) = output(argv(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]));
    for line in text.lines() {
        let set = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
        // 32 and 33 are the C library's own.
        assert_eq!(set & !(3 << 31), 0, "{line}");
    }
}

#[test]
fn a_session_of_its_own() {
    let (child, _reader, line) = started(shell("ps -o sid=,pgid= -p $$; exec sleep 1000"));
    let numbers: Vec<i32> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert_eq!(numbers, [child.pid(), child.pid()]);
    assert!(!group_is_empty(child.pid()));
    assert!(signal_group(child.pid(), 15).unwrap());
    assert_eq!(child.wait(Some(LIMIT)).unwrap().unwrap().signal(), Some(15));
    // ps may not have exited yet.
    until("an empty group", || group_is_empty(child.pid()));
    assert!(!signal_group(child.pid(), 15).unwrap());
}

#[test]
fn limits() {
    let mut spec = shell("ulimit -n; ulimit -H -c");
    spec.rlimits = vec![
        Rlimit { kind: RlimitKind::Nofile, soft: Some(77), hard: Some(88) },
        Rlimit { kind: RlimitKind::Core, soft: Some(0), hard: Some(0) },
    ];
    assert_eq!(output(spec).1, "77\n0\n");
}

#[test]
fn an_open_program() {
    let directory = Directory::new("program");
    let copy = directory.0.join("cat-of-ours");
    std::fs::copy("/bin/cat", &copy).unwrap();
    let files = [
        ProgramFile::open(&copy).unwrap(),
        ProgramFile::in_memory(c"cat-of-ours", &std::fs::read(&copy).unwrap()).unwrap(),
    ];
    // The program can run after its name is removed, also by users who had no access to the file.
    std::fs::remove_file(&copy).unwrap();
    let nobody = User::by_name("nobody").ok().filter(|_| is_root());
    for file in files {
        let mut spec = shell("");
        spec.user = nobody.clone();
        spec.program = Program::Open { file, argv: ["any name", "/proc/self/cmdline"].map(Into::into).into() };
        assert_eq!(output(spec), (WaitStatus::from_exit_code(0), "any name\0/proc/self/cmdline\0".into()));
    }
}

#[test]
fn an_open_file_that_is_no_program() {
    let mut spec = shell("");
    let file = ProgramFile::in_memory(c"text", b"no program").unwrap();
    spec.program = Program::Open { file, argv: vec!["some text".into()] };
    let error = Launcher::posix().spawn(&spec).unwrap_err();
    assert_eq!(error.to_string(), "Failed to execute 'some text'");
}

#[test]
fn another_user() {
    if !is_root() {
        return;
    }
    let directory = Directory::new("user");
    let nobody = User::by_name("nobody").unwrap();
    let sandbox = directory.0.join("runs").join("one");
    create_sandbox(&sandbox, Some(&nobody)).unwrap();
    create_sandbox(&sandbox, Some(&nobody)).unwrap();
    let mut spec = shell("id -un; id -G; touch mine; stat -c '%U %a' .; stat -c %U stdout");
    spec.user = Some(nobody);
    spec.working_dir = Some(sandbox.clone());
    spec.stdout = Output::File(sandbox.join("stdout"));
    let child = Launcher::posix().spawn(&spec).unwrap();
    assert_eq!(child.wait(Some(LIMIT)).unwrap(), Some(WaitStatus::from_exit_code(0)));
    let text = std::fs::read_to_string(sandbox.join("stdout")).unwrap();
    let groups = output(argv(&["id", "-G", "nobody"])).1;
    assert_eq!(text, format!("nobody\n{groups}nobody 750\nnobody\n"));
    // The forked child reports errors, too.
    spec.program = Program::Argv { file: "no-such-program-here".into(), argv: vec![] };
    let error = Launcher::posix().spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::Failed { step: Step::Exec, .. }), "{error}");
}

/// A shell that ignores SIGTERM, with a child in the same session, one in a session of its own, and a grandchild there.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & setsid sh -c 'sleep 1000 & echo \"$$ $!\" >&3; wait' 3>&1 & wait";

#[test]
fn a_stubborn_tree_is_destroyed() {
    let (child, _reader, line) = started(shell(STUBBORN));
    let others: Vec<i32> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    until("the whole tree", || ProcessTable::scan().tree(child.pid()).len() == 4);
    let tree = ProcessTable::scan().tree(child.pid());
    assert!(others.iter().all(|pid| tree.iter().any(|p| p.pid == *pid)), "{others:?} in {tree:?}");
    assert_eq!(signal_tree(child.pid(), 15).unwrap(), 4);
    assert!(child.try_wait().unwrap().is_none(), "it does not ignore SIGTERM");
    destroy(child.pid(), start_time(child.pid()), LIMIT).unwrap();
    assert_eq!(child.wait(Some(LIMIT)).unwrap().unwrap().signal(), Some(9));
    until("the end of the tree", || tree.iter().all(|p| !alive(p.pid)));
}

#[test]
fn what_a_dead_leader_left_is_destroyed() {
    let (child, _reader, line) = started(shell("sleep 1000 & echo $!"));
    assert_eq!(child.wait(Some(LIMIT)).unwrap().unwrap().code(), Some(0));
    let left: i32 = line.parse().unwrap();
    assert!(alive(left) && !group_is_empty(child.pid()));
    destroy(child.pid(), None, LIMIT).unwrap();
    until("the end of the child", || !alive(left));
}

#[test]
fn what_a_crash_left_in_other_sessions_is_found_by_its_environment() {
    let directory = Directory::new("marked");
    let mut spec = shell("setsid sh -c 'sleep 1000 & echo $$ $!; wait' & wait");
    spec.environment.push(("MESOS_DIRECTORY".into(), directory.0.clone().into()));
    let (child, _reader, line) = started(spec);
    let left: Vec<i32> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    child.signal(9).unwrap();
    child.wait(Some(LIMIT)).unwrap().unwrap();
    destroy(child.pid(), None, LIMIT).unwrap();
    assert!(left.iter().all(|pid| alive(*pid)), "found without its environment");
    destroy_marked("MESOS_DIRECTORY", directory.0.join("other").as_os_str(), LIMIT).unwrap();
    assert!(left.iter().all(|pid| alive(*pid)), "another container's processes were ended");
    destroy_marked("MESOS_DIRECTORY", directory.0.as_os_str(), LIMIT).unwrap();
    until("their end", || !left.iter().any(|pid| alive(*pid)));
}

#[test]
fn a_pid_of_another_process_is_spared() {
    let (child, _reader, _) = started(shell("echo; exec sleep 1000"));
    destroy(child.pid(), Some(StartTime(1)), LIMIT).unwrap();
    assert!(child.try_wait().unwrap().is_none(), "the wrong process was ended");
    assert!(Attached::open(child.pid(), Guard::Started(StartTime(1))).unwrap().is_none());
    assert!(Attached::open(child.pid(), Guard::StartedBefore(Time::from_secs(1_000_000_000))).unwrap().is_none());
    destroy(child.pid(), None, LIMIT).unwrap();
    child.wait(Some(LIMIT)).unwrap().unwrap();
}

#[test]
fn watching_a_process_that_is_no_child() {
    // The shell's child is not a child of this process.
    let (child, _reader, line) = started(shell("sleep 1000 & echo $!; wait"));
    let pid: i32 = line.parse().unwrap();
    let started = start_time(pid).unwrap();
    let attached = Attached::open(pid, Guard::Started(started)).unwrap().unwrap();
    assert!(!attached.is_gone(Duration::ZERO).unwrap());
    assert_eq!((attached.pid(), attached.started()), (pid, started));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(Attached::open(pid, Guard::StartedBefore(Time::from_epoch(now))).unwrap().is_some());
    attached.signal(9).unwrap();
    assert!(attached.is_gone(LIMIT).unwrap());
    child.wait(Some(LIMIT)).unwrap().unwrap();
    until("the pid to be free", || start_time(pid) != Some(started));
    assert!(Attached::open(pid, Guard::Started(started)).unwrap().is_none());
    attached.signal(9).unwrap();
}

#[test]
fn usage_counts_the_tree() {
    let (child, _reader, _) =
        started(shell("sleep 1000 & (i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); echo; wait"));
    let usage = ProcessTable::scan().usage(child.pid()).unwrap();
    assert_eq!((usage.processes, usage.threads), (2, 2));
    assert!(usage.mem_rss_bytes > 0 && usage.cpus_user_time > Duration::ZERO, "{usage:?}");
    destroy(child.pid(), None, LIMIT).unwrap();
    child.wait(Some(LIMIT)).unwrap().unwrap();
    assert_eq!(ProcessTable::scan().usage(child.pid()), None);
}

#[test]
fn many_threads_at_once() {
    let run = || {
        for _ in 0..50 {
            let child = Launcher::posix().spawn(&argv(&["/bin/true"])).unwrap();
            assert_eq!(child.wait(None).unwrap().unwrap().raw(), 0);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(run))));
}
