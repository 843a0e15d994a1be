//! Checks job and query files of the frameworks.

use std::path::Path;

use crate::pieces::Pieces;

/// Checks an input whose first line names the kind of file, and whose rest is its text. An accepted file is the same
/// after serialization to JSON, in which frameworks save it.
pub fn jobs(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let kind = pieces.line();
    let Ok(text) = std::str::from_utf8(pieces.rest()) else { return };
    match kind {
        b"binpack.toml" => binpack(text, binpack::job::Syntax::Toml),
        b"binpack.json" => binpack(text, binpack::job::Syntax::Json),
        b"dag.toml" => dag(text, dag::job::Syntax::Toml),
        b"dag.json" => dag(text, dag::job::Syntax::Json),
        b"quality" => quality(text),
        b"video" => video(text),
        _ => {}
    }
}

fn binpack(text: &str, syntax: binpack::job::Syntax) {
    let Ok(jobs) = binpack::job::read("jobs", text, syntax) else { return };
    assert!((1..=binpack::job::JOBS_MAX).contains(&jobs.len()));
    for job in jobs {
        let json = serde_json::to_string(&job).expect("JSON");
        let again: binpack::job::Job = serde_json::from_str(&json).expect("what was written is read");
        assert_eq!(again, job, "{json}");
        let _ = [0, 1, u32::MAX].map(|failures| job.restart.wait(failures));
    }
}

fn dag(text: &str, syntax: dag::job::Syntax) {
    let Ok(jobs) = dag::job::read("jobs", text, syntax) else { return };
    assert!((1..=dag::job::JOBS_MAX).contains(&jobs.len()));
    for job in jobs {
        let json = serde_json::to_string(&job).expect("JSON");
        let again: dag::job::Job = serde_json::from_str(&json).expect("what was written is read");
        assert_eq!(again, job, "{json}");
        // Stages stand after those that they depend on.
        let earlier = |(place, stage): (usize, &dag::job::Stage)| stage.after.iter().all(|before| *before < place);
        assert!(job.stages.iter().enumerate().all(earlier), "{json}");
    }
}

fn quality(text: &str) {
    let Ok(jobs) = quality::job::parse("jobs", text) else { return };
    for job in jobs {
        let json = serde_json::to_string(&job).expect("JSON");
        let again: quality::job::Job = serde_json::from_str(&json).expect("what was written is read");
        assert_eq!(again, job, "{json}");
        assert!(again.check().is_ok());
        let _ = job.ceiling();
    }
}

fn video(text: &str) {
    let Ok(queries) = video::spec::parse(text, "queries", Path::new("/videos")) else { return };
    assert!((1..=video::spec::QUERIES_MAX).contains(&queries.len()));
    for query in queries {
        assert_eq!(query.check(), Ok(()));
        let json = serde_json::to_string(&query).expect("JSON");
        let again: video::spec::QuerySpec = serde_json::from_str(&json).expect("what was written is read");
        assert_eq!(again, query, "{json}");
    }
}
