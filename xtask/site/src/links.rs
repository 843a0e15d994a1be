//! Checks the links of the finished site: their files and anchors exist. It opens no address on a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// Returns the number of links between files of `site`, and the dead ones.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn check(site: &Path) -> Result<(usize, Vec<String>)> {
    let mut files = BTreeSet::new();
    collect(site, site, &mut files)?;
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "html")) {
        let text = std::fs::read_to_string(site.join(file)).with_context(|| format!("{}", file.display()))?;
        pages.insert(file.clone(), text);
    }
    let ids: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(page, text)| (page.as_path(), values(text, "id").collect())).collect();
    let (mut checked, mut dead) = (0, Vec::new());
    // The page for unknown addresses has links from the top of the site.
    for (page, text) in pages.iter().filter(|(page, _)| !page.ends_with("404.html")) {
        for target in values(text, "href").chain(values(text, "src")).filter(|target| !target.contains(':')) {
            checked += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { beside(page, path) };
            let known = ids.get(file.as_path());
            let has_anchor = anchor.is_empty() || known.is_some_and(|ids| ids.contains(anchor));
            if !files.contains(&file) || !has_anchor {
                dead.push(format!("{}: '{target}'", page.display()));
            }
        }
    }
    Ok((checked, dead))
}

/// Adds all files below `directory` to `files`, by their paths from `site`.
fn collect(site: &Path, directory: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory).with_context(|| format!("{}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(site, &path, files)?;
        } else {
            files.insert(path.strip_prefix(site)?.to_owned());
        }
    }
    Ok(())
}

/// Returns the values of an attribute, as they are in the text.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let starts: Vec<usize> = text.match_indices(&start).map(|(at, found)| at + found.len()).collect();
    starts.into_iter().filter_map(|at| text[at..].split('"').next())
}

/// Returns the path of the file to which `page` links as `path`.
fn beside(page: &Path, path: &str) -> PathBuf {
    let mut file = page.parent().unwrap_or(page).to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(file.pop()),
            Component::CurDir => {}
            part => file.push(part),
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_from_the_text() {
        let text = r##"<a href="../a/b.html#c" id="x">y</a><img src="p.svg">"##;
        assert_eq!(values(text, "href").collect::<Vec<_>>(), ["../a/b.html#c"]);
        assert_eq!(values(text, "id").collect::<Vec<_>>(), ["x"]);
        assert_eq!(beside(Path::new("docs/x/y.html"), "../a/b.html"), Path::new("docs/a/b.html"));
    }
}
