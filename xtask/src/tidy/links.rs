//! Checks the links of the documentation: pages, anchors and the codes of rules about Mesos exist. It opens no address
//! on a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::sources;

/// Directory of the pages that define codes, each with an anchor: `<a id="agt-91"></a>`.
const CODES: &str = "docs/mesos";

/// Returns the dead links and unknown codes, as lines that name file, line and target.
///
/// # Errors
/// git does not run here, or a page cannot be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for page in sources::files(root, "*.md")? {
        // A file that is deleted and not committed is still in git's list.
        let Ok(text) = std::fs::read_to_string(root.join(&page)) else { continue };
        pages.insert(page, text);
    }
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|(page, text)| (page.as_path(), anchors(text))).collect();
    let codes = pages.keys().filter(|page| page.starts_with(CODES)).flat_map(|page| &anchors[page.as_path()]);
    let codes: BTreeSet<String> = codes.filter(|id| code_at(&id.to_uppercase()).is_some()).cloned().collect();
    let areas: BTreeSet<&str> = codes.iter().filter_map(|code| code.split('-').next()).collect();

    let mut breaches = Vec::new();
    for (page, text) in &pages {
        breaches.extend(dead_links(page, text, &anchors, &|path| root.join(path).exists()));
        breaches.extend(unknown_codes(page, text, &codes, &areas));
    }
    for file in sources::files(root, "*.rs")? {
        let path = root.join(&file);
        let Ok(text) = std::fs::read(&path) else { continue };
        let text = String::from_utf8(text).with_context(|| format!("{} is not UTF-8", path.display()))?;
        breaches.extend(unknown_codes(&file, &text, &codes, &areas));
        breaches.extend(unknown_pages(&file, &text, &|path| root.join(path).exists()));
    }
    Ok(breaches)
}

/// Returns the pages that the comments of a source name, and that exist neither from the root of the checkout nor
/// beside the source or one of its directories.
fn unknown_pages(file: &Path, text: &str, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.trim_start().starts_with("//")) {
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c)));
        for page in words.map(|word| word.trim_end_matches('.')).filter(|word| word.ends_with(".md")) {
            if !file.ancestors().any(|directory| exists(&directory.join(page))) {
                breaches.push(format!("{}:{number}: '{page}': no such page", file.display()));
            }
        }
    }
    breaches
}

/// Returns the links of one page to files that do not exist, or to anchors that their page does not have.
fn dead_links(
    page: &Path,
    text: &str,
    anchors: &BTreeMap<&Path, BTreeSet<String>>,
    exists: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(&line) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.to_owned() } else { beside(page, path) };
            let known = anchors.get(file.as_path());
            if !exists(&file) {
                breaches.push(format!("{}:{number}: '{target}': no such file", page.display()));
            } else if !anchor.is_empty() && known.is_some_and(|anchors| !anchors.contains(anchor)) {
                breaches.push(format!("{}:{number}: '{target}': the page has no such heading", page.display()));
            }
        }
    }
    breaches
}

/// Returns the targets of the links in a line, except those with a scheme, such as `https:`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    ends.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// Returns the path of the file to which a page links as `path`, from the root of the checkout.
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

/// Returns the lines of a page outside of fences, without code spans, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_fence = false;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        let without_code = || line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!in_fence && !is_fence).then(|| (number, without_code()))
    })
}

/// Returns the anchors of a page, which links may have after `#`: ids of elements, and headings as GitHub spells them
/// in links.
fn anchors(text: &str) -> BTreeSet<String> {
    let ids = text.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut anchors: BTreeSet<String> = ids.map(str::to_owned).collect();
    let mut in_fence = false;
    for line in text.lines() {
        in_fence ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if in_fence || heading == line || !heading.starts_with(' ') {
            continue;
        }
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
        let name: String = heading.trim().to_lowercase().chars().filter(is_kept).collect();
        let name = name.replace(' ', "-");
        let again = (1..).map(|n| format!("{name}-{n}"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// Returns the codes of a known area that no page defines.
fn unknown_codes(file: &Path, text: &str, codes: &BTreeSet<String>, areas: &BTreeSet<&str>) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for word in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let Some(code) = code_at(word) else { continue };
            let code = code.to_lowercase();
            let is_area = code.split('-').next().is_some_and(|area| areas.contains(area));
            if is_area && !codes.contains(&code) {
                breaches.push(format!("{}:{number}: no page of {CODES} has '{word}'", file.display()));
            }
        }
    }
    breaches
}

/// Returns the word if it has the form of a code: two or three capital letters, a hyphen, digits.
fn code_at(word: &str) -> Option<&str> {
    let (area, number) = word.split_once('-')?;
    let is_area = (2..=3).contains(&area.len()) && area.bytes().all(|b| b.is_ascii_uppercase());
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (is_area && is_number).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(text: &str) -> usize {
        let other =
            "# A page\n## Two `words`, one\n## Again\n## Again\n<a id=\"agt-91\"></a>\n```\n# no heading\n```\n";
        let page = Path::new("docs/guide.md");
        let pages = BTreeMap::from([(Path::new("docs/mesos/a.md"), anchors(other)), (page, anchors(text))]);
        dead_links(page, text, &pages, &|path| pages.contains_key(path) || path == Path::new("README.md")).len()
    }

    #[test]
    fn links_lead_to_files() {
        assert_eq!(dead("[a](mesos/a.md), [b](../README.md) and [c](./guide.md)"), 0);
        assert_eq!(dead("[a](mesos/b.md)"), 1);
        assert_eq!(dead("[a](https://example.org/b.md) `[a](b.md)`\n```text\n[a](b.md)\n```"), 0);
    }

    #[test]
    fn links_lead_to_headings() {
        assert_eq!(dead("[a](mesos/a.md#two-words-one), [b](mesos/a.md#again-1), [c](mesos/a.md#agt-91)"), 0);
        assert_eq!(dead("[a](mesos/a.md#again-2)"), 1);
        assert_eq!(dead("[a](mesos/a.md#no-heading)"), 1);
        assert_eq!(dead("# Own\n[a](#own) [b](#other)"), 1);
    }

    #[test]
    fn codes_are_defined() {
        let (codes, areas) = (BTreeSet::from(["agt-91".to_owned()]), BTreeSet::from(["agt"]));
        let unknown = |text: &str| unknown_codes(Path::new("a.rs"), text, &codes, &areas).len();
        assert_eq!(unknown("// AGT-91, UTF-8 and XAGT-92"), 0);
        assert_eq!(unknown("// (AGT-92)"), 1);
    }

    #[test]
    fn pages_in_comments_exist() {
        let exists = |path: &Path| ["docs/a.md", "src/x/README.md"].iter().any(|known| Path::new(known) == path);
        let found = |text: &str| unknown_pages(Path::new("src/x/src/y.rs"), text, &exists).len();
        assert_eq!(found("//! As in docs/a.md, and in README.md.\nlet b = \"b.md\";"), 0);
        assert_eq!(found("    // wire/http.md 5.2\n/// docs/b.md"), 2);
    }
}
