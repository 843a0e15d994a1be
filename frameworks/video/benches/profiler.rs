//! Measures the cost of a profile on a real clip that is decoded and counted: hill climbing with cached steps against
//! an exhaustive search.
//!
//! Prints a table for each kind of query. It asserts nothing.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use video::media::Video;
use video::pipeline::{Config, Knobs, QueryKind};
use video::profile::{Clip, ClipOptions, Point, Search, climb, exhaustive, frontier};
use video::scene::{SceneOptions, generate};

fn main() {
    let path = std::env::temp_dir().join(format!("tepui-bench-profiler-{}.mp4", std::process::id()));
    let options = SceneOptions { seed: 12, seconds: 8.0, ..Default::default() };
    generate(&options, &path).expect("a scene");
    let knobs = Knobs::default();
    println!(
        "profiler: {} configurations, {} s of {}x{} at {}/s",
        knobs.all().len(),
        options.seconds,
        options.width,
        options.height,
        options.fps
    );
    for kind in [QueryKind::Cars, QueryKind::Plates] {
        let clip = |keep| {
            let clip = ClipOptions { seconds: options.seconds, keep, ..Default::default() };
            Clip::new(Video::open(&path).expect("opens"), kind, Config::GOLDEN, clip).expect("a clip")
        };
        let mut rows: Vec<(&str, usize, f64, Vec<Point>)> = Vec::new();
        for (name, keep, all) in [
            ("climbing, steps kept", true, false),
            ("everything, steps kept", true, true),
            ("climbing, nothing kept", false, false),
            ("everything, nothing kept", false, true),
        ] {
            let mut clip = clip(keep);
            let points = if all {
                exhaustive(&knobs, &mut clip)
            } else {
                climb(&knobs, Config::GOLDEN, &Search::default(), &mut clip)
            };
            let points = points.expect("decodes");
            rows.push((name, points.len(), clip.spent(), points));
        }
        let best = |points: &[Point], cores: f64| {
            points.iter().filter(|p| p.cores <= cores).map(|p| p.quality).fold(0.0, f64::max)
        };
        let least = rows[0].2;
        println!("  {}:", kind.name());
        for (name, tried, spent, points) in &rows {
            let q = best(points, f64::INFINITY);
            println!(
                "    {name:<26} {tried:>4} tried {spent:>8.2} core-s ({:>5.1}x)  best quality {q:.3}",
                spent / least
            );
        }
        let cheaper = |share: f64| {
            let golden = rows[0].3[0].cores;
            let (ours, all) = (best(&rows[0].3, golden * share), best(&rows[1].3, golden * share));
            format!("{:.0} %: {ours:.3} of {all:.3}", share * 100.0)
        };
        let budgets: Vec<String> = [0.5, 0.25, 0.1].into_iter().map(cheaper).collect();
        println!("    best quality for a part of the golden configuration's cores: {}", budgets.join(", "));
        for point in frontier(&rows[0].3) {
            println!("      {:.4} cores  {:.3}  {}", point.cores, point.quality, point.config);
        }
    }
    std::fs::remove_file(&path).expect("removes");
    std::fs::remove_file(path.with_extension("json")).expect("removes");
}
