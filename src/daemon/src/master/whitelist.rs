//! `--whitelist`: a file with the host names whose agents may be offered, read again every few seconds (ALL-72).
//!
//! It reports changes to the core.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use master::Input;

use super::outputs::TimedMaster;
use crate::driver::Driver;

/// Interval at which the file is read.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reports changes of the file's content to the core; does not return. An unreadable file changes nothing.
pub(super) async fn watch(path: PathBuf, driver: Driver<TimedMaster>) {
    let mut known: Option<BTreeSet<String>> = None;
    let mut readable = true;
    loop {
        let file = path.clone();
        let read = tokio::task::spawn_blocking(move || read(&file)).await;
        match read {
            Ok(Ok(hostnames)) => {
                readable = true;
                if hostnames != known {
                    known.clone_from(&hostnames);
                    driver.submit(Input::Whitelist { hostnames });
                }
            }
            Ok(Err(error)) => {
                if std::mem::replace(&mut readable, false) {
                    tracing::warn!("the whitelist {} cannot be read: {error}; it is unchanged", path.display());
                }
            }
            Err(_) => return,
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns the host names; `None` if all agents may be offered.
fn read(path: &Path) -> std::io::Result<Option<BTreeSet<String>>> {
    Ok(parse(&std::fs::read_to_string(path)?))
}

fn parse(text: &str) -> Option<BTreeSet<String>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let hostnames: BTreeSet<String> = lines.map(str::to_owned).collect();
    (!hostnames.contains("*")).then_some(hostnames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_means_all_and_an_empty_file_none() {
        assert_eq!(parse("*\n"), None);
        assert_eq!(parse(""), Some(BTreeSet::new()));
        let two = ["a.example", "b.example"].map(str::to_owned).into();
        assert_eq!(parse(" a.example\n\nb.example\r\n"), Some(two));
    }
}
