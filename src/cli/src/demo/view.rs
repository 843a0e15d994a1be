//! How the demo looks while it runs: bars on a terminal, lines elsewhere.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::record::{Record, Records};
use crate::read::model::Agent;

/// Who is shown what happens.
pub(super) trait View {
    /// The state after an event.
    fn show(&mut self, records: &Records);
    /// A task has ended.
    fn ended(&mut self, id: &str, record: &Record);
    /// Something else that a person wants to know.
    fn note(&mut self, text: &str);
}

/// Bars if standard error is a terminal, else lines.
pub(super) fn new(tasks: usize, agents: &[Agent]) -> Box<dyn View> {
    match std::io::stderr().is_terminal() {
        true => Box::new(Bars::new(tasks, agents)),
        false => Box::new(Lines { tasks, ended: 0 }),
    }
}

/// A bar for the whole, and one for each agent.
struct Bars {
    all: MultiProgress,
    whole: ProgressBar,
    agents: Vec<AgentBar>,
    cpus: f64,
    mem: f64,
}

struct AgentBar {
    id: String,
    cpus: f64,
    mem: f64,
    bar: ProgressBar,
}

/// Steps of an agent's bar.
const STEPS: u64 = 100;

impl Bars {
    fn new(tasks: usize, agents: &[Agent]) -> Bars {
        let all = MultiProgress::new();
        let whole = all.add(
            ProgressBar::new(tasks as u64)
                .with_style(style("{prefix:18} [{bar:30}] {pos}/{len} tasks, {elapsed}  {msg}")),
        );
        whole.set_prefix("all");
        let agent_bar = |(place, agent): (usize, &Agent)| {
            let bar = all.add(ProgressBar::new(STEPS).with_style(style("{prefix:18} [{bar:30}] {msg}")));
            bar.set_prefix(format!("agent {} {}", place + 1, agent.hostname).chars().take(18).collect::<String>());
            AgentBar { id: agent.id.clone(), cpus: agent.resources.get("cpus"), mem: agent.resources.get("mem"), bar }
        };
        let agents: Vec<AgentBar> = agents.iter().enumerate().map(agent_bar).collect();
        let (cpus, mem) = (agents.iter().map(|a| a.cpus).sum(), agents.iter().map(|a| a.mem).sum());
        Bars { whole, agents, cpus, mem, all }
    }
}

/// A style whose template stands in this file, so that it is known to be right.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

fn part(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl View for Bars {
    fn show(&mut self, records: &Records) {
        let (mut cpus, mut mem) = (0.0, 0.0);
        for agent in &self.agents {
            let (tasks, held_cpus, held_mem) = records.held(&agent.id);
            let (held_cpus, held_mem) = (held_cpus.to_f64(), held_mem.to_f64());
            cpus += held_cpus;
            mem += held_mem;
            let used = part(held_cpus, agent.cpus).max(part(held_mem, agent.mem));
            agent.bar.set_position((used * STEPS as f64) as u64);
            agent.bar.set_message(format!(
                "{tasks} tasks, cpus {held_cpus:.2}/{}, mem {held_mem:.0}/{}",
                agent.cpus, agent.mem
            ));
        }
        self.whole.set_position(records.ended() as u64);
        let share = part(cpus, self.cpus).max(part(mem, self.mem));
        self.whole.set_message(format!("dominant share {:.0} %", share * 100.0));
    }

    fn ended(&mut self, id: &str, record: &Record) {
        if !record.finished() {
            self.note(&format!("{id}: {} {}", record.state.as_str_name(), record.message));
        }
    }

    fn note(&mut self, text: &str) {
        // Fails only when the terminal is gone.
        let _ = self.all.println(text);
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        let _ = self.all.clear();
    }
}

/// One line for each task that ends.
struct Lines {
    tasks: usize,
    ended: usize,
}

impl View for Lines {
    fn show(&mut self, _records: &Records) {}

    fn ended(&mut self, id: &str, record: &Record) {
        self.ended += 1;
        let took = record.took().unwrap_or_default().as_secs_f64();
        let state = record.state.as_str_name().trim_start_matches("TASK_").to_lowercase();
        eprintln!("{:>4}/{} {id}: {state} on {} after {took:.2} s", self.ended, self.tasks, record.host);
    }

    fn note(&mut self, text: &str) {
        eprintln!("{text}");
    }
}
