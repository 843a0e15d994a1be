//! Defines the command line: every command with its flags. A command is implemented in the module of its name.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use daemon::flags::{Kind, Part};

#[cfg(not(feature = "lab"))]
use crate::absent;
#[cfg(feature = "video")]
use crate::demo;
#[cfg(feature = "lab")]
use crate::lab;
use crate::{advise, complete, daemons, dag, execute, framework, job, operate, read, registry, task, tls, top};

/// The first steps of a new user, below the list of commands.
const FIRST_STEPS: &str = "First steps:
  tepui local --agents=3                  a cluster on this machine; its page is at http://127.0.0.1:5050
  tepui execute --command='echo hello'    one task
  tepui framework binpack --role=batch    a framework for jobs: tepui job submit, list, show
  tepui agents, tasks, top                what is there; a command's --help has what can be done with it";

/// A two-level, resource-offer cluster manager that speaks every wire of Apache Mesos 1.11.
#[derive(Debug, Parser)]
#[command(name = "tepui", version, propagate_version = true, after_help = FIRST_STEPS)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a master; its flags are those of mesos-master (see: tepui master --help)
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Master(Flags),
    /// Run an agent; its flags are those of mesos-agent (see: tepui agent --help)
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Agent(Flags),
    /// Run a master and some agents on this machine, until interrupted
    Local(daemons::LocalArgs),
    /// Run a command, a task or a group of tasks on a cluster, and show their updates
    Execute(Box<execute::Args>),
    /// List the tasks of a cluster
    Tasks(read::tasks::Args),
    /// Print the output of tasks, run commands inside them, kill them, show what they use
    #[command(subcommand)]
    Task(task::Command),
    /// Watch agents, roles, frameworks and tasks of a cluster
    Top(top::Args),
    /// List the agents of a cluster; drain, deactivate, reactivate or remove one
    Agents(read::agents::Args),
    /// List the frameworks of a cluster; end one
    Frameworks(read::frameworks::Args),
    /// List the offers that frameworks hold now
    Offers(read::ListArgs),
    /// List the roles of a cluster with their weights and resources
    Roles(read::ListArgs),
    /// Show, set and remove the quota of roles
    Quota(operate::quota::Args),
    /// Show and set the weights of roles
    Weights(operate::weights::Args),
    /// Reserve resources of an agent for a role
    Reserve(operate::reserve::ReserveArgs),
    /// Return reserved resources of an agent
    Unreserve(operate::reserve::Args),
    /// List the reservations of agents
    Reservations(read::ListArgs),
    /// List persistent volumes; create, destroy, grow and shrink them
    Volumes(operate::volumes::Args),
    /// Schedule machines for maintenance, take them down and bring them up
    #[command(subcommand)]
    Maintenance(operate::maintenance::Action),
    /// Show, add and remove the masters of a group without ZooKeeper
    #[command(subcommand)]
    Masters(operate::masters::Action),
    /// Print the events of a cluster as they happen
    Events(read::events::Args),
    /// Show and set how much the master or an agent logs
    LogLevel(operate::log_level::Args),
    /// Show and set the policies of offer holding and refusal
    Policies(operate::policies::Args),
    /// Show how shares compare with fair shares
    Fairness(read::ListArgs),
    /// Explain why a framework receives no or few offers
    Explain(read::explain::Args),
    /// Measure what tasks use, and say what they should ask for
    Advise(advise::Args),
    /// Run one of the frameworks that come with tepui
    #[command(subcommand)]
    Framework(Box<framework::Command>),
    /// Submit jobs of stages, list and show them, cancel them
    #[command(subcommand)]
    Dag(dag::Command),
    /// Submit jobs to the bin-packing framework, list, change and stop them
    #[command(subcommand)]
    Job(job::Command),
    /// Show and export registries on disk; import those of Mesos masters
    #[command(subcommand)]
    Registry(registry::Command),
    /// Make certificates for TLS
    #[command(subcommand)]
    Tls(tls::Command),
    /// Run clusters under virtual time: scenarios, sweeps, comparisons
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(lab::LabCommand),
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true)]
    Lab(absent::Args),
    /// Start a small cluster, run real work on it, and show how it is shared
    #[cfg(feature = "video")]
    Demo(demo::Args),
    #[cfg(not(feature = "video"))]
    #[command(hide = true, disable_help_flag = true)]
    Demo(absent::Args),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all commands
    #[command(hide = true)]
    Man {
        /// Directory for the pages
        directory: PathBuf,
    },
}

/// The flags of a daemon, in Mesos's own form: --name=value.
#[derive(Debug, clap::Args)]
struct Flags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

impl Flags {
    /// Checks that no word is the name of a command: Mesos ignores arguments that are not flags, and a daemon would
    /// start.
    ///
    /// # Errors
    /// Returns the word, with the command that is meant.
    fn no_commands(&self, part: Part) -> Result<()> {
        let daemon = part.command();
        let (all, about) = (Cli::command(), format!("{daemon}s"));
        let of_daemon = all.find_subcommand(&about);
        for word in self.flags.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str()) {
            if of_daemon.is_some_and(|command| command.find_subcommand(word).is_some()) {
                bail!("'{word}' is not a flag of a new {daemon}: for one of the cluster, run `tepui {about} {word}`");
            }
            if all.find_subcommand(word).is_some() {
                bail!("'{word}' is not a flag of a new {daemon}: the command is `tepui {word}`");
            }
        }
        Ok(())
    }
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns what failed, and what to do about it.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Master(args) => args.no_commands(Part::Master).and_then(|()| daemons::master(args.flags)),
            Command::Agent(args) => args.no_commands(Part::Agent).and_then(|()| daemons::agent(args.flags)),
            Command::Local(args) => daemons::local(args),
            Command::Execute(args) => execute::run(*args),
            Command::Tasks(args) => read::tasks::run(&args),
            Command::Task(command) => command.run(),
            Command::Top(args) => top::run(&args),
            Command::Agents(read::agents::Args { action: Some(action), .. }) => action.run(),
            Command::Agents(args) => read::agents::run(&args),
            Command::Frameworks(read::frameworks::Args { action: Some(action), .. }) => action.run(),
            Command::Frameworks(args) => read::frameworks::run(&args),
            Command::Roles(args) => read::roles::run(&args),
            Command::Quota(args) => operate::quota::run(args),
            Command::Weights(args) => operate::weights::run(args),
            Command::Reserve(args) => operate::reserve::reserve(&args),
            Command::Unreserve(args) => operate::reserve::unreserve(&args),
            Command::Reservations(args) => operate::reserve::list(&args),
            Command::Volumes(args) => operate::volumes::run(args),
            Command::Maintenance(action) => action.run(),
            Command::Masters(action) => action.run(),
            Command::Events(args) => read::events::run(&args),
            Command::LogLevel(args) => operate::log_level::run(&args),
            Command::Policies(args) => operate::policies::run(args),
            Command::Fairness(args) => read::fairness::run(&args),
            Command::Offers(args) => read::offers::run(&args),
            Command::Explain(args) => read::explain::run(&args),
            Command::Advise(args) => advise::run(&args),
            Command::Framework(command) => command.run(),
            Command::Dag(command) => command.run(),
            Command::Job(command) => command.run(),
            Command::Registry(command) => command.run(),
            Command::Tls(command) => command.run(),
            #[cfg(feature = "lab")]
            Command::Lab(command) => command.run(),
            #[cfg(not(feature = "lab"))]
            Command::Lab(_) => absent::run("lab", "lab"),
            #[cfg(feature = "video")]
            Command::Demo(args) => demo::run(args),
            #[cfg(not(feature = "video"))]
            Command::Demo(_) => absent::run("demo", "video"),
            Command::Completions { shell } => {
                let (shells, name) = (clap_complete::env::Shells::builtins(), shell.to_string());
                let completer = shells.completer(&name).with_context(|| format!("no script for {name}"))?;
                let mut script = Vec::new();
                completer.write_registration(complete::VARIABLE, "tepui", "tepui", "tepui", &mut script)?;
                read::print(String::from_utf8_lossy(&script).trim_end())
            }
            Command::Man { directory } => {
                clap_mangen::generate_to(whole(), &directory)
                    .with_context(|| format!("cannot write to '{}'", directory.display()))?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Returns all commands, with the flags of daemons, which clap does not read.
pub fn whole() -> clap::Command {
    let daemon = |part: Part| {
        let flags = part.groups().iter().flat_map(|group| group.flags.iter().map(move |flag| (group, flag)));
        let args = flags.map(|(group, flag)| {
            let arg = Arg::new(flag.name).long(flag.name).help(flag.described());
            let arg = arg.help_heading(group.about.trim().trim_end_matches('.'));
            match flag.kind {
                Kind::Bool => arg.action(ArgAction::SetTrue),
                _ => arg.require_equals(true).value_name("VALUE"),
            }
        });
        move |old: clap::Command| {
            let about = old.get_about().cloned().unwrap_or_default();
            clap::Command::new(part.command())
                .about(about)
                .disable_help_flag(true)
                .disable_version_flag(true)
                .args(args)
        }
    };
    Cli::command().mut_subcommand("master", daemon(Part::Master)).mut_subcommand("agent", daemon(Part::Agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn completions_and_pages_have_the_flags_of_daemons() {
        let mut all = whole();
        all.build();
        let names: Vec<&str> =
            all.find_subcommand("agent").unwrap().get_arguments().filter_map(Arg::get_long).collect();
        assert!(names.contains(&"isolation") && names.contains(&"help"), "{names:?}");
    }

    #[test]
    fn names_of_commands_start_no_daemon() {
        let check = |words: &[&str], part| {
            let flags = Flags { flags: words.iter().map(OsString::from).collect() };
            flags.no_commands(part).map_err(|error| error.to_string())
        };
        assert!(
            check(&["--work_dir=/x", "drain", "S0"], Part::Agent).unwrap_err().ends_with("run `tepui agents drain`")
        );
        assert!(check(&["tasks"], Part::Master).unwrap_err().ends_with("the command is `tepui tasks`"));
        assert_eq!(check(&["--work_dir=/x", "word", "--", "tasks"], Part::Master), Ok(()));
    }

    #[test]
    fn a_daemons_flags_are_passed_on_as_they_are() {
        let cli = Cli::try_parse_from(["tepui", "master", "--help", "--work_dir=/x", "--no-recover"]).unwrap();
        let Command::Master(args) = cli.command else { panic!("{cli:?}") };
        assert_eq!(args.flags, ["--help", "--work_dir=/x", "--no-recover"]);
    }
}
