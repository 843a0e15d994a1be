//! A self-contained HTML page: text, tables and plots in one file, without scripts.

use std::fmt::Write as _;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #d5dde5}\
.wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums}td{white-space:nowrap}\
th,td{padding:.25rem .7rem;border-bottom:1px solid #e3e9ef;text-align:right}th{background:#f3f6f9}\
th:first-child,td:first-child{text-align:left}svg,img{max-width:100%;height:auto}pre{background:#f3f6f9;padding:.8rem;overflow:auto}\
.empty{color:#7a8794}";

/// A page that grows from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with this heading.
    pub fn new(title: &str) -> Page {
        Page { title: title.to_owned(), body: format!("<h1>{}</h1>\n", escape(title)) }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Text as it is: a file, a log.
    pub fn verbatim(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre>{}</pre>", escape(text));
    }

    /// A table; the first column is text, the others numbers.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let row = |cells: &[String]| cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect::<String>();
        let head: String = head.iter().map(|cell| format!("<th>{}</th>", escape(cell))).collect();
        let _ = writeln!(self.body, "<div class=\"wide\"><table><tr>{head}</tr>");
        for cells in rows {
            let _ = writeln!(self.body, "<tr>{}</tr>", row(cells));
        }
        self.body.push_str("</table></div>\n");
    }

    /// A picture: an SVG made here.
    pub fn picture(&mut self, svg: &str) {
        self.body.push_str(svg);
        self.body.push('\n');
    }

    /// A picture of pixels, as base64 of a PNG, and what it shows.
    pub fn png(&mut self, base64: &str, shows: &str) {
        let _ = writeln!(self.body, "<img src=\"data:image/png;base64,{base64}\" alt=\"{}\">", escape(shows));
    }

    /// The whole page.
    pub fn html(&self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{}</title><style>{STYLE}</style></head>\n\
             <body>\n{}</body></html>\n",
            escape(&self.title),
            self.body
        )
    }
}

/// Text that means nothing to a browser.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut page = Page::new("<script>");
        page.text("a & b");
        page.table(&["x"], &[vec!["<b>".to_owned()]]);
        let html = page.html();
        assert!(!html.contains("<script>") && html.contains("a &amp; b") && html.contains("<td>&lt;b&gt;</td>"));
    }
}
