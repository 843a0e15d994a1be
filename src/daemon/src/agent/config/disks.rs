//! Prepares the disks that `--resources` names.

use std::path::Path;

use resources::{Resource, Resources, SourceKind};

use crate::flags::FlagError;

/// Prepares the disks of `--resources`: directories are created, mounts must exist (RES-40).
///
/// # Errors
/// The first one that cannot be used.
pub(super) fn prepare(resources: &Resources, work_dir: &Path) -> Result<(), FlagError> {
    let refused = |why: String| FlagError::Refused { name: "resources", why };
    for disk in resources.iter().filter_map(Resource::disk) {
        let Some(root) = disk.root().map(|root| work_dir.join(root)) else { continue };
        let shown = root.display();
        match disk.source() {
            Some(SourceKind::Path) => store::create_directories(&root, store::Access::All)
                .map_err(|error| refused(format!("the disk '{shown}' cannot be created: {error}")))?,
            Some(SourceKind::Mount) => {
                let real = root.canonicalize();
                let real = real.map_err(|error| refused(format!("the disk '{shown}' cannot be used: {error}")))?;
                if !crate::host::is_mount_point(&real) {
                    return Err(refused(format!("the disk '{shown}' is not a mount point")));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
