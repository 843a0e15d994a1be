//! Formats tables and the values in them.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};

/// Creates an empty table with these column titles. Columns whose titles start with `>` hold numbers and are aligned
/// right.
pub(crate) fn table(titles: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let title = |t: &&str| Cell::new(t.trim_start_matches('>')).add_attribute(Attribute::Bold);
    table.set_header(titles.iter().map(title));
    for (column, title) in table.column_iter_mut().zip(titles) {
        column.set_padding((0, 2));
        if title.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The meaning of a state for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Changing,
    Bad,
}

impl Tone {
    pub(crate) fn into_terminal(self) -> ratatui::style::Color {
        match self {
            Tone::Good => ratatui::style::Color::Green,
            Tone::Changing => ratatui::style::Color::Yellow,
            Tone::Bad => ratatui::style::Color::Red,
        }
    }
}

/// Returns the tone of a state of a task, an agent or a framework; `None` for what has ended as intended, and for other
/// texts.
pub(crate) fn tone(state: &str) -> Option<Tone> {
    match state {
        "active" | "running" | "healthy" => Some(Tone::Good),
        "staging" | "starting" | "killing" | "draining" | "deactivated" | "recovered" | "inactive" => {
            Some(Tone::Changing)
        }
        "failed" | "error" | "lost" | "dropped" | "gone" | "gone_by_operator" | "unreachable" | "unhealthy"
        | "disconnected" => Some(Tone::Bad),
        _ => None,
    }
}

/// Creates a row of texts, of which the one at `column` is a state: coloured at a terminal, unless `NO_COLOR` is set.
pub(crate) fn with_state(row: impl IntoIterator<Item = String>, column: usize) -> Vec<Cell> {
    let cell = |(index, text): (usize, String)| {
        let tone = tone(&text).filter(|_| index == column && stdio::allows_colours());
        let cell = Cell::new(text);
        match tone {
            Some(Tone::Good) => cell.fg(Color::DarkGreen),
            Some(Tone::Changing) => cell.fg(Color::DarkYellow),
            Some(Tone::Bad) => cell.fg(Color::DarkRed),
            None => cell,
        }
    };
    row.into_iter().enumerate().map(cell).collect()
}

/// Formats a number with as many decimals as it needs, three at most.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned()
}

/// Formats the used part of a resource.
pub(crate) fn used(part: f64, whole: f64) -> String {
    format!("{}/{}", number(part), number(whole))
}

/// Formats a share of the whole as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a length of time in a suitable unit: `4.2 s`, `7 min`, `3.0 h`, `2.5 d`.
pub(crate) fn age(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => "-".to_owned(),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3_600.0 => format!("{:.0} min", s / 60.0),
        s if s < 86_400.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!([0.0, 1.5, 64.0, 0.001, 1000.0].map(number), ["0", "1.5", "64", "0.001", "1000"]);
        assert_eq!([1.25, 61.0, 7_200.0, 216_000.0, -1.0].map(age), ["1.2 s", "1 min", "2.0 h", "2.5 d", "-"]);
        assert_eq!(used(0.5, 2.0), "0.5/2");
        assert_eq!(percent(1.0 / 3.0), "33.3 %");
    }

    #[test]
    fn numbers_stand_right() {
        let mut table = table(&["NAME", ">CPUS"]);
        table.add_row(["a", "1"]).add_row(["b", "10"]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[1].ends_with(" 1") && lines[2].ends_with("10"), "{text}");
    }
}
