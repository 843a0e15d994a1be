//! Asks for confirmation before an action that cannot be undone.

use std::io::{BufRead, IsTerminal};

use anyhow::{Result, bail};

/// Asks at a terminal whether to do an action that cannot be undone. `yes` is the flag that answers beforehand.
/// Scripts, whose standard input is not a terminal, are not asked.
///
/// # Errors
/// The answer is not yes.
pub(super) fn confirm(yes: bool, what: &str) -> Result<()> {
    let stdin = std::io::stdin();
    if yes || !stdin.is_terminal() {
        return Ok(());
    }
    stdio::err!("This cannot be undone: {what}. Continue? [y/N]");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
