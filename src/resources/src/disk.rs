//! The disk information of a resource: source, persistence, volume.

use std::fmt;
use std::sync::Arc;

use protos::mesos;
use protos::mesos::resource::DiskInfo;
use protos::mesos::resource::disk_info::Source;
use protos::mesos::resource::disk_info::source::Type;

use crate::labels;

/// Type of a disk's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// A directory of the agent; its disk can be divided.
    Path,
    /// A whole file system; its disk cannot be divided.
    Mount,
    /// A raw device of a resource provider.
    Block,
    /// Unformatted storage of a resource provider.
    Raw,
}

/// The disk information of a resource. Cheap to clone.
///
/// Equality ignores the volume, which states how a disk is used and not which disk it is, and of the persistence
/// compares the id only.
#[derive(Clone, Debug)]
pub struct Disk(Arc<DiskInfo>);

impl Disk {
    /// Returns the message.
    #[must_use]
    pub fn as_proto(&self) -> &DiskInfo {
        &self.0
    }

    /// Returns the type of the source; `None` for the root disk (`work_dir`).
    #[must_use]
    pub fn source(&self) -> Option<SourceKind> {
        match self.0.source.as_ref()?.r#type() {
            Type::Path => Some(SourceKind::Path),
            Type::Mount => Some(SourceKind::Mount),
            Type::Block => Some(SourceKind::Block),
            Type::Raw => Some(SourceKind::Raw),
            Type::Unknown => None,
        }
    }

    /// Returns the root directory of a PATH or MOUNT source.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        let source = self.0.source.as_ref()?;
        match source.r#type() {
            Type::Path => source.path.as_ref()?.root.as_deref(),
            Type::Mount => source.mount.as_ref()?.root.as_deref(),
            _ => None,
        }
    }

    /// Returns the id of the source, for disks of a resource provider.
    #[must_use]
    pub fn source_id(&self) -> Option<&str> {
        self.0.source.as_ref()?.id.as_deref()
    }

    /// Returns the profile of the source, for disks of a resource provider.
    #[must_use]
    pub fn profile(&self) -> Option<&str> {
        self.0.source.as_ref()?.profile.as_deref()
    }

    /// Returns the persistence id, if this is a persistent volume.
    #[must_use]
    pub fn persistence_id(&self) -> Option<&str> {
        self.0.persistence.as_ref().map(|p| p.id.as_str())
    }

    /// Returns the principal that created the persistent volume.
    #[must_use]
    pub fn persistence_principal(&self) -> Option<&str> {
        self.0.persistence.as_ref()?.principal.as_deref()
    }

    /// Returns the volume, which states how a container uses the disk.
    #[must_use]
    pub fn volume(&self) -> Option<&mesos::Volume> {
        self.0.volume.as_ref()
    }

    /// Returns whether the disk cannot be divided: MOUNT, BLOCK, and RAW with an id.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        match self.source() {
            Some(SourceKind::Mount | SourceKind::Block) => true,
            Some(SourceKind::Raw) => self.source_id().is_some(),
            Some(SourceKind::Path) | None => false,
        }
    }

    /// Returns the disk information without persistence and volume; `None` if no information remains.
    #[must_use]
    pub fn without_volume(&self) -> Option<Self> {
        let source = self.0.source.clone()?;
        Some(DiskInfo { persistence: None, volume: None, source: Some(source) }.into())
    }
}

impl From<DiskInfo> for Disk {
    fn from(info: DiskInfo) -> Self {
        Self(Arc::new(info))
    }
}

impl PartialEq for Disk {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        let same_source = match (&self.0.source, &other.0.source) {
            (None, None) => true,
            (Some(a), Some(b)) => same_source(a, b),
            _ => false,
        };
        same_source && self.persistence_id() == other.persistence_id()
    }
}

impl Eq for Disk {}

fn same_source(a: &Source, b: &Source) -> bool {
    let same_metadata = match (&a.metadata, &b.metadata) {
        (None, None) => true,
        (Some(a), Some(b)) => labels::same(a, b),
        _ => false,
    };
    a.r#type == b.r#type
        && a.path == b.path
        && a.mount == b.mount
        && a.vendor == b.vendor
        && a.id == b.id
        && a.profile == b.profile
        && same_metadata
}

/// Formats the source, the persistence id and the volume: `MOUNT:/mnt/a,id1:path`.
impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.0.source {
            write_source(source, self.root(), f)?;
        }
        if let Some(id) = self.persistence_id() {
            let comma = if self.0.source.is_some() { "," } else { "" };
            write!(f, "{comma}{id}")?;
        }
        if let Some(volume) = self.volume() {
            write!(f, ":{}", VolumeText(volume))?;
        }
        Ok(())
    }
}

fn write_source(source: &Source, root: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(source.r#type().as_str_name())?;
    if source.id.is_some() || source.profile.is_some() {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        return write!(f, "({},{},{})", text(&source.vendor), text(&source.id), text(&source.profile));
    }
    match root {
        Some(root) => write!(f, ":{root}"),
        None => Ok(()),
    }
}

struct VolumeText<'a>(&'a mesos::Volume);

impl fmt::Display for VolumeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (volume, path) = (self.0, &self.0.container_path);
        let mode = if volume.mode() == mesos::volume::Mode::Rw { "rw" } else { "ro" };
        match &volume.host_path {
            Some(host_path) => write!(f, "{host_path}:{path}:{mode}"),
            None => f.write_str(path),
        }
    }
}
