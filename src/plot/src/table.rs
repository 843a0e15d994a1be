//! Tables of a page: columns in groups, numbers with intervals, small pictures in cells.

use std::fmt::Write as _;

use crate::escape;

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Title of the column, with a unit in parentheses.
    pub title: String,
    /// Group under whose name the column is shown, with adjacent ones of the same group; none if empty.
    pub group: String,
    /// Whether the cells are words, which may be broken over lines.
    pub words: bool,
    /// Whether the cells are pictures, by which rows cannot be sorted.
    pub pictures: bool,
}

impl From<&str> for Column {
    fn from(title: &str) -> Column {
        Column { title: title.to_owned(), ..Column::default() }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Text of the cell. What follows ` ± ` is an interval, which is drawn smaller.
    pub text: String,
    /// Target of a link on the cell, such as `#point-3`; none if empty.
    pub link: String,
    /// Number by which rows are sorted; the text if unset.
    pub key: Option<f64>,
    /// SVG of this crate that is shown in place of the text; none if empty.
    pub svg: String,
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, ..Cell::default() }
    }
}

/// A table of a page. The first cell of a row is its header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Caption above the table; none if empty.
    pub caption: String,
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// Rows of the table, with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the reader can sort the table by its columns of text or numbers.
    pub sortable: bool,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns, ..Table::default() }
    }

    /// Adds a row at the end of the table.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Returns the table as HTML, in a box that scrolls if the table is too wide.
    ///
    /// Cells and rows have no end tags, which HTML does not require: they would be a quarter of a page of a sweep.
    #[must_use]
    pub fn html(&self) -> String {
        let class = if self.sortable { " class=\"sortable\"" } else { "" };
        let label = if self.caption.is_empty() { "Table" } else { &self.caption };
        let mut html = format!(
            "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table{class}>",
            escape(label)
        );
        // Writing to a string cannot fail, here and below.
        if !self.caption.is_empty() {
            let _ = write!(html, "<caption>{}</caption>", escape(&self.caption));
        }
        html.push_str("<thead>");
        if self.columns.iter().any(|column| !column.group.is_empty()) {
            html.push_str(&self.groups());
        }
        html.push_str("<tr>");
        for (n, column) in self.columns.iter().enumerate() {
            let begins = !column.group.is_empty() && (n == 0 || self.columns[n - 1].group != column.group);
            let all = [column.words.then_some("text"), begins.then_some("first"), column.pictures.then_some("still")];
            let classes = classes(&all);
            let _ = write!(html, "<th{classes}>{}</th>", escape(&column.title));
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (n, cell) in row.iter().enumerate() {
                self.cell(&mut html, n, cell);
            }
            html.push('\n');
        }
        html.push_str("</tbody></table></div>\n");
        html
    }

    /// Returns the row of group names above the titles.
    fn groups(&self) -> String {
        let mut html = "<tr>".to_owned();
        for part in self.columns.chunk_by(|a, b| a.group == b.group) {
            let (width, group) = (part.len(), &part[0].group);
            let _ = match group.is_empty() {
                // A header without text would confuse screen readers.
                true => write!(html, "<td colspan=\"{width}\"></td>"),
                false => {
                    write!(html, "<th class=\"group\" scope=\"colgroup\" colspan=\"{width}\">{}</th>", escape(group))
                }
            };
        }
        html + "</tr>"
    }

    fn cell(&self, html: &mut String, n: usize, cell: &Cell) {
        let key = cell
            .key
            .filter(|_| self.sortable)
            .map(|key| format!(" data-key=\"{}\"", short_key(key)))
            .unwrap_or_default();
        let mut text = match cell.text.split_once(" ± ") {
            Some((mean, half)) => format!("{} <i>± {}</i>", escape(mean), escape(half)),
            None => escape(&cell.text),
        };
        if !cell.svg.is_empty() {
            text.clone_from(&cell.svg);
        }
        if !cell.link.is_empty() {
            text = format!("<a href=\"{}\">{text}</a>", escape(&cell.link));
        }
        let words = self.columns.get(n).is_some_and(|column| column.words);
        let classes = classes(&[words.then_some("text")]);
        let _ = match n {
            0 => write!(html, "<th{classes}{key}>{text}"),
            _ => write!(html, "<td{classes}{key}>{text}"),
        };
    }
}

/// Rounds to eight significant digits, which suffice to sort rows.
fn short_key(key: f64) -> f64 {
    format!("{key:.7e}").parse().unwrap_or(key)
}

/// Returns the `class` attribute with these classes; empty if there are none.
fn classes(all: &[Option<&'static str>]) -> String {
    let all: Vec<&str> = all.iter().copied().flatten().collect();
    if all.is_empty() { String::new() } else { format!(" class=\"{}\"", all.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_groups() {
        let column = |title: &str, group: &str| Column { group: group.to_owned(), ..Column::from(title) };
        let mut table = Table::new(vec![column("a", ""), column("b", "g"), column("c", "g"), column("d", "h")]);
        table.sortable = true;
        table.row(vec![
            Cell { link: "#x".to_owned(), ..Cell::from("r".to_owned()) },
            Cell { key: Some(0.5 + 1e-12), ..Cell::from("1 ± 2".to_owned()) },
            Cell { svg: "<svg/>".to_owned(), ..Cell::default() },
            Cell::default(),
        ]);
        let html = table.html();
        assert!(
            html.contains("<td colspan=\"1\"></td><th class=\"group\" scope=\"colgroup\" colspan=\"2\">g</th>"),
            "{html}"
        );
        assert!(html.contains("<th><a href=\"#x\">r</a><td"), "{html}");
        assert!(html.contains("<td data-key=\"0.5\">1 <i>± 2</i><td><svg/>"), "{html}");
    }
}
