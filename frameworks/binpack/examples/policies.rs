//! Draws what each placement policy does with the same queue and the same agents, as an SVG on standard output.
//!
//! Every agent is a box with CPUs to the right and memory upwards; every task is a rectangle in it, drawn from corner
//! to corner. It runs nothing.
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![forbid(unsafe_code)]

use binpack::Need;
use binpack::place::{Policy, place};

/// Cores and gigabytes of the agents, in the order of their offers; the largest agents fill a box.
const AGENTS: [(f64, f64); 12] = [
    (4.0, 16.0),
    (8.0, 8.0),
    (8.0, 16.0),
    (2.0, 4.0),
    (4.0, 16.0),
    (8.0, 8.0),
    (6.0, 6.0),
    (8.0, 16.0),
    (2.0, 12.0),
    (8.0, 4.0),
    (8.0, 16.0),
    (4.0, 8.0),
];
const CPUS: f64 = 8.0;
const MEM: f64 = 16.0;
/// Width and height of a box in the picture.
const BOX: f64 = 54.0;
const STEP: f64 = 62.0;
const ROW: f64 = 84.0;
const LEFT: f64 = 210.0;

/// Returns tasks of three kinds in the order of their arrival: small ones, some with much CPU, some with much memory.
fn queue() -> Vec<Need> {
    let kinds = [(1.0, 1.0), (3.0, 2.0), (0.5, 4.0), (1.0, 2.0), (2.0, 1.0), (1.0, 6.0), (4.0, 3.0), (0.5, 0.5)];
    (0..36).map(|n| kinds[(n * 5 + n / 8) % kinds.len()]).map(|(cpus, mem)| Need::of(cpus, mem)).collect()
}

fn main() {
    let queue = queue();
    let rooms = AGENTS.map(|(cpus, mem)| Need::of(cpus, mem));
    let (width, height) = (LEFT + STEP * AGENTS.len() as f64 + 12.0, 36.0 + ROW * Policy::ALL.len() as f64);
    println!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">"
    );
    println!("<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>");
    println!(
        "<text x=\"12\" y=\"20\">{} tasks on {} agents of up to {CPUS} cores (to the right) and {MEM} GB (upwards)</text>",
        queue.len(),
        AGENTS.len()
    );
    for (row, policy) in Policy::ALL.into_iter().enumerate() {
        draw(row, policy, &queue, &place(policy, &queue, &rooms));
    }
    println!("</svg>");
}

fn draw(row: usize, policy: Policy, queue: &[Need], places: &[Option<usize>]) {
    let top = 36.0 + ROW * row as f64;
    let used = (0..AGENTS.len()).filter(|agent| places.contains(&Some(*agent))).count();
    let placed = places.iter().flatten().count();
    println!("<text x=\"12\" y=\"{}\" font-weight=\"bold\">{policy}</text>", top + 24.0);
    println!("<text x=\"12\" y=\"{}\">{placed} placed, {} agents empty</text>", top + 42.0, AGENTS.len() - used);
    for (agent, (cpus, mem)) in AGENTS.into_iter().enumerate() {
        let (x, bottom) = (LEFT + STEP * agent as f64, top + BOX);
        let (wide, high) = (cpus / CPUS * BOX, mem / MEM * BOX);
        println!(
            "<rect x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"{high}\" fill=\"#f4f4f4\" stroke=\"#999\"/>",
            bottom - high
        );
        let (mut right, mut up) = (x, bottom);
        let tasks = queue.iter().zip(places).filter(|(_, place)| **place == Some(agent));
        for (number, (need, _)) in tasks.enumerate() {
            let (wide, high) = (need.amount(0).to_f64() / CPUS * BOX, need.amount(1).to_f64() / MEM * BOX);
            let colour = ["#3b76af", "#e08a3c", "#549e56", "#b8534f", "#8567b0", "#7f6a5d"][number % 6];
            up -= high;
            println!(
                "<rect x=\"{right:.1}\" y=\"{up:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" fill=\"{colour}\"/>"
            );
            right += wide;
        }
    }
}
