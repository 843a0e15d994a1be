//! The program that executors are: a small one of their own where it could be built into this one (`build.rs`), because the
//! start of an executor costs each task what its program touches; else this very program, which has them too.

use std::io::{self, Read};
use std::path::Path;

use containers::ProgramFile;
use flate2::read::ZlibDecoder;

/// Packed; nothing if it could not be built.
static BUILT_IN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tepui-executor.z"));

/// Opens the program; none if executors can only be started by this program's path.
pub(super) fn open() -> Option<ProgramFile> {
    if !BUILT_IN.is_empty() {
        match unpacked().and_then(|program| ProgramFile::in_memory(c"tepui-executor", &program)) {
            Ok(file) => return Some(file),
            Err(error) => tracing::info!("executors are run by the whole program; their own cannot be: {error}"),
        }
    }
    let file = ProgramFile::open(Path::new("/proc/self/exe"));
    file.inspect_err(|error| tracing::info!("executors are started by their program's path: {error}")).ok()
}

fn unpacked() -> io::Result<Vec<u8>> {
    let mut program = Vec::new();
    ZlibDecoder::new(BUILT_IN).read_to_end(&mut program)?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies share one large page only if the program's header, constants and code are one part that begins with one.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
    fn the_program_is_linked_for_large_pages() {
        if BUILT_IN.is_empty() {
            println!("needs a C library in its static form");
            return;
        }
        let program = unpacked().unwrap();
        let number = |at: usize, length: usize| {
            program[at..at + length].iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let (table, size, count) = (number(32, 8) as usize, number(54, 2) as usize, number(56, 2) as usize);
        let parts = (0..count).map(|index| table + index * size).filter(|at| number(*at, 4) == 1);
        let code: Vec<usize> = parts.filter(|at| number(at + 4, 4) & 1 == 1).collect();
        let [code] = code[..] else { panic!("code is in {} parts", code.len()) };
        let (offset, address) = (number(code + 8, 8), number(code + 16, 8));
        assert_eq!((offset, address % (2 << 20)), (0, 0));
    }
}
