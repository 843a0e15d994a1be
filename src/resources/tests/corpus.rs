//! Replays the seeds of the fuzz target `resource_text`, and their first parts, as an ordinary test.

mod check_text;

use check_text::check_text;

#[test]
fn seeds_are_answered() {
    let directory = std::path::Path::new("../../fuzz/corpus/resource_text");
    let seeds: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(seeds.len() >= 10, "{} has {} seeds", directory.display(), seeds.len());
    for seed in seeds {
        let bytes = std::fs::read(&seed).unwrap();
        for end in 0..=bytes.len() {
            check_text(&bytes[..end]);
        }
    }
}
