//! The devices that a group of version 2 may use: a BPF program that the kernel runs before it opens or creates a
//! device (bpf(2)).
//!
//! Version 1 has files for the same rules. The rules of a container are decided elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use super::{CgroupError, failed};

/// `BPF_PROG_LOAD`, `BPF_PROG_ATTACH`, `BPF_PROG_TYPE_CGROUP_DEVICE` and `BPF_CGROUP_DEVICE` of linux/bpf.h.
const LOAD: libc::c_int = 5;
const ATTACH: libc::c_int = 8;
const PROGRAM_OF_DEVICES: u32 = 15;
const AT_DEVICES: u32 = 6;
/// `BPF_F_ALLOW_OVERRIDE`: attaching a program replaces the group's last one, in one step. Programs of outer groups
/// that were attached with `BPF_F_ALLOW_MULTI`, as systemd's units do, run in any case.
const REPLACEABLE: u32 = 1;

/// The kernel's bits for creating, reading and writing a device.
const RIGHTS: [(char, i32); 3] = [('m', 1), ('r', 2), ('w', 4)];
const ALL_RIGHTS: i32 = 7;

/// A line of `devices.allow`: `c 1:3 rwm`, with `*` for any number, or `a` for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// 1 for block devices and 2 for character devices, as in linux/bpf.h; `None` for both.
    kind: Option<i32>,
    major: Option<u32>,
    minor: Option<u32>,
    rights: i32,
}

impl Rule {
    fn parse(text: &str) -> Option<Rule> {
        let mut words = text.split_ascii_whitespace();
        let kind = match words.next()? {
            "a" => None,
            "b" => Some(1),
            "c" => Some(2),
            _ => return None,
        };
        let Some(numbers) = words.next() else {
            return kind.is_none().then_some(Rule { kind, major: None, minor: None, rights: ALL_RIGHTS });
        };
        let (major, minor) = numbers.split_once(':')?;
        let number = |text: &str| if text == "*" { Some(None) } else { text.parse().ok().map(Some) };
        let right = |letter: char| RIGHTS.iter().find(|(known, _)| *known == letter).map(|(_, bit)| *bit);
        let rights = words.next().unwrap_or_default().chars().try_fold(0, |all, letter| Some(all | right(letter)?))?;
        Some(Rule { kind, major: number(major)?, minor: number(minor)?, rights })
    }
}

/// A BPF instruction, as in linux/bpf.h: the lower half of `registers` is the destination, the upper half the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Step {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// Registers: the result for the kernel, the context from the kernel, and the parts of the context.
const ANSWER: u8 = 0;
const QUESTION: u8 = 1;
const KIND: u8 = 2;
const WANTED: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;
const SPARE: u8 = 6;

impl Step {
    /// Loads 32 bits of the context.
    const fn read(to: u8, offset: i16) -> Step {
        Step { code: 0x61, registers: QUESTION << 4 | to, offset, value: 0 }
    }

    const fn copy(to: u8, from: u8) -> Step {
        Step { code: 0xbf, registers: from << 4 | to, offset: 0, value: 0 }
    }

    const fn set(to: u8, value: i32) -> Step {
        Step { code: 0xb7, registers: to, offset: 0, value }
    }

    const fn and(to: u8, value: i32) -> Step {
        Step { code: 0x57, registers: to, offset: 0, value }
    }

    const fn shift_right(to: u8, bits: i32) -> Step {
        Step { code: 0x77, registers: to, offset: 0, value: bits }
    }

    /// Skips `offset` instructions unless the lower 32 bits of the register are `value`.
    const fn skip_unless(register: u8, value: i32, offset: i16) -> Step {
        Step { code: 0x56, registers: register, offset, value }
    }

    const END: Step = Step { code: 0x95, registers: 0, offset: 0, value: 0 };
}

/// Returns the program that allows the accesses that at least one of the rules allows, and no others.
fn program(rules: &[Rule]) -> Vec<Step> {
    // The context has three numbers: the access (upper half) with the type (lower half), and the device's major and
    // minor numbers.
    let mut steps = vec![
        Step::read(KIND, 0),
        Step::copy(WANTED, KIND),
        Step::and(KIND, 0xffff),
        Step::shift_right(WANTED, 16),
        Step::read(MAJOR, 4),
        Step::read(MINOR, 8),
    ];
    for rule in rules {
        let mut checks = Vec::new();
        checks.extend(rule.kind.map(|kind| (KIND, kind)));
        // Device numbers are unsigned 32-bit numbers, and are compared as bits.
        checks.extend(rule.major.map(|number| (MAJOR, number as i32)));
        checks.extend(rule.minor.map(|number| (MINOR, number as i32)));
        let last = [Step::set(ANSWER, 1), Step::END];
        let rights = [Step::copy(SPARE, WANTED), Step::and(SPARE, ALL_RIGHTS & !rule.rights)];
        let mut left = checks.len() + rights.len() + 1 + last.len();
        let mut skip = |register, value| {
            left -= 1;
            // A rule has at most nine instructions.
            Step::skip_unless(register, value, left as i16)
        };
        steps.extend(checks.into_iter().map(|(register, value)| skip(register, value)));
        steps.extend(rights);
        steps.push(Step::skip_unless(SPARE, 0, last.len() as i16));
        steps.extend(last);
    }
    steps.extend([Step::set(ANSWER, 0), Step::END]);
    steps
}

/// The argument of bpf(2) for `BPF_PROG_LOAD`. Later kernels have more fields, which are then zero.
#[repr(C)]
struct LoadCall {
    kind: u32,
    steps: u32,
    program: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
}

/// The argument of bpf(2) for `BPF_PROG_ATTACH`.
#[repr(C)]
struct AttachCall {
    group: libc::c_int,
    program: libc::c_int,
    place: u32,
    flags: u32,
}

fn load(steps: &[Step]) -> io::Result<OwnedFd> {
    let count = u32::try_from(steps.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let call = LoadCall {
        kind: PROGRAM_OF_DEVICES,
        steps: count,
        program: steps.as_ptr().expose_provenance() as u64,
        license: c"Apache-2.0".as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `size_of` bytes of `call`, which has no padding, the text up to its zero, and `steps`
    // instructions of eight bytes each, which is what a `Step` has; all of it outlives the call, and nothing is
    // written.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, LOAD, &raw const call, size_of::<LoadCall>()) };
    let fd = libc::c_int::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attach(group: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let call =
        AttachCall { group: group.as_raw_fd(), program: program.as_raw_fd(), place: AT_DEVICES, flags: REPLACEABLE };
    // SAFETY: the kernel reads `size_of` bytes of `call`, which has no padding and outlives the call, and writes
    // nothing.
    match unsafe { libc::syscall(libc::SYS_bpf, ATTACH, &raw const call, size_of::<AttachCall>()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Checks that this kernel lets this process load device programs.
///
/// # Errors
/// The kernel's reason to refuse them.
pub(super) fn check() -> Result<(), CgroupError> {
    load(&program(&[])).map(drop).map_err(CgroupError::NoDeviceFilter)
}

/// Allows a group the devices of these lines of `devices.allow`, and no others. Replaces earlier rules.
///
/// # Errors
/// An invalid line, or an error of the system.
pub(super) fn allow<'a>(directory: &Path, lines: impl Iterator<Item = &'a str>) -> Result<(), CgroupError> {
    let rule = |line| Rule::parse(line).ok_or(io::Error::from(io::ErrorKind::InvalidInput));
    let set = || {
        let rules: Vec<Rule> = lines.map(rule).collect::<io::Result<_>>()?;
        attach(File::open(directory)?.as_fd(), load(&program(&rules))?.as_fd())
    };
    set().map_err(failed("restrict the devices of the cgroup", directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets a program as the kernel does, for the few instructions that are used here, and returns its result.
    fn answer(steps: &[Step], question: [u32; 3]) -> u64 {
        let (mut registers, mut at) = ([0_u64; 11], 0);
        loop {
            let Step { code, registers: both, offset, value } = steps[at];
            let (to, from) = (usize::from(both & 15), usize::from(both >> 4));
            at += 1;
            match code {
                0x61 => registers[to] = u64::from(question[offset as usize / 4]),
                0xbf => registers[to] = registers[from],
                0xb7 => registers[to] = value as u64,
                0x57 => registers[to] &= value as u64,
                0x77 => registers[to] >>= value,
                0x56 if registers[to] as u32 != value as u32 => at += offset as usize,
                0x56 => {}
                0x95 => return registers[0],
                other => panic!("{other:#x}"),
            }
        }
    }

    fn allows(lines: &[&str], kind: u32, numbers: (u32, u32), wanted: u32) -> bool {
        let rules: Vec<Rule> = lines.iter().map(|line| Rule::parse(line).unwrap()).collect();
        answer(&program(&rules), [wanted << 16 | kind, numbers.0, numbers.1]) == 1
    }

    #[test]
    fn lines_are_what_version_1_takes() {
        let rule = |kind, major, minor, rights| Some(Rule { kind, major, minor, rights });
        assert_eq!(Rule::parse("c 1:3 rwm"), rule(Some(2), Some(1), Some(3), 7));
        assert_eq!(Rule::parse("b *:* m"), rule(Some(1), None, None, 1));
        assert_eq!(Rule::parse("c 136:* rw"), rule(Some(2), Some(136), None, 6));
        assert_eq!(Rule::parse("a"), rule(None, None, None, 7));
        for wrong in ["", "x 1:3 r", "c", "c 1 r", "c 1:x r", "c 1:3 q", "c -1:3 r"] {
            assert_eq!(Rule::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_what_a_rule_allows() {
        const MAKE: u32 = 1;
        const READ: u32 = 2;
        const WRITE: u32 = 4;
        let lines = ["c *:* m", "c 1:3 rwm", "b 8:1 r", "c 4294967295:0 w"];
        let (block, characters) = (1, 2);
        assert!(allows(&lines, characters, (1, 3), READ | WRITE));
        assert!(allows(&lines, characters, (1, 3), MAKE | READ | WRITE));
        assert!(allows(&lines, characters, (9, 9), MAKE));
        assert!(!allows(&lines, characters, (9, 9), MAKE | READ));
        assert!(!allows(&lines, characters, (1, 4), READ));
        assert!(!allows(&lines, block, (1, 3), READ));
        assert!(allows(&lines, block, (8, 1), READ));
        assert!(!allows(&lines, block, (8, 1), READ | WRITE));
        assert!(!allows(&lines, block, (8, 1), MAKE));
        assert!(allows(&lines, characters, (u32::MAX, 0), WRITE));
        assert!(allows(&["a"], block, (8, 0), MAKE | READ | WRITE));
        assert!(!allows(&[], characters, (1, 3), READ));
    }
}
