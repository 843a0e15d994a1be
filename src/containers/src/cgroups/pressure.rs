//! Pressure stall information of the kernel: how long a group's processes have waited for processors, memory and disks.
//! Version 1 does not count it for groups.

use super::{Controller, Group, read};

/// Time for which processes waited: shares in percent, and a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalled {
    /// Shares of the last 10, 60 and 300 seconds, in percent.
    pub averages: [f64; 3],
    /// Total time, in microseconds.
    pub total: u64,
}

/// The pressure on one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Time for which at least one process waited.
    pub some: Stalled,
    /// Time for which all processes waited.
    pub full: Option<Stalled>,
}

/// The pressure on each resource for which this kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressures {
    /// Pressure on processors.
    pub cpu: Option<Pressure>,
    /// Pressure on memory.
    pub memory: Option<Pressure>,
    /// Pressure on block devices.
    pub io: Option<Pressure>,
}

impl Group {
    /// Returns the pressure in this group; `None` with version 1, and where the kernel does not count it.
    pub fn pressures(&self) -> Option<Pressures> {
        let directory = self.directory(Controller::Freezer).filter(|_| self.is_v2())?;
        let of = |file: &str| parse(&read(&directory.join(file))?);
        let all = Pressures { cpu: of("cpu.pressure"), memory: of("memory.pressure"), io: of("io.pressure") };
        (all != Pressures::default()).then_some(all)
    }
}

/// Parses a file such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, with or without a line of `full`.
fn parse(text: &str) -> Option<Pressure> {
    let line = |kind: &str| {
        let words = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
        let value = |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let average = |name: &str| value(name)?.parse().ok();
        let averages = [average("avg10")?, average("avg60")?, average("avg300")?];
        Some(Stalled { averages, total: value("total")?.trim().parse().ok()? })
    };
    Some(Pressure { some: line("some")?, full: line("full") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let text =
            "some avg10=1.50 avg60=0.25 avg300=0.00 total=1234\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=99\n";
        let found = parse(text).unwrap();
        assert_eq!((found.some.averages, found.some.total), ([1.5, 0.25, 0.0], 1234));
        assert_eq!(found.full.unwrap().total, 99);
        assert_eq!(parse("some avg10=0 avg60=0 avg300=0 total=7\n").unwrap().full, None);
        assert!(parse("").is_none() && parse("some avg10=x").is_none());
    }
}
