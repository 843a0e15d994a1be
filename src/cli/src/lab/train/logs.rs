//! The files of a training that have a line of JSON for each iteration or measurement. A training begins with the lines
//! of its checkpoint.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use training::curve::Measured;

/// Name of the file of iterations.
pub const ITERATIONS: &str = "log.jsonl";
/// Name of the file of measurements.
pub const MEASURED: &str = "measured.jsonl";
/// Maximum size of a file of earlier lines, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// What is read of a line of [`ITERATIONS`].
#[derive(Deserialize)]
struct Numbered {
    iteration: u64,
}

/// Appends lines to a file.
pub fn append<T: Serialize>(path: &Path, lines: &[T]) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(context)?;
    for line in lines {
        writeln!(file, "{}", serde_json::to_string(line)?).with_context(context)?;
    }
    Ok(())
}

/// Renames both files, which a training without a checkpoint has left, to `NAME.old`.
pub fn put_aside(directory: &Path) -> Result<()> {
    for name in [ITERATIONS, MEASURED] {
        let path = directory.join(name);
        if let Err(error) = std::fs::rename(&path, directory.join(format!("{name}.old")))
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error).with_context(|| format!("cannot rename {}", path.display()));
        }
    }
    Ok(())
}

/// Removes the lines that are later than a checkpoint, whose next iteration is `next`: they are written again. Returns
/// the measurements that are left.
pub fn cut(directory: &Path, next: u64) -> Result<Vec<Measured>> {
    cut_file(&directory.join(ITERATIONS), |line: &Numbered| line.iteration < next)?;
    // The measurement before the next iteration is written before the checkpoint.
    cut_file(&directory.join(MEASURED), |line: &Measured| line.iteration <= next)
}

fn cut_file<T: DeserializeOwned>(path: &Path, is_kept: impl Fn(&T) -> bool) -> Result<Vec<T>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let context = || format!("cannot read {}", path.display());
    if std::fs::metadata(path).with_context(context)?.len() > BYTES_MAX {
        bail!("{}: must have {BYTES_MAX} bytes at most", path.display());
    }
    let text = std::fs::read_to_string(path).with_context(context)?;
    let (mut kept, mut rest) = (Vec::new(), String::with_capacity(text.len()));
    for line in text.split_inclusive('\n') {
        // The line that was being written when a training was killed has no end. It is later than the checkpoint.
        if !line.ends_with('\n') {
            break;
        }
        let item: T = serde_json::from_str(line).with_context(context)?;
        if is_kept(&item) {
            kept.push(item);
            rest.push_str(line);
        }
    }
    if rest != text {
        store::replace_file(path, rest.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(iteration: u64) -> Measured {
        Measured { iteration, workload: "batch".to_owned(), of_best: 1.5 }
    }

    #[test]
    fn lines_after_the_checkpoint_are_cut_off() {
        let directory = std::env::temp_dir().join(format!("tepui-train-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        assert!(cut(&directory, 60).unwrap().is_empty(), "without files");

        let (iterations, measurements) = (directory.join(ITERATIONS), directory.join(MEASURED));
        // A norm that is not finite is written as null.
        let line = |iteration: u64| serde_json::json!({ "iteration": iteration, "norm": null });
        append(&iterations, &(0..63).map(line).collect::<Vec<_>>()).unwrap();
        std::fs::write(&iterations, read(ITERATIONS) + r#"{"iterat"#).unwrap();
        append(&measurements, &[0, 30, 60, 90].map(measured)).unwrap();

        assert_eq!(cut(&directory, 60).unwrap(), [0, 30, 60].map(measured));
        assert_eq!((read(ITERATIONS).lines().count(), read(MEASURED).lines().count()), (60, 3));
        let unchanged = (read(ITERATIONS), read(MEASURED));
        assert_eq!(cut(&directory, 60).unwrap().len(), 3);
        assert_eq!((read(ITERATIONS), read(MEASURED)), unchanged);

        std::fs::write(&iterations, "no line\n").unwrap();
        assert!(cut(&directory, 60).unwrap_err().to_string().starts_with("cannot read "));
        put_aside(&directory).unwrap();
        assert!(!iterations.exists() && !measurements.exists());
        put_aside(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
