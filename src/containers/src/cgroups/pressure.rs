//! How long a group's processes have waited for processors, memory and disks: the kernel's pressure stall information.
//! Version 1 does not count it for groups.

use super::{Controller, Group, read};

/// Shares of time in percent, and a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalled {
    /// Over the last 10, 60 and 300 seconds.
    pub averages: [f64; 3],
    /// Altogether, in microseconds.
    pub total: u64,
}

/// One kind of pressure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// At least one process waited.
    pub some: Stalled,
    /// All of them waited.
    pub full: Option<Stalled>,
}

/// All kinds that this kernel counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressures {
    /// Processors.
    pub cpu: Option<Pressure>,
    /// Memory.
    pub memory: Option<Pressure>,
    /// Block devices.
    pub io: Option<Pressure>,
}

impl Group {
    /// The pressure in this group; none with version 1, and where the kernel does not count it.
    pub fn pressures(&self) -> Option<Pressures> {
        let directory = self.directory(Controller::Freezer).filter(|_| self.is_v2())?;
        let of = |file: &str| parse(&read(&directory.join(file))?);
        let all = Pressures { cpu: of("cpu.pressure"), memory: of("memory.pressure"), io: of("io.pressure") };
        (all != Pressures::default()).then_some(all)
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and perhaps a line of `full`.
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
