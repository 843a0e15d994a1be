//! Tests the examples of README.md and docs/: shell blocks are run on a cluster in order, and JSON is passed to the
//! flags that it is for. Commands that cannot be run are listed below with the reason, and their flags are parsed all
//! the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{Process, ToItsEnd};
use crate::support::{Cluster, Daemon, Directory, binary, call, until, wait_for};

/// Texts of commands that are not run, with the reasons.
const NOT_RUN: [(&str, &str); 18] = [
    ("cargo ", "builds the program, or runs this test"),
    ("tepui local ", "runs until it is interrupted; the cluster of this test is one"),
    ("tepui lab ", "takes minutes, and has tests of its own"),
    ("mount ", "needs root and a processor with resource control"),
    ("chgrp tepui ", "needs root and the user of the packages"),
    ("systemctl ", "needs the units of the packages"),
    ("contrib/docker/root ", "makes an image; the test of the compose file does that"),
    ("docker compose ", "needs that image"),
    ("tepui framework binpack --role=batch", "runs until it is interrupted"),
    ("docker run ", "needs Docker and an image of the program"),
    ("--isolation=", "needs root, mounted controllers, devices or plugins"),
    ("--secret_resolver=", "is a flag without its command"),
    ("--master=host:5050", "names a host of the reader's"),
    ("--record=", "writes below /var/lib"),
    ("tepui quota set ", "needs a cluster of 40 CPUs"),
    ("tepui agents gone ", "removes the only agent"),
    ("tepui agents drain ", "is for an agent of the reader's, and kills its tasks"),
    ("tepui frameworks teardown ", "names a framework of the reader's"),
];

/// Commands that may start a line; a test must know how to handle each.
const KNOWN: [&str; 14] = [
    "tepui",
    "curl",
    "echo",
    "export",
    "head",
    "tail",
    "mkdir",
    "chgrp",
    "systemctl",
    "cargo",
    "contrib",
    "mount",
    "docker",
    "--",
];

struct Block {
    /// File and line, for messages.
    place: String,
    language: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    files.push(root().join("README.md"));
    files.sort();
    files
}

fn blocks(file: &Path) -> Vec<Block> {
    let text = fs::read_to_string(file).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                let place = format!("{}:{}", file.strip_prefix(root()).unwrap().display(), number + 2);
                blocks.push(Block { place, language: language.to_owned(), text: String::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "{}: a block has no end", file.display());
    blocks
}

/// Returns the texts between single backticks outside of blocks; they may contain line ends.
fn spans(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let mut outside = String::new();
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 0 {
            outside.push_str(part);
        }
    }
    outside.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect()
}

fn bash(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", script]);
    command
}

/// Returns the commands of a block: a line whose quotes are open continues on the next one.
fn commands(block: &Block) -> Vec<String> {
    let (mut commands, mut open) = (Vec::new(), String::new());
    for line in block.text.lines() {
        open.push_str(line);
        if open.ends_with('\\') || !is_complete(&open) {
            open.push('\n');
            continue;
        }
        let command = std::mem::take(&mut open);
        if !command.trim().is_empty() && !command.trim_start().starts_with('#') {
            commands.push(command);
        }
    }
    assert!(open.is_empty(), "{}: a command has no end: {open}", block.place);
    commands
}

/// Returns whether bash parses the script as a complete one; nothing is run.
fn is_complete(script: &str) -> bool {
    Command::new("bash").args(["-n", "-c", "--", script]).run().status.success()
}

/// Splits a command into words as bash does. `...` stands for flags that a reader adds.
fn words(command: &str) -> Vec<String> {
    let output = bash(&format!("printf '%s\\0' {command}")).run();
    assert!(output.status.success(), "{command}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split('\0').filter(|word| !word.is_empty() && *word != "...").map(str::to_owned).collect()
}

/// Returns the part of a command that is for `tepui master` or `tepui agent`, as words from there on.
fn daemon_words(command: &str) -> Option<Vec<String>> {
    let command = match command.trim_start().starts_with("--") {
        true => format!("tepui agent {command}"),
        false => command.to_owned(),
    };
    if !["tepui master ", "tepui agent "].iter().any(|daemon| command.contains(daemon)) {
        return None;
    }
    let words = words(&command);
    let at = words.windows(2).position(|two| two[0] == "tepui" && matches!(&*two[1], "master" | "agent"))?;
    Some(words[at + 1..].to_vec())
}

/// Parses a daemon's flags, as the daemon would.
fn read_flags(place: &str, words: &[String]) {
    let part = if words[0] == "master" { daemon::flags::Part::Master } else { daemon::flags::Part::Agent };
    let read = daemon::flags::Flags::load(part, &words[1..], std::iter::empty());
    let flags = read.unwrap_or_else(|why| panic!("{place}: {why}: {words:?}"));
    assert!(flags.warnings.is_empty(), "{place}: {:?}", flags.warnings);
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A cluster, the daemons that a document starts besides it, and the values of its placeholders.
struct Reader {
    cluster: Cluster,
    /// Latest master that the document has started.
    master: Option<String>,
    /// Whether that is the document's master at 127.0.0.1:5050.
    is_latest: bool,
    /// Variables that the document has exported.
    exports: String,
    daemons: Vec<Daemon>,
    stream: Option<Process>,
    placeholders: Vec<(&'static str, String)>,
}

impl Reader {
    fn new(name: &str) -> Reader {
        // The examples of quotas request this much.
        let cluster = Cluster::start(&format!("docs-{name}"), 2, "cpus:50;mem:4096;disk:1024");
        let agents = call(&cluster.master, "GET", "/slaves").unwrap();
        let agent = agents["slaves"][1]["id"].as_str().unwrap().to_owned();
        let placeholders = vec![("<AGENT ID>", agent)];
        Reader {
            cluster,
            master: None,
            is_latest: false,
            exports: String::new(),
            daemons: Vec::new(),
            stream: None,
            placeholders,
        }
    }

    fn filled_in(&self, command: &str) -> String {
        let mut command = command.to_owned();
        let master = self.master.as_ref().filter(|_| self.is_latest).unwrap_or(&self.cluster.master);
        for address in ["127.0.0.1:5050", "10.0.0.1:5050"] {
            command = command.replace(address, master);
        }
        for (path, name) in [("/etc/tepui", "etc"), ("/var/log/tepui", "log")] {
            command = command.replace(path, &self.cluster.directory.join(name));
        }
        self.placeholders.iter().for_each(|(name, value)| command = command.replace(name, value));
        command
    }

    /// Returns a shell that runs the command, which must succeed.
    fn shell(&self, command: &str) -> Command {
        let functions =
            r#"set -e -o pipefail; tepui() { "$TEPUI_BINARY" "$@"; }; curl() { command curl -S --fail "$@"; }"#;
        let mut process = bash(&format!("{functions}\n{}{}", self.exports, self.filled_in(command)));
        process.current_dir(self.cluster.directory.path()).env("TEPUI_BINARY", binary());
        process.env("TEPUI_MASTER", &self.cluster.master).env("USER", user());
        process
    }

    /// Starts a master or an agent with a document's flags, and with addresses and directories of this test.
    fn start(&mut self, place: &str, words: &[String]) {
        let words: Vec<String> = words.iter().map(|word| self.filled_in(word)).collect();
        read_flags(place, &words);
        let is_master = words[0] == "master";
        let number = self.daemons.len();
        let own = |word: &&String| {
            let name = word.split('=').next().unwrap_or_default();
            !["--ip", "--port", "--work_dir", "--master"].contains(&name)
        };
        let mut given: Vec<String> = words.iter().filter(own).cloned().collect();
        let directory = self.cluster.directory.join(&format!("daemon-{number}"));
        given.extend(["--ip=127.0.0.1".into(), "--port=0".into(), format!("--work_dir={directory}")]);
        if !is_master {
            let master = self.master.clone().unwrap_or_else(|| self.cluster.master.clone());
            given.extend([format!("--master={master}"), format!("--runtime_dir={directory}-run")]);
            given.extend(["--launcher=posix".to_owned(), "--registration_backoff_factor=10ms".to_owned()]);
        }
        let log = self.cluster.directory.path().join(format!("daemon-{number}.log"));
        let mut daemon = Daemon::start(&log, &given, &[]);
        let address = daemon.address();
        let address = address.unwrap_or_else(|| panic!("{place}: {}", fs::read_to_string(&log).unwrap()));
        self.daemons.push(daemon);
        match is_master {
            true => self.master = Some(address),
            false => until(&format!("{place}: the agent registers"), || {
                fs::read_to_string(&log).unwrap().contains("Registered with the master")
            }),
        }
    }

    /// Starts a stream of events, which stays open and has the ids that the next commands name.
    fn subscribe(&mut self, command: &str) {
        let mut stream = Process::start(&mut self.shell(command));
        let ids = ids(&mut stream);
        self.placeholders.retain(|(name, _)| *name != "<AGENT ID>");
        self.placeholders.extend(ids);
        self.stream = Some(stream);
    }

    fn run(&mut self, place: &str, command: &str) {
        let place = format!("{place}: {command}");
        let first = command.split_whitespace().next().unwrap_or_default();
        assert!(KNOWN.iter().any(|known| first.starts_with(known)), "what is to be done with {place}?");
        if NOT_RUN.iter().any(|(part, _)| command.contains(part)) {
            match daemon_words(command) {
                Some(words) => read_flags(&place, &words),
                None if first == "tepui" => self.parse(&place, command),
                None => {}
            }
            return;
        }
        if first == "export" {
            self.exports += &self.filled_in(&format!("{command}\n"));
            return;
        }
        let words = daemon_words(command).filter(|_| first == "tepui");
        match words {
            Some(words) => self.start(&place, &words),
            None if command.contains("curl -sN") => self.subscribe(command),
            None => {
                for directory in ["etc", "log"] {
                    fs::create_dir_all(self.cluster.directory.join(directory)).unwrap();
                }
                let output = self.shell(command).run();
                assert!(output.status.success(), "{place}\n{}", said(&output));
            }
        }
    }

    /// Runs a command with `--help` in addition, so that its arguments are parsed without effect.
    fn parse(&self, place: &str, command: &str) {
        let words = words(command);
        let output = Command::new(binary()).args(&words[1..]).arg("--help").run();
        assert!(output.status.success(), "{place}\n{}", said(&output));
    }
}

fn user() -> String {
    String::from_utf8(Command::new("id").arg("-un").run().stdout).unwrap().trim().to_owned()
}

/// Returns the ids of the first offer of a stream.
fn ids(stream: &mut Process) -> Vec<(&'static str, String)> {
    wait_for("an offer", || {
        let text = stream.told();
        let event = &text[text.find(r#"{"type":"OFFERS""#)?..];
        let event = serde_json::Deserializer::from_str(event).into_iter::<Value>().next()?.ok()?;
        let offer = &event["offers"]["offers"][0];
        let id = |name: &str| Some(offer[name]["value"].as_str()?.to_owned());
        let (framework, offer, agent) = (id("framework_id")?, id("id")?, id("agent_id")?);
        Some(vec![("<FRAMEWORK ID>", framework), ("<OFFER ID>", offer), ("<AGENT ID>", agent)])
    })
}

/// Runs all shell blocks of a document.
fn read(name: &str) -> Reader {
    read_by(Reader::new(name), name)
}

fn read_by(mut reader: Reader, name: &str) -> Reader {
    let file = documents().into_iter().find(|file| file.ends_with(name)).unwrap();
    for block in blocks(&file).iter().filter(|block| block.language == "sh") {
        for command in commands(block) {
            reader.run(&block.place, &command);
        }
    }
    reader
}

#[test]
fn the_readmes_tour() {
    let mut reader = read("README.md");
    let stream = reader.stream.as_mut().expect("the tour subscribes");
    wait_for("the tour's task starts", || stream.told().contains("TASK_STARTING").then_some(()));
}

#[test]
fn the_way_to_a_secured_cluster() {
    let reader = Reader { is_latest: true, ..Reader::new("security.md") };
    let reader = read_by(reader, "security.md");
    // The last change is in the audit log.
    let audit = fs::read_to_string(reader.cluster.directory.join("log/master/audit.log")).unwrap();
    assert!(
        audit.lines().any(|line| line.contains(r#""call":"ACCEPT""#) && line.contains(r#""principal":"ads""#)),
        "{audit}"
    );
}

#[test]
fn the_operators_guide() {
    let mut reader = read("operator.md");
    let file = documents().into_iter().find(|file| file.ends_with("operator.md")).unwrap();
    // With the access control lists, agents must still be admitted.
    let blocks = blocks(&file);
    let lists: Vec<&Block> = blocks.iter().filter(|block| block.language == "json").collect();
    assert!(!lists.is_empty());
    for block in lists {
        let master = ["master".to_owned(), format!("--acls={}", block.text)];
        reader.start(&block.place, &master);
        reader.start(&block.place, &["agent".to_owned(), format!("--acls={}", block.text)]);
    }
    // Flags and rules within the text.
    let spans = spans(&file);
    let flags = spans.iter().filter(|span| span.starts_with("--") && span.contains("={"));
    let mut count = 0;
    for flag in flags {
        reader.start("operator.md", &["master".to_owned(), flag.clone()]);
        count += 1;
    }
    for rule in spans.iter().filter(|span| span.starts_with(r#"{"principals""#)) {
        let lists = format!(r#"--acls={{"mark_agents_gone": [{rule}]}}"#);
        reader.start("operator.md", &["master".to_owned(), lists]);
        count += 1;
    }
    assert!(count >= 3, "{spans:?}");
}

/// The other guides need more than a cluster on this machine: their flags and commands are parsed.
#[test]
fn the_flags_of_all_other_guides() {
    let directory = Directory::new("docs-flags");
    let mut commands_read = 0;
    for file in documents() {
        if ["README.md", "operator.md", "security.md"].iter().any(|own| file.ends_with(own)) {
            continue;
        }
        for block in blocks(&file).iter().filter(|block| matches!(&*block.language, "sh" | "json")) {
            assert_eq!(block.language, "sh", "{}: what is to be done with JSON here?", block.place);
            for command in commands(block) {
                let place = format!("{}: {command}", block.place);
                let known = NOT_RUN.iter().any(|(part, _)| command.contains(part));
                assert!(known, "what is to be done with {place}?");
                match daemon_words(&command) {
                    Some(words) => read_flags(&place, &words),
                    None if command.starts_with("tepui") => {
                        let words = words(&command);
                        let output =
                            Command::new(binary()).args(&words[1..]).arg("--help").current_dir(directory.path()).run();
                        assert!(output.status.success(), "{place}\n{}", said(&output));
                    }
                    None => {}
                }
                commands_read += 1;
            }
        }
    }
    assert!(commands_read > 20, "{commands_read}");
}

/// JSON within the text of all guides must be valid.
#[test]
fn json_in_the_text() {
    for file in documents() {
        for span in spans(&file).iter().filter(|span| span.starts_with("{\"")) {
            let read = serde_json::from_str::<Value>(span);
            assert!(read.is_ok(), "{}: {span}: {}", file.display(), read.unwrap_err());
        }
    }
}
