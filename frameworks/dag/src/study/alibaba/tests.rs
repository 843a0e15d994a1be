//! Tests with a small trace in the form of the public one, and with lines that break its rules.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

const TRACE: &str = "\
M1,4,j_1,1,Terminated,100,110,100,0.5
R2_1,2,j_1,1,Terminated,110,140,50,0.3
J3_1_2,1,j_1,1,Terminated,140,145,,
M1,1,j_2,1,Failed,90,95,100,0.5
task_abc,3,j_3,1,Terminated,90,95,100,0.5
R2_7,1,j_4,1,Terminated,91,95,100,0.5
M1_2,1,j_5,1,Terminated,91,95,100,0.5
R2_1,1,j_5,1,Terminated,91,95,100,0.5
M1,1,j_6,1,Terminated,91,95,100,0.5
R1,1,j_6,1,Terminated,91,95,100,0.5
M1,1,j_7,1,Terminated,0,95,100,0.5
M1,1,j_8,1,Terminated,91,95,9700,0.5
";

fn of(text: &str, jobs: usize, least: usize) -> Result<Trace, StudyError> {
    read(&mut text.as_bytes(), jobs, least)
}

#[test]
fn names_say_what_comes_before() {
    assert_eq!(parse_name("J5_2_3"), Some((5, vec![2, 3])));
    assert_eq!(parse_name("M1"), Some((1, vec![])));
    assert_eq!(parse_name("R2_1_Stg4"), Some((2, vec![1])));
    assert_eq!((parse_name("task_MTY4"), parse_name("MergeTask"), parse_name("12")), (None, None, None));
}

#[test]
fn jobs_that_make_sense_are_read() {
    let trace = of(TRACE, 10, 1).unwrap();
    let names: Vec<&str> = trace.jobs.iter().map(|traced| traced.job.name.as_str()).collect();
    assert_eq!(names, ["j_3", "j_1"]);
    let stages = &trace.jobs[1].job.stages;
    assert_eq!((trace.jobs[1].at, stages.len(), stages[2].parents.clone()), (10, 3, vec![0, 1]));
    assert_eq!((stages[1].tasks, stages[1].rough, stages[1].demand.cpus, stages[1].demand.mem), (2, 30_000, 500, 300));
    assert_eq!(
        trace.left_out.to_string(),
        "6 jobs are omitted: 1 have tasks that have not succeeded, 1 began or ended outside of the trace, or have \
         tasks without instances, 1 have tasks that request more than a machine has, 1 have two tasks with the same \
         number, \
         1 have tasks that depend on missing tasks, 1 have tasks that depend on each other"
    );
    assert_eq!(of(TRACE, 10, 2).unwrap().jobs.len(), 1);
    let first = of(TRACE, 1, 1).unwrap();
    assert_eq!((first.jobs.len(), first.jobs[0].job.name.as_str()), (1, "j_3"));
    assert!(first.left_out.to_string().ends_with("1 are above the maximum number of jobs"));
    assert!(of("task_name,instance_num\n\n", 1, 1).unwrap().left_out.is_empty());
}

#[test]
fn tasks_of_a_job_may_be_far_apart() {
    let mut text = "M1,1,first,1,Terminated,5,6,100,0.5\n".to_owned();
    for job in 0..2000 {
        let _ = writeln!(text, "M1,1,j_{job},1,Terminated,{},{},100,0.5", job + 10, job + 20);
    }
    text.push_str("R2_1,1,first,1,Terminated,6,9,100,0.5\n");
    let trace = of(&text, 2, 1).unwrap();
    assert_eq!((trace.jobs[0].job.name.as_str(), trace.jobs[0].job.stages.len()), ("first", 2));
}

#[test]
fn lines_that_break_a_rule_are_named() {
    let said = |text: &[u8]| read(&mut &text[..], 1, 1).unwrap_err().to_string();
    assert!(said(b"task_name\nM1,1,j,1,T,1,2,1,1\na,b\n").starts_with("line 3: must have nine fields, and has 2"));
    assert!(said(b"M1,x,j,1,T,1,2,1,1\n").starts_with("line 1: instance_num must be a number"));
    assert_eq!(said(b"\n\xff\n"), "line 2: must be UTF-8");
    assert_eq!(said(&[b'a'; 5000]), "line 1: must have 4096 bytes at most");
}

#[test]
fn a_job_with_too_many_tasks_is_left_out() {
    let lines = (1..=1001).map(|task| format!("M{task},1,j,1,Terminated,1,2,100,0.5\n"));
    let trace = of(&lines.collect::<String>(), 5, 1).unwrap();
    assert!(trace.jobs.is_empty());
    assert_eq!(trace.left_out.to_string(), "1 jobs are omitted: 1 have more than 1000 tasks");
}

proptest! {
    /// Checks that any file is read or a line is named, and that the jobs that are read can be run.
    #[test]
    fn lines_are_read_or_named(
        lines in proptest::collection::vec(
            ("[MRJ]?[0-9]{1,2}(_[0-9]){0,2}|task_x", "[0-9]{0,7}|-1|x", "j_[0-3]", "Terminated|Failed",
             0..40_u32, 0..40_u32, "[0-9]{0,4}|-1", "[0-9]{0,3}|0\\.[0-9]"),
            0..30,
        ),
        least in 1..3_usize,
    ) {
        let line = |(name, instances, job, status, start, end, cpu, mem): &(String, String, String, String, u32, u32, String, String)| {
            format!("{name},{instances},{job},1,{status},{start},{end},{cpu},{mem}\n")
        };
        match of(&lines.iter().map(line).collect::<String>(), 3, least) {
            Ok(trace) => {
                prop_assert!(trace.jobs.len() <= 3);
                for (before, after) in trace.jobs.iter().zip(trace.jobs.iter().skip(1)) {
                    prop_assert!(before.at <= after.at);
                }
                for stages in trace.jobs.iter().map(|traced| &traced.job.stages) {
                    prop_assert!(stages.len() >= least);
                    for (at, stage) in stages.iter().enumerate() {
                        prop_assert!(stage.tasks > 0 && stage.rough > 0 && MACHINE.fits(stage.demand) > 0);
                        prop_assert!(stage.parents.iter().all(|parent| (*parent as usize) < at));
                    }
                }
            }
            Err(error) => prop_assert!(error.to_string().starts_with("line "), "{error}"),
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = read(&mut &bytes[..], 5, 1);
    }
}
