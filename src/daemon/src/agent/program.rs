//! The program that executors run: the agent's own, which has the command `executor`, or a small static one that the
//! build has packed into it (`build.rs`).
//!
//! The launcher of the crate `containerizer` starts executors as copies of one process that runs this program, so the
//! cost of starting the program is paid once for each agent.

use std::io::{self, Read};
use std::path::Path;

use containers::ProgramFile;
use flate2::read::ZlibDecoder;

/// The packed program; empty if the build had none.
static BUILT_IN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tepui-executor.z"));

/// Opens the program. Returns `None` if the file cannot be opened; executors then start by the path of the agent's
/// program.
pub(super) fn open() -> Option<ProgramFile> {
    if !BUILT_IN.is_empty() {
        match unpacked().and_then(|program| ProgramFile::in_memory(c"tepui-executor", &program)) {
            Ok(file) => return Some(file),
            Err(error) => {
                tracing::info!(
                    "executors run the agent's own program, because the embedded one cannot be used: {error}"
                )
            }
        }
    }
    let file = ProgramFile::open(Path::new("/proc/self/exe"));
    file.inspect_err(|error| {
        tracing::info!("executors run the agent's program by its path, because it cannot be opened: {error}")
    })
    .ok()
}

/// Returns whether the program runs in any root filesystem, also in one without a C library.
pub(super) fn is_static() -> bool {
    !BUILT_IN.is_empty() || cfg!(target_feature = "crt-static")
}

fn unpacked() -> io::Result<Vec<u8>> {
    let mut program = Vec::new();
    ZlibDecoder::new(BUILT_IN).read_to_end(&mut program)?;
    Ok(program)
}
