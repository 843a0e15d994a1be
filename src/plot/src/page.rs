//! A self-contained HTML page: text, tables and plots in one file. Its scripts sort tables and unpack large details;
//! nothing is fetched.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use crate::packed::packed;
use crate::table::Table;
use crate::{COLOURS, colour_class};

const STYLE: &str = include_str!("page.css");
const SORT: &str = include_str!("sort.js");

/// A page to which content is added at the end.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    /// Terms of the glossary, with their meanings.
    terms: BTreeMap<String, String>,
    /// Ranges of the details' content in the body.
    details: Vec<Range<usize>>,
    sorts: bool,
}

impl Page {
    /// Creates a page with this title as its heading.
    pub fn new(title: &str) -> Page {
        let body = format!("<h1>{}</h1>\n", escape(title));
        Page { title: title.to_owned(), body, terms: BTreeMap::new(), details: Vec::new(), sorts: false }
    }

    /// Adds a heading of the second level.
    pub fn heading(&mut self, text: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
    }

    /// Adds a heading of the third level, below [`heading`](Page::heading).
    pub fn subheading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(text));
    }

    /// Adds a paragraph of text.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Adds a list of sentences, if there are any.
    pub fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            let items: String = items.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
            let _ = writeln!(self.body, "<ul>\n{items}</ul>");
        }
    }

    /// Adds preformatted text, such as a file or a log.
    pub fn verbatim(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre tabindex=\"0\">{}</pre>", escape(text));
    }

    /// Adds a table of text cells. The first column is text, the others are numbers.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let mut table = Table::new(head.iter().copied().map(Into::into).collect());
        for row in rows {
            table.row(row.iter().cloned().map(Into::into).collect());
        }
        self.put(&table);
    }

    /// Adds a table. A table that is wider than the page scrolls inside a box, beside its first column.
    pub fn put(&mut self, table: &Table) {
        self.sorts |= table.sortable;
        self.body.push_str(&table.html());
    }

    /// Adds a picture, an SVG of this crate.
    pub fn picture(&mut self, svg: &str) {
        self.figure(svg, "");
    }

    /// Adds a picture with a caption.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        let caption = match caption.is_empty() {
            true => String::new(),
            false => format!("<figcaption>{}</figcaption>", escape(caption)),
        };
        let _ = writeln!(self.body, "<figure><div class=\"plot\" tabindex=\"0\">{svg}</div>{caption}</figure>");
    }

    /// Adds small pictures beside each other, with a legend above them. `legend` has names by [colour](crate::colour),
    /// and `dashes` is the meaning of dashed lines.
    pub fn small(&mut self, svgs: &[String], legend: &[String], dashes: &str) {
        let chip = |(n, name): (usize, &String)| {
            format!("<span><i class=\"{}\"></i>{}</span> ", colour_class(n), escape(name))
        };
        let chips: String = legend.iter().enumerate().map(chip).collect();
        let dashes = match dashes.is_empty() {
            true => String::new(),
            false => format!("<span><i class=\"dashed\"></i>{}</span>", escape(dashes)),
        };
        let _ =
            writeln!(self.body, "<p class=\"legend\">{chips}{dashes}</p><div class=\"small\">{}</div>", svgs.concat());
    }

    /// Adds a PNG in base64. `shows` describes it for readers who cannot see it.
    pub fn png(&mut self, base64: &str, shows: &str) {
        let _ = writeln!(self.body, "<img src=\"data:image/png;base64,{base64}\" alt=\"{}\">", escape(shows));
    }

    /// Adds a section that is closed until the reader opens it, or follows a link to `#id`.
    pub fn details(&mut self, summary: &str, id: &str, inner: impl FnOnce(&mut Page)) {
        // The element must have no other content: the script identifies the places of packed parts by their being
        // empty.
        let _ = write!(self.body, "<details><summary>{}</summary><div id=\"{}\">", escape(summary), escape(id));
        let start = self.body.len();
        inner(self);
        self.details.push(start..self.body.len());
        self.body.push_str("</div></details>\n");
    }

    /// Adds a term to the glossary at the end of the page.
    pub fn term(&mut self, term: &str, meaning: &str) {
        self.terms.insert(term.to_owned(), meaning.to_owned());
    }

    /// Returns the length of the page's body so far, in bytes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Returns whether the page has only its title.
    pub fn is_empty(&self) -> bool {
        self.body.lines().count() <= 1
    }

    /// Returns the glossary with all terms in alphabetical order.
    fn glossary(&self) -> String {
        if self.terms.is_empty() {
            return String::new();
        }
        let term =
            |(term, meaning): (&String, &String)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(term), escape(meaning));
        let mut terms: Vec<(&String, &String)> = self.terms.iter().collect();
        terms.sort_by_key(|(term, _)| term.to_lowercase());
        let terms: String = terms.into_iter().map(term).collect();
        format!("<h2 id=\"glossary\">Glossary</h2>\n<dl>\n{terms}</dl>\n")
    }

    /// Returns the whole page as HTML.
    pub fn html(&self) -> String {
        let mut script = if self.sorts { format!("<script>{SORT}</script>\n") } else { String::new() };
        let mut body = self.body.as_str();
        let packed = packed(body, &self.details);
        if let Some((rest, unpack)) = &packed {
            body = rest;
            script.push_str(
                "<noscript><p>The details are shown by a script, and scripts are switched off.</p></noscript>\n",
            );
            script.push_str(unpack);
        }
        let colour =
            |(n, (r, g, b)): (usize, &(u8, u8, u8))| format!(".{}{{color:#{r:02x}{g:02x}{b:02x}}}", colour_class(n));
        let colours: String = COLOURS.iter().enumerate().map(colour).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title><style>{STYLE}{colours}</style></head>\n\
             <body><main>\n{}{}</main>\n{script}</body></html>\n",
            escape(&self.title),
            body,
            self.glossary()
        )
    }
}

/// Escapes the characters that have a meaning in HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn text_stays_text() {
        let mut page = Page::new("<script>");
        page.text("a & b");
        page.table(&["x", "<y>"], &[vec!["<b>".to_owned(), "1 ± <2>".to_owned()]]);
        page.details("<kbd>", "<kbd>", |page| page.list(&["<u>".to_owned()]));
        page.term("<s>", "<q>");
        page.small(&[], &["<em>".to_owned()], "<tt>");
        let html = page.html();
        for tag in ["<script>", "<b>", "<y>", "<2>", "<kbd>", "<u>", "<s>", "<q>", "<em>", "<tt>"] {
            assert!(!html.contains(tag), "{tag}: {html}");
        }
        assert!(html.contains("a &amp; b") && html.contains("&lt;b&gt;"));
    }

    #[test]
    fn large_details_are_packed_and_leave_empty_places() {
        let mut page = Page::new("t");
        page.details("a", "x", |page| page.text(&"long ".repeat(40_000)));
        page.details("b", "y", |page| page.text("short"));
        let html = page.html();
        assert!(html.len() < 20_000 && html.contains("id=\"packed\""), "{}", html.len());
        assert!(html.contains("<summary>a</summary><div id=\"x\"></div></details>"), "{html}");
        assert!(html.contains("<summary>b</summary><div id=\"y\"></div></details>"), "{html}");
    }

    #[test]
    fn a_page_has_a_script_and_a_glossary_only_if_it_needs_them() {
        let mut page = Page::new("t");
        assert!(page.is_empty() && !page.html().contains("<script") && !page.html().contains("Glossary"));
        page.put(&Table { sortable: true, ..Table::new(vec![Column::from("a")]) });
        page.term("b", "c");
        assert!(page.html().contains("<script") && page.html().contains("<dt>b</dt><dd>c</dd>"));
    }
}
