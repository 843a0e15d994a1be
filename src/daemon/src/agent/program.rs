//! The program that executors are: a small one of their own where it could be built into this one (`build.rs`), because the
//! start of an executor costs each task what its program touches; else this very program, which has them too.

use std::path::Path;

use containers::ProgramFile;

static BUILT_IN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tepui-executor"));

/// Opens the program; none if executors can only be started by this program's path.
pub(super) fn open() -> Option<ProgramFile> {
    if !BUILT_IN.is_empty() {
        match ProgramFile::in_memory(c"tepui-executor", BUILT_IN) {
            Ok(file) => return Some(file),
            Err(error) => tracing::info!("executors are run by the whole program; their own cannot be: {error}"),
        }
    }
    let file = ProgramFile::open(Path::new("/proc/self/exe"));
    file.inspect_err(|error| tracing::info!("executors are started by their program's path: {error}")).ok()
}
