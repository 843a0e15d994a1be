//! `tepui top`: shows a live view of agents, roles, frameworks and tasks, with what they hold and use.
//!
//! `data.rs` reads, `screen.rs` draws; this file has the loop and the keys.

mod data;
mod screen;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;

use crate::connect::MasterArgs;
use data::{Reader, View};
use screen::Screen;

/// Time that the thread that reads keys waits for one before it checks whether it is still needed.
const KEYS: Duration = Duration::from_millis(100);

/// Flags of `tepui top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    master: MasterArgs,
    /// Interval of updates
    #[arg(long, short, default_value = "2secs", value_name = "TIME", value_parser = base::parse_duration)]
    interval: Duration,
}

/// Shows the cluster until `q` is typed.
///
/// # Errors
/// Standard output is not a terminal, or no master answers at the start.
pub fn run(args: &Args) -> Result<ExitCode> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("top needs a terminal; for programs: tepui agents --json, tepui tasks --json, tepui task top --json");
    }
    crate::block_on(async {
        let mut reader = Reader::new(args.master.clone());
        // An error before the screen is switched is printed as by other commands.
        let first = reader.read_view().await?;
        let mut terminal = ratatui::init();
        let end = show(&mut terminal, reader, first, args.interval.max(Duration::from_millis(200))).await;
        ratatui::restore();
        end.map(|()| ExitCode::SUCCESS)
    })
}

async fn show(
    terminal: &mut ratatui::DefaultTerminal,
    mut reader: Reader,
    first: View,
    interval: Duration,
) -> Result<()> {
    let mut screen = Screen::new(first);
    let mut keys = keys();
    let mut looks = tokio::time::interval(interval);
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        tokio::select! {
            event = keys.recv() => match event {
                Some(Event::Key(key)) if is_end(&key) => return Ok(()),
                Some(Event::Key(key)) => screen.key(key.code),
                Some(_) => {}
                None => return Ok(()),
            },
            _ = looks.tick() => match reader.read_view().await {
                Ok(view) => screen.update(view),
                Err(error) => screen.fail(&format!("{error:#}")),
            },
        }
    }
}

fn is_end(key: &KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || (control && key.code == KeyCode::Char('c'))
}

/// Reads the terminal's events on a thread of its own, until the receiver is dropped.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEYS) {
                Ok(false) => {}
                Ok(true) => {
                    let Ok(event) = event::read() else { return };
                    if sender.blocking_send(event).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    });
    receiver
}
