//! `--max_connections`: the maximum number of connections of a daemon, so that descriptors are left for its own work.
//!
//! [`wire::Connections`] decides which connection is closed when there are too many.

use wire::Connections;

use crate::flags::{FlagError, Flags, NetworkFlags, Part};

const NAME: &str = "max_connections";
const ADVICE: &str =
    "to allow more, raise --max_connections, and the limit of open files (LimitNOFILE=, ulimit -n) with it";

/// Minimum number of descriptors for other purposes than connections, regardless of the flag.
const RESERVE: u64 = 128;
/// Maximum number of connections without the flag: 100,000 agents of a master and as many clients, in some gigabytes of
/// memory.
const MOST: u64 = 300_000;
/// Minimum number of connections of a daemon in a [local cluster](crate::local).
const FEWEST: u64 = 64;

/// Returns the default number of connections of a daemon that may open this many files.
///
/// A master needs most of its descriptors for connections: two for each agent. Beside them it has its log, its registry
/// and files that clients read.
///
/// An agent needs descriptors for each running container (processes, streams, cgroups) and more for a moment while it
/// launches one, one or two connections for each executor, and few other connections. So each gets one half.
fn usual(part: Part, open_files: u64) -> u64 {
    let reserve = match part {
        Part::Master => (open_files / 10).max(256).min(open_files / 2),
        Part::Agent => open_files / 2,
    };
    (open_files - reserve).min(MOST)
}

/// Creates the connections of a daemon with these flags, and sets the limit in the flags if it was not set.
///
/// # Errors
/// The flag leaves no connections, or too few other descriptors.
pub(crate) fn connections(flags: &mut Flags) -> Result<Connections, FlagError> {
    // Reading the limit cannot fail: the kernel reports the limits of every process.
    let open_files = wire::open_files_limit().unwrap_or(u64::MAX);
    let given = NetworkFlags::read(flags)?.max_connections;
    let limit = limit(flags.part(), given, open_files)?;
    flags.set(NAME, &limit.to_string())?;
    Ok(Connections::new(usize::try_from(limit).unwrap_or(usize::MAX), ADVICE))
}

fn limit(part: Part, given: Option<u64>, open_files: u64) -> Result<u64, FlagError> {
    let refused = |why: String| Err(FlagError::Refused { name: NAME, why });
    match given {
        None => Ok(usual(part, open_files)),
        Some(0) => refused("at least one connection must be allowed".to_owned()),
        Some(wanted) if wanted.saturating_add(RESERVE) > open_files => refused(format!(
            "{wanted} connections leave too few of {open_files} open files for everything else: allow at most {}, or raise the \
             limit of open files (LimitNOFILE=, ulimit -n)",
            open_files.saturating_sub(RESERVE)
        )),
        Some(wanted) => Ok(wanted),
    }
}

/// Sets the limit of one of several daemons in a process to its share.
///
/// # Errors
/// The flags are of a daemon without connections.
pub(crate) fn share(flags: &mut Flags, daemons: usize) -> Result<(), FlagError> {
    let open_files = wire::open_files_limit().unwrap_or(u64::MAX);
    let share = open_files / (daemons as u64).max(1);
    flags.set(NAME, &usual(flags.part(), share).max(FEWEST).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_other_work() {
        for (open_files, master, agent) in [
            (256, 128, 128),
            (400, 200, 200),
            (1024, 768, 512),
            (20_000, 18_000, 10_000),
            (1 << 20, 300_000, 300_000),
            (0, 0, 0),
        ] {
            assert_eq!(limit(Part::Master, None, open_files).unwrap(), master, "a master, {open_files} files");
            assert_eq!(limit(Part::Agent, None, open_files).unwrap(), agent, "an agent, {open_files} files");
        }
    }

    #[test]
    fn the_flag_is_checked_against_the_limit_of_open_files() {
        assert_eq!(limit(Part::Agent, Some(50), 1024).unwrap(), 50);
        assert_eq!(limit(Part::Agent, Some(896), 1024).unwrap(), 896);
        for (value, why) in [(0, "at least one connection"), (897, "allow at most 896"), (99_999_999_999, "896")] {
            let error = limit(Part::Agent, Some(value), 1024).unwrap_err().to_string();
            assert!(error.contains("--max_connections") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_limit_is_among_the_flags() {
        let mut flags = Flags::defaults(Part::Agent);
        let connections = connections(&mut flags).unwrap();
        let shown = NetworkFlags::read(&flags).unwrap().max_connections;
        assert_eq!(shown, Some(connections.counts().limit as u64));
    }
}
