//! The order that a template receives about its next copy, as bytes between two processes of one program.
//!
//! Both sides are of the same build, so the form may change at any time. Open files are passed beside it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::isolation::{Isolation, Mount, MountPath, Namespaces};
use crate::{Program, Rlimit, RlimitKind, Spec, User};

/// The error for bytes that are not an order: they end too early, or have an unknown value.
#[derive(Debug)]
pub(super) struct Malformed;

/// How a copy enters its control group; the files come with the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    None,
    /// The copy writes itself into this many files.
    Files(u8),
    /// The copy is created in a control group.
    Born,
}

/// The beginning of an order: what the template must know to create the copy, which parses the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) line: bool,
    /// Whether the open working directory comes with the order.
    pub(super) directory: bool,
    pub(super) group: Group,
    /// Namespaces to create with the copy: flags of clone(2).
    pub(super) namespaces: libc::c_int,
}

impl Head {
    /// Parses the head of an order. Returns it and the rest.
    pub(super) fn read(bytes: &[u8]) -> Result<(Head, &[u8]), Malformed> {
        let mut from = Reader(bytes);
        let (line, directory) = (from.flag()?, from.flag()?);
        let group = match from.number()? {
            0 => Group::None,
            1 => Group::Born,
            count => Group::Files(u8::try_from(count - 2).map_err(|_| Malformed)?),
        };
        let namespaces = from.small()?.cast_signed();
        Ok((Head { line, directory, group, namespaces }, from.0))
    }
}

/// Returns whether a copy can have the properties of the spec. Excluded are those that the kernel grants only to a
/// process that executes a program, and those that are rare.
pub(super) fn suits(spec: &Spec) -> bool {
    let Isolation {
        enter,
        network,
        tasks,
        root,
        hostname,
        capabilities,
        no_new_privileges,
        seccomp,
        terminal,
        enter_which: _,
        namespaces: _,
        cgroup: _,
        mounts: _,
        oom_score: _,
    } = &spec.isolation;
    let rare = enter.is_some() || network.is_some() || tasks.is_some() || root.is_some() || hostname.is_some();
    let rights = capabilities.is_some() || *no_new_privileges || !seccomp.is_empty();
    !rare && !rights && !terminal && !spec.die_with_parent && spec.new_session && spec.stdin.is_none()
}

/// Encodes the order for a spec that [`suits`].
pub(super) fn write(spec: &Spec, head: Head) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(4096));
    out.number(u64::from(head.line));
    out.number(u64::from(head.directory));
    out.number(match head.group {
        Group::None => 0,
        Group::Born => 1,
        Group::Files(count) => 2 + u64::from(count),
    });
    out.number(u64::from(head.namespaces.cast_unsigned()));
    let (Program::Open { argv, .. } | Program::Argv { argv, .. }) = &spec.program else { return out.0 };
    out.list(argv, |out, word| out.bytes(word.as_bytes()));
    out.list(&spec.environment, |out, (name, value)| {
        out.bytes(name.as_bytes());
        out.bytes(value.as_bytes());
    });
    out.option(spec.working_dir.as_ref(), |out, path| out.path(path));
    out.option(spec.user.as_ref(), |out, user| {
        out.number(u64::from(user.uid));
        out.number(u64::from(user.gid));
        out.list(&user.groups, |out, group| out.number(u64::from(*group)));
    });
    out.list(&spec.rlimits, |out, limit| {
        out.number(limit.kind as u64);
        out.option(limit.soft.as_ref(), |out, value| out.number(*value));
        out.option(limit.hard.as_ref(), |out, value| out.number(*value));
    });
    let isolation = &spec.isolation;
    let Namespaces { mount, pid, ipc, uts, network } = isolation.namespaces;
    for set in [mount, pid, ipc, uts, network] {
        out.number(u64::from(set));
    }
    out.list(&isolation.mounts, Writer::mount);
    out.option(isolation.oom_score.as_ref(), |out, score| out.bytes(score.to_string().as_bytes()));
    out.0
}

/// Decodes an order that [`fn@write`] has encoded. The caller adds the streams and the group.
pub(super) fn read(bytes: &[u8]) -> Result<(Head, Spec), Malformed> {
    let (head, rest) = Head::read(bytes)?;
    let mut from = Reader(rest);
    let argv = from.list(Reader::text)?;
    let file = argv.first().cloned().ok_or(Malformed)?;
    let mut spec = Spec::new(Program::Argv { file, argv });
    spec.environment = from.list(|from| Ok((from.text()?, from.text()?)))?;
    spec.working_dir = from.option(Reader::path)?;
    spec.user = from.option(|from| {
        let (uid, gid) = (from.small()?, from.small()?);
        Ok(User { name: String::new(), uid, gid, groups: from.list(Reader::small)? })
    })?;
    spec.rlimits = from.list(|from| {
        let kind = of_number(from.number()?)?;
        Ok(Rlimit { kind, soft: from.option(Reader::number)?, hard: from.option(Reader::number)? })
    })?;
    let [mount, pid, ipc, uts, network] = [from.flag()?, from.flag()?, from.flag()?, from.flag()?, from.flag()?];
    spec.isolation.namespaces = Namespaces { mount, pid, ipc, uts, network };
    spec.isolation.mounts = from.list(Reader::mount)?;
    let score = from.option(Reader::string)?;
    spec.isolation.oom_score = score.map(|text| text.parse().map_err(|_| Malformed)).transpose()?;
    Ok((head, spec))
}

fn of_number(number: u64) -> Result<RlimitKind, Malformed> {
    let index = usize::try_from(number).map_err(|_| Malformed)?;
    RlimitKind::ALL.get(index).copied().ok_or(Malformed)
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut one: impl FnMut(&mut Writer, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| one(self, item));
    }

    fn option<T>(&mut self, item: Option<&T>, mut one: impl FnMut(&mut Writer, &T)) {
        self.list(item.map_or(&[][..], std::slice::from_ref), |out, item| one(out, item));
    }

    fn place(&mut self, place: &MountPath) {
        self.path(&place.base);
        self.path(&place.inside);
    }

    fn mount(&mut self, mount: &Mount) {
        match mount {
            Mount::Bind { source, target, read_only } => {
                self.number(0);
                self.place(source);
                self.place(target);
                self.number(u64::from(*read_only));
            }
            Mount::Memory { target, options } => self.file_system(1, target, options),
            Mount::Overlay { target, options } => self.file_system(2, target, options),
            Mount::Terminals { target } => self.file_system(3, target, ""),
            Mount::Processes { target } => self.file_system(4, target, ""),
            Mount::Aufs { target, options } => self.file_system(5, target, options),
        }
    }

    fn file_system(&mut self, kind: u64, target: &Path, options: &str) {
        self.number(kind);
        self.path(target);
        self.bytes(options.as_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Result<u64, Malformed> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(u64::from_ne_bytes(*number))
    }

    fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        Ok(self.number()? != 0)
    }

    fn text(&mut self) -> Result<OsString, Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(OsString::from_vec(text.to_vec()))
    }

    fn string(&mut self) -> Result<String, Malformed> {
        self.text()?.into_string().map_err(|_| Malformed)
    }

    fn path(&mut self) -> Result<PathBuf, Malformed> {
        self.text().map(PathBuf::from)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        // Each item takes at least eight bytes: a wrong number does not cause a large allocation.
        if count > self.0.len() as u64 {
            return Err(Malformed);
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn option<T>(&mut self, one: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Option<T>, Malformed> {
        Ok(self.list(one)?.pop())
    }

    fn place(&mut self) -> Result<MountPath, Malformed> {
        Ok(MountPath { base: self.path()?, inside: self.path()? })
    }

    fn mount(&mut self) -> Result<Mount, Malformed> {
        let kind = self.number()?;
        if kind == 0 {
            return Ok(Mount::Bind { source: self.place()?, target: self.place()?, read_only: self.flag()? });
        }
        let (target, options) = (self.path()?, self.string()?);
        match kind {
            1 => Ok(Mount::Memory { target, options }),
            2 => Ok(Mount::Overlay { target, options }),
            3 => Ok(Mount::Terminals { target }),
            4 => Ok(Mount::Processes { target }),
            5 => Ok(Mount::Aufs { target, options }),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RlimitKind;

    fn full() -> Spec {
        let mut spec = Spec::new(Program::Argv { file: "p".into(), argv: vec!["p".into(), "".into()] });
        spec.environment = vec![("A".into(), "1".into()), ("B".into(), "".into())];
        spec.working_dir = Some("/tmp".into());
        spec.user = Some(User { name: String::new(), uid: 7, gid: 8, groups: vec![8, 9] });
        spec.rlimits = vec![Rlimit { kind: RlimitKind::Stack, soft: Some(1), hard: None }];
        spec.isolation.namespaces = Namespaces { pid: true, mount: true, ..Namespaces::default() };
        spec.isolation.mounts = vec![
            Mount::Bind { source: MountPath::trusted("/a"), target: MountPath::trusted("/b"), read_only: true },
            Mount::Memory { target: "/c".into(), options: "size=1m".into() },
            Mount::Overlay { target: "/d".into(), options: "x".into() },
            Mount::Aufs { target: "/d".into(), options: "y".into() },
            Mount::Terminals { target: "/e".into() },
            Mount::Processes { target: "/proc".into() },
        ];
        spec.isolation.oom_score = Some(-5);
        spec
    }

    #[test]
    fn what_is_written_is_read() {
        for (group, line) in [(Group::None, true), (Group::Born, false), (Group::Files(3), true)] {
            let spec = full();
            let written = Head { line, directory: !line, group, namespaces: spec.isolation.namespaces.flags() };
            let (head, read) = read(&write(&spec, written)).unwrap();
            assert_eq!(head, written);
            assert_eq!(format!("{read:?}"), format!("{spec:?}"));
        }
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let bytes = write(&full(), Head { line: true, directory: false, group: Group::None, namespaces: 0 });
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn what_a_copy_cannot_be() {
        assert!(suits(&full()));
        assert!(!suits(&Spec { die_with_parent: true, ..full() }));
        assert!(!suits(&Spec { new_session: false, ..full() }));
        let change = |change: &dyn Fn(&mut Isolation)| {
            let mut spec = full();
            change(&mut spec.isolation);
            suits(&spec)
        };
        assert!(!change(&|isolation| isolation.no_new_privileges = true));
        assert!(!change(&|isolation| isolation.root = Some("/r".into())));
        assert!(!change(&|isolation| isolation.seccomp = vec![[].into()]));
    }
}
