//! Draws the screen of `tepui top`: a line about the cluster, bars, and one of four tables.
//!
//! It reads nothing and waits for nothing.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Gauge, Paragraph, Row, Table as Grid, TableState, Tabs};

use super::data::{Table, View};
use crate::read::table::{number, tone};

const TABS: [&str; 4] = ["agents", "roles", "frameworks", "tasks"];
const HELP: &str = "1-4, Tab: table   s: sort by use or name   arrows, Page: move   q: quit";

/// The view that is shown, and the choices of the user.
pub(super) struct Screen {
    view: View,
    tab: usize,
    by_name: bool,
    state: TableState,
    /// Reason why the view is outdated; empty if it is not.
    problem: String,
}

impl Screen {
    pub(super) fn new(view: View) -> Screen {
        Screen { view, tab: 0, by_name: false, state: TableState::default(), problem: String::new() }
    }

    pub(super) fn update(&mut self, view: View) {
        self.view = view;
        self.problem.clear();
    }

    /// Records that the cluster could not be read.
    pub(super) fn fail(&mut self, why: &str) {
        self.problem = why.to_owned();
    }

    pub(super) fn key(&mut self, key: KeyCode) {
        let last = self.table().rows.len().saturating_sub(1);
        let now = self.state.selected().unwrap_or(0);
        let mut go = |to: usize| self.state.select(Some(to.min(last)));
        match key {
            KeyCode::Down | KeyCode::Char('j') => go(now + 1),
            KeyCode::Up | KeyCode::Char('k') => go(now.saturating_sub(1)),
            KeyCode::PageDown => go(now + 20),
            KeyCode::PageUp => go(now.saturating_sub(20)),
            KeyCode::Home => go(0),
            KeyCode::End => go(last),
            KeyCode::Tab => self.select((self.tab + 1) % TABS.len()),
            KeyCode::BackTab => self.select((self.tab + TABS.len() - 1) % TABS.len()),
            KeyCode::Char(digit @ '1'..='4') => self.select(digit as usize - '1' as usize),
            KeyCode::Char('s') => self.by_name = !self.by_name,
            _ => {}
        }
    }

    fn select(&mut self, tab: usize) {
        self.tab = tab;
        self.state = TableState::default();
    }

    fn table(&self) -> &Table {
        match self.tab {
            0 => &self.view.agents,
            1 => &self.view.roles,
            2 => &self.view.frameworks,
            _ => &self.view.tasks,
        }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let rows = [1, 1, 1, 1].map(Constraint::Length);
        let [line, bars, tabs, _, table, help] =
            Layout::vertical([rows[0], rows[1], rows[2], rows[3], Constraint::Min(3), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(self.view.line.as_str()), line);
        self.bars(frame, bars);
        let titles = TABS.iter().enumerate().map(|(at, name)| format!("{} {name}", at + 1));
        frame.render_widget(Tabs::new(titles).select(self.tab), tabs);
        self.grid(frame, table);
        let last = match self.problem.as_str() {
            "" => Line::from(HELP).style(Style::new().add_modifier(Modifier::DIM)),
            problem => Line::from(format!("not up to date: {problem}")).style(Style::new().fg(Color::Red)),
        };
        frame.render_widget(last, help);
    }

    fn bars(&self, frame: &mut Frame<'_>, area: Rect) {
        let areas: [Rect; 3] = Layout::horizontal([Constraint::Fill(1); 3]).spacing(2).areas(area);
        for ((name, used, all), area) in self.view.totals.iter().zip(areas) {
            let share = if *all > 0.0 { (used / all).clamp(0.0, 1.0) } else { 0.0 };
            let label = format!("{name} {} of {}", number(*used), number(*all));
            frame.render_widget(
                Gauge::default().ratio(share).label(label).gauge_style(Style::new().fg(Color::Blue)),
                area,
            );
        }
    }

    fn grid(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let Table { titles, mut rows } = self.table().clone();
        match self.by_name {
            true => rows.sort_by(|a, b| a.cells.cmp(&b.cells)),
            false => rows.sort_by(|a, b| b.weight.total_cmp(&a.weight)),
        }
        let is_number = |column: usize| titles.get(column).is_some_and(|title| title.starts_with('>'));
        let widths: Vec<Constraint> = (0..titles.len())
            .map(|column| {
                let title = titles[column].trim_start_matches('>').len();
                let longest = rows.iter().map(|row| row.cells[column].chars().count()).max().unwrap_or(0);
                Constraint::Length(title.max(longest).min(60) as u16)
            })
            .collect();
        let cell = |column: usize, text: String| {
            let alignment = if is_number(column) { Alignment::Right } else { Alignment::Left };
            let style = match tone(&text).filter(|_| stdio::allows_colours()) {
                Some(tone) => Style::new().fg(tone.into_terminal()),
                None => Style::new(),
            };
            Cell::from(Text::from(text).alignment(alignment)).style(style)
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let header = titles.iter().enumerate().map(|(at, title)| cell(at, title.trim_start_matches('>').to_owned()));
        let header = Row::new(header.collect::<Vec<_>>()).style(bold);
        let body = rows.into_iter().map(|row| {
            let cells = row.cells.into_iter().enumerate();
            Row::new(cells.map(|(at, text)| cell(at, text)).collect::<Vec<_>>())
        });
        let selected = Style::new().add_modifier(Modifier::REVERSED);
        let grid = Grid::new(body, widths).header(header).column_spacing(2).row_highlight_style(selected);
        frame.render_stateful_widget(grid, area, &mut self.state);
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::Row as Data;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn view() -> View {
        let row = |name: &str, weight: f64| Data { cells: vec![name.to_owned(), number(weight)], weight };
        let table = |names: [&str; 2]| Table {
            titles: vec!["NAME", ">CPUS"],
            rows: vec![row(names[0], 1.0), row(names[1], 2.5)],
        };
        View {
            line: "agents 2/2".to_owned(),
            totals: vec![("cpus", 1.0, 4.0), ("mem", 0.0, 0.0), ("disk", 1.0, 1.0)],
            agents: table(["a0", "a1"]),
            roles: table(["r0", "r1"]),
            ..View::default()
        }
    }

    /// Returns the lines of a screen of 80 columns.
    fn drawn(screen: &mut Screen) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 10)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y: u16| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..10).map(line).collect()
    }

    #[test]
    fn tables_are_sorted_and_chosen_by_keys() {
        let mut screen = Screen::new(view());
        let lines = drawn(&mut screen);
        assert_eq!(
            (lines[0].as_str(), lines[4].as_str(), lines[5].as_str()),
            ("agents 2/2", "NAME  CPUS", "a1     2.5")
        );
        assert!(lines[1].contains("cpus 1 of 4") && lines[9].contains("q: quit"), "{lines:?}");
        screen.key(KeyCode::Char('s'));
        assert_eq!(drawn(&mut screen)[5], "a0       1");
        screen.key(KeyCode::Tab);
        assert_eq!(drawn(&mut screen)[5], "r0       1");
        (0..5).for_each(|_| screen.key(KeyCode::Down));
        assert_eq!(screen.state.selected(), Some(1));
        screen.key(KeyCode::Char('4'));
        drawn(&mut screen);
        screen.fail("no master");
        assert!(drawn(&mut screen)[9].starts_with("not up to date: no master"));
        screen.update(view());
        assert!(drawn(&mut screen)[9].contains("q: quit"));
    }
}
