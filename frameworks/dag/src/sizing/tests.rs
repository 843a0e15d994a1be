//! Property tests of the tuner, over random stages. Invariants:
//!
//! 1. A size is at least 1, at most the largest size, and at least the least one unless less than that is left.
//! 2. Handed-out sizes add up to the input: nothing is left over and nothing is handed out twice.
//! 3. No machine has two running tasks that explore.
//! 4. The same calls lead to the same sizes, and a tuner that was stored and read goes on as if it had not been.
//! 5. A machine's part of the size stays within (0, 1].

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Returns the time of a task on a U-shaped curve: a start, a rate, and slower processing beyond the memory.
fn u_curve(size: u64) -> f64 {
    let (size, memory) = (size as f64, 100e6);
    let over = (size - memory).max(0.0);
    1.0 + size / 50e6 + 3.0 * over * over / memory / 50e6
}

/// Runs a stage on machines of four slots, in rounds. Returns the sizes handed out.
fn rounds(tuner: &mut Tuner, machines: usize, rounds: usize, slow: impl Fn(usize, usize) -> f64) -> Vec<u64> {
    let mut sizes = Vec::new();
    for round in 0..rounds {
        let mut running = Vec::new();
        for slot in 0..machines * 4 {
            let machine = format!("m{}", slot % machines);
            let size = tuner.next_size(&machine);
            sizes.push(size);
            running.push((machine, size, slot));
        }
        for (machine, size, slot) in running {
            let noise = 1.0 + 0.02 * ((slot * 7 + round * 13) % 5) as f64;
            let straggler = if (slot + round) % 17 == 0 { 3.0 } else { 1.0 };
            let time = u_curve(size) * noise * straggler * slow(slot % machines, round);
            tuner.finished(Sample { machine: &machine, size, duration: seconds(time) });
        }
    }
    sizes
}

fn config(start: u64) -> SizingConfig {
    SizingConfig { least: 1 << 10, most: 4 << 30, start, ..SizingConfig::default() }
}

/// Returns the size with the highest rate.
fn best() -> f64 {
    let rate = |size: &u64| *size as f64 / u_curve(*size);
    (1..2000).map(|n| n * 1_000_000).max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap() as f64
}

#[test]
fn it_finds_the_lowest_point_of_the_u_from_both_sides() {
    for start in [1 << 20, 8 << 20, 128 << 20, 2 << 30] {
        let mut tuner = Tuner::new(config(start));
        rounds(&mut tuner, 8, 25, |_, _| 1.0);
        let rate = |size: f64| size / u_curve(size as u64);
        let reached = rate(tuner.size() as f64) / rate(best());
        assert!(reached > 0.9, "from {start} to {} of {}: {reached}", tuner.size(), best());
    }
}

#[test]
fn a_contended_machine_steps_back_and_the_others_do_not() {
    let mut tuner = Tuner::new(config(64 << 20));
    rounds(&mut tuner, 8, 12, |_, _| 1.0);
    let before = tuner.size() as f64;
    rounds(&mut tuner, 8, 2, |machine, _| if machine == 3 { 4.0 } else { 1.0 });
    assert!(tuner.machine("m3").unwrap().part() < 1.0);
    assert!(tuner.machine("m2").unwrap().part() == 1.0);
    assert!(tuner.size() as f64 > before * 0.6, "{} after {before}", tuner.size());
    rounds(&mut tuner, 8, 12, |_, _| 1.0);
    assert_eq!(tuner.machine("m3").unwrap().part(), 1.0);
    assert_eq!(tuner.machine("unknown"), None);
}

#[test]
fn a_resumed_tuner_begins_where_the_last_run_ended() {
    let mut tuner = Tuner::new(config(1 << 20));
    assert_eq!(tuner.found(), None);
    rounds(&mut tuner, 8, 20, |_, _| 1.0);
    let found = tuner.found().unwrap();
    let again = Tuner::resume(config(1 << 20), found);
    assert_eq!((again.size(), found.runs), (found.size, 1));
    assert!(again.explain().to_string().contains("1 earlier runs"));
    let mut again = again;
    rounds(&mut again, 8, 8, |_, _| 1.0);
    assert_eq!(again.found().unwrap().runs, 2);
}

#[test]
fn explanations_name_the_reason() {
    let mut tuner = Tuner::new(config(1 << 20));
    assert_eq!(tuner.explain().to_string(), "tasks get 1048576 units: the size to begin with, no wave has finished");
    rounds(&mut tuner, 8, 1, |_, _| 1.0);
    let text = tuner.explain().to_string();
    assert!(text.contains("larger tasks are faster by unit"), "{text}");
    let wave = tuner.waves().next().unwrap();
    assert!(wave.explorers > 0 && wave.next > wave.size, "{wave:?}");
}

#[test]
fn settings_are_checked() {
    assert_eq!(config(1 << 20).validate(), Ok(()));
    let wrong = SizingConfig { start: 5, ..config(1 << 20) };
    assert_eq!(wrong.validate().unwrap_err().to_string(), "invalid 'start': must be between 'least' and 'most'");
    assert!(SizingConfig { step: f64::NAN, ..config(1 << 20) }.validate().is_err());
    let mut tuner = Tuner::new(SizingConfig { least: 0, most: 0, step: f64::NAN, start: 9, ..config(1) });
    assert_eq!(tuner.next_size("m"), 1);
}

#[test]
fn fixed_rules() {
    let size = |rule| Fixed::new(rule, 1000, 10).size();
    assert_eq!([Rule::Size(7), Rule::Block, Rule::PerSlot, Rule::Chunks(4)].map(size), [7, BLOCK, 100, 25]);
    assert_eq!(Fixed::new(Rule::PerSlot, 0, 0).size(), 1);
}

/// An event in a random stage.
#[derive(Clone, Debug)]
enum Event {
    Ask(u8),
    Finish(u8, u32),
    Lose(u8),
    Store,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..6_u8).prop_map(Event::Ask),
        4 => (any::<u8>(), 0..60_000_u32).prop_map(|(which, time)| Event::Finish(which, time)),
        1 => any::<u8>().prop_map(Event::Lose),
        1 => Just(Event::Store),
    ]
}

proptest! {
    /// Part of rule 4: checks that a number of the saved state is read exactly as it was written.
    #[test]
    fn kept_numbers_are_exact(number in prop::num::f64::NORMAL) {
        let kept = serde_json::to_string(&number).unwrap();
        prop_assert_eq!(serde_json::from_str::<f64>(&kept).unwrap().to_bits(), number.to_bits());
    }

    #[test]
    fn invariants_hold(
        start in 1..2_000_000_u64,
        input in 1..500_000_000_u64,
        slots in 1..40_u32,
        events in prop::collection::vec(event(), 1..400),
    ) {
        let config = SizingConfig { least: 1_000, most: 1_000_000, start, ..SizingConfig::default() };
        let (mut tuner, mut twin) = (Tuner::new(config), Tuner::new(config));
        let (mut left, mut handed_out) = (input, 0);
        let mut running: Vec<(String, u64)> = Vec::new();
        for event in events {
            match event {
                Event::Ask(machine) if left > 0 => {
                    let machine = format!("m{machine}");
                    for tuner in [&mut tuner, &mut twin] {
                        tuner.set_left(left, slots);
                    }
                    let size = tuner.next_size(&machine);
                    prop_assert_eq!(size, twin.next_size(&machine));
                    prop_assert!((1..=1_000_000.min(left)).contains(&size));
                    prop_assert!(size >= 1_000.min(left), "{} of {}", size, left);
                    left -= size;
                    handed_out += size;
                    let known = tuner.machine(&machine).unwrap();
                    prop_assert!(known.running.iter().filter(|task| task.explores).count() <= 1);
                    running.push((machine, size));
                }
                Event::Finish(which, millis) if !running.is_empty() => {
                    let (machine, size) = running.swap_remove(usize::from(which) % running.len());
                    let duration = Duration::from_millis(u64::from(millis));
                    tuner.finished(Sample { machine: &machine, size, duration });
                    twin.finished(Sample { machine: &machine, size, duration });
                }
                Event::Lose(which) if !running.is_empty() => {
                    let (machine, size) = running.swap_remove(usize::from(which) % running.len());
                    tuner.lost(&machine, size);
                    twin.lost(&machine, size);
                    left += size;
                    handed_out -= size;
                }
                Event::Store => twin = serde_json::from_str(&serde_json::to_string(&twin).unwrap()).unwrap(),
                _ => {}
            }
            prop_assert_eq!(left + handed_out, input);
            for machine in 0..6 {
                let part = tuner.machine(&format!("m{machine}")).map_or(1.0, |machine| machine.part());
                prop_assert!(part > 0.0 && part <= 1.0);
            }
        }
        let mut calls = 0;
        while left > 0 {
            tuner.set_left(left, slots);
            left -= tuner.next_size("m0");
            calls += 1;
            prop_assert!(calls < 1_000_000);
        }
    }
}
