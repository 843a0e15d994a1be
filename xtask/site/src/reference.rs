//! Generates the reference from the definitions that the program itself uses: a page for each command with its
//! subcommands, and one for the flags of each daemon.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Arg, Command};
use daemon::flags::Part;

const DIRECTORY: &str = "reference";

/// Returns titles and paths of the pages: the daemons, then all other commands that `tepui --help` lists.
pub(crate) fn pages() -> Vec<(String, String)> {
    let page = |title: String, name: &str| (title, format!("{DIRECTORY}/{name}.md"));
    let daemons = [Part::Master, Part::Agent].map(|part| {
        let name = part.command();
        page(format!("Flags of a{} {name}", if name == "agent" { "n" } else { "" }), name)
    });
    let commands = commands();
    let others = others(&commands).map(|command| page(format!("tepui {}", command.get_name()), command.get_name()));
    daemons.into_iter().chain(others).collect()
}

/// Writes the pages below `pages`.
///
/// # Errors
/// A page cannot be written.
pub(crate) fn write(pages: &Path) -> Result<()> {
    let directory = pages.join(DIRECTORY);
    std::fs::create_dir_all(&directory)?;
    let write = |name: &str, text: String| {
        let path = directory.join(format!("{name}.md"));
        std::fs::write(&path, text).with_context(|| format!("cannot write '{}'", path.display()))
    };
    for part in [Part::Master, Part::Agent] {
        write(part.command(), flags(part))?;
    }
    let commands = commands();
    for command in others(&commands) {
        let mut text = String::new();
        describe(command, 1, &mut text);
        write(command.get_name(), text)?;
    }
    Ok(())
}

fn commands() -> Command {
    let mut commands = cli::command::whole();
    commands.build();
    commands
}

/// Returns the commands that are not daemons.
fn others(commands: &Command) -> impl Iterator<Item = &Command> {
    let is_other = |name: &str| !["master", "agent", "help"].contains(&name);
    commands.get_subcommands().filter(move |command| !command.is_hide_set() && is_other(command.get_name()))
}

/// Returns the page about the flags of a daemon.
fn flags(part: Part) -> String {
    let name = part.command();
    let mut text = format!(
        "# Flags of `tepui {name}`\n\nA flag is given as `--name=value`, as `MESOS_NAME=value` or `TEPUI_NAME=value` in the environment, or in the file of \
         `--config`. Most have the names and meanings of `mesos-{name}`.\n"
    );
    for group in part.groups() {
        let _ = writeln!(
            text,
            "\n## {}\n\n| flag | default | meaning |\n|---|---|---|",
            group.about.trim().trim_end_matches('.')
        );
        for flag in group.flags {
            let default =
                flag.default.filter(|default| !default.is_empty()).map(|default| format!("`{}`", cell(default)));
            let note = flag.note().map(|note| format!(" ({note})")).unwrap_or_default();
            let _ = writeln!(
                text,
                "| <a id=\"{0}\"></a>`--{0}` | {1} | {2}{note} |",
                flag.name,
                default.unwrap_or_default(),
                cell(flag.help.trim())
            );
        }
    }
    text
}

/// Appends the description of a command, and of its subcommands one level below.
fn describe(command: &Command, level: usize, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(text, "\n{} `{name}`\n", "#".repeat(level.min(6)));
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        let _ = writeln!(text, "{}\n", escaped(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    let _ = writeln!(text, "```text\n{}\n```", usage.join("\n"));

    let shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let args: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !args.is_empty() {
        let _ = writeln!(text, "\n| argument | meaning |\n|---|---|");
    }
    for arg in args {
        let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "| `{}` | {}{} |", cell(&arg_form(arg)), cell(&escaped(&help)), defaults(arg));
    }
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        describe(sub, level + 1, text);
    }
}

/// Returns an argument as it is typed: `-m, --master <MASTER>`.
fn arg_form(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values = values.iter().map(|value| format!("<{value}>")).collect::<Vec<_>>().join(" ");
    let values = if arg.get_action().takes_values() { values } else { String::new() };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    [names, values].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the default and the possible values of an argument.
fn defaults(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let defaults = arg.get_default_values().iter().map(|value| format!("`{}`", cell(&value.to_string_lossy())));
    let defaults = defaults.collect::<Vec<_>>().join(", ");
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| format!("`{}`", value.get_name()));
    let values = values.collect::<Vec<_>>().join(", ");
    let note = |label: &str, list: String| if list.is_empty() { list } else { format!(" ({label} {list})") };
    note("one of", values) + &note("default", defaults)
}

/// Escapes text for Markdown, so that a word in angle brackets is not HTML.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
}

/// Escapes text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_and_command_has_its_line() {
        let text = flags(Part::Agent);
        assert!(text.contains("<a id=\"isolation\"></a>`--isolation` |"), "{text}");
        let commands = commands();
        let mut text = String::new();
        describe(commands.find_subcommand("agents").unwrap(), 1, &mut text);
        assert!(text.contains("\n## `tepui agents drain`\n"), "{text}");
        assert!(text.contains("| `-m, --master <MASTER>` |"), "{text}");
    }

    #[test]
    fn text_stays_in_its_cell() {
        assert_eq!(cell("a | b\nc"), "a \\| b c");
        assert_eq!(escaped("<id> of_a"), "&lt;id> of\\_a");
    }
}
