//! `cargo xtask tidy`: checks the source rules that neither the compiler nor clippy can check.
//!
//! `layers` reads the Cargo.toml files, `edges` compares them with the sources, `circles` follows imports between
//! files, `sources` reads the Rust files, `links` the documentation. All breaches are shown at once.

mod circles;
mod deny;
mod edges;
mod layers;
mod links;
mod sources;

use anyhow::{Result, bail};

pub(crate) use layers::packages;

/// Prints every breach of the source rules.
///
/// # Errors
/// There is at least one breach.
pub(crate) fn run() -> Result<()> {
    let breaches = breaches()?;
    for breach in &breaches {
        println!("{breach}");
    }
    match breaches.len() {
        0 => Ok(()),
        n => bail!("{n} breaches of the source rules"),
    }
}

/// Returns every breach in the checkout, as a line that names file and rule.
fn breaches() -> Result<Vec<String>> {
    let root = crate::root();
    let mut breaches = layers::check(&root)?;
    breaches.extend(edges::check(&root)?);
    breaches.extend(deny::check(&root)?);
    breaches.extend(circles::check(&root)?);
    breaches.extend(sources::check(&root)?);
    breaches.extend(links::check(&root)?);
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let breaches = super::breaches().unwrap();
        assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
    }
}
