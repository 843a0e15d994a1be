//! Tests that read each shape from a few lines, and check errors with row, column and rule.

use super::cells::moment;
use super::*;

fn settings<'a>(shape: Option<&'a str>, machine: &str) -> TraceSettings<'a> {
    TraceSettings { shape, machine: parse_quantities(machine).ok(), needs: false, time: false }
}

fn plain(text: &str) -> Result<Vec<Row>, Wrong> {
    parse(text, &settings(None, ""))
}

/// Returns arrival and duration in seconds, tasks, CPUs, megabytes and GPUs of each row.
fn short(rows: &[Row]) -> Vec<(u64, Option<u64>, u32, f64, f64, f64)> {
    let one = |row: &Row| {
        let seconds = row.duration.map(|duration| duration.as_secs());
        (row.submit.as_secs(), seconds, row.tasks, row.cpus, row.mem_mb, row.gpus)
    };
    rows.iter().map(one).collect()
}

#[test]
fn rows_are_read_or_refused() {
    let rows = plain("tasks,submit_s,x,cpus,mem_mb,duration_s\n2,1.5,?,1,512,60\n").unwrap();
    assert_eq!((rows[0].submit, rows[0].tasks), (Duration::from_millis(1500), 2));
    let header = Shape::Own.columns().join(",");
    for (text, line, word) in [
        ("a,b\n".to_owned(), 1, "alibaba-2018"),
        (format!("{header}\n1,1,1,1,1\n0,1,1,1,1"), 3, "order"),
        (format!("{header}\n1,0,1,1,1"), 2, "column 2 (tasks): '0' is not a number from 1"),
        (format!("{header}\n1,1,nan,1,1"), 2, "column 3 (cpus): 'nan'"),
        (format!("{header}\n1,1,1,1"), 2, "column 5 (duration_s): ''"),
        (format!("{header}\n1,1,0,0,1"), 2, "needs"),
        (format!("x,{header}\n?,1,1,1,-1,1"), 2, "column 5 (mem_mb): '-1'"),
    ] {
        let (at, rule) = plain(&text).unwrap_err();
        assert!(at == line && rule.contains(word), "{text}: {at} {rule}");
    }
}

#[test]
fn traces_of_others_begin_with_their_first_job() {
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
        p1,3152,5600,1,590,,BE,Failed,12900505,12900526,12900506\np0,16000,32768,2,1000,,LS,Running,12897160,12900786,\n";
    let pods = short(&plain(pods).unwrap());
    assert_eq!(pods, [(0, Some(3626), 1, 16.0, 32768.0, 2.0), (3345, Some(20), 1, 3.152, 5600.0, 0.59)]);
    let tiresias = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n";
    assert_eq!(short(&plain(tiresias).unwrap())[1], (30, Some(147), 1, 0.0, 0.0, 8.0));
    let philly = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-11-08 08:22:11,78.0,1,78.0,x\n2017-11-07 08:22:10,57.0,4,57.0,x\n";
    let rows = plain(philly).unwrap();
    assert_eq!((rows[0].gpus, rows[1].submit.as_secs()), (4.0, 86_401));
    assert!(plain("timestamp,duration,num_gpus\nyesterday,1,1\n").unwrap_err().1.contains("column 1 (timestamp)"));
}

#[test]
fn moments_are_of_the_calendar() {
    assert_eq!(moment("2000-03-01 00:00:00").unwrap().as_secs(), 951_868_800);
    assert_eq!(moment("1970-01-01 00:00:01.25+00:00"), Some(Duration::from_millis(1250)));
    for text in [
        "",
        "2000-03-01",
        "2000-13-01 00:00:00",
        "2000-03-01 00:00:00.x",
        "2000-03-01 00:00:00.",
        "1969-12-31 23:59:59",
    ] {
        assert_eq!(moment(text), None, "{text}");
    }
}

#[test]
fn pollux_mixes_are_gangs_of_gpus_without_a_duration() {
    let mix = "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,6,2048\nncf-2,135,ncf,1,32768\n";
    let rows = parse(mix, &TraceSettings { time: true, ..TraceSettings::default() }).unwrap();
    assert_eq!(short(&rows), [(0, None, 6, 0.0, 0.0, 1.0), (28, None, 1, 0.0, 0.0, 1.0)]);
    assert!(rows[0].gang);
    assert!(plain(mix).unwrap_err().1.contains("set `time`"));
}

#[test]
fn tasks_of_alibaba_2018_are_jobs_of_their_instances() {
    let of_2018 = settings(Some("alibaba-2018"), "mem:100000");
    // In order: a normal task, one of unknown memory, one that has not ended, one from before the trace, one without
    // amounts.
    let text = "M2_1,20,j_1,1,Terminated,86500,86560,100,0.5\nM1,3,j_1,1,Terminated,86400,86410,50,101\n\
                R3_2,1,j_1,1,Running,86600,0,100,0.5\ntask_x,1,j_2,1,Terminated,0,5,100,0.5\nM1,1,j_3,1,Failed,86401,86402,,\n";
    let rows = short(&parse(text, &of_2018).unwrap());
    assert_eq!(rows, [(0, Some(10), 3, 0.5, 0.0, 0.0), (100, Some(60), 20, 1.0, 500.0, 0.0)]);
    for (text, shape, machine, line, word) in [
        (text, "alibaba-2018", "", 1, "set `machine`"),
        ("M1,1,j_1,1,Terminated,1,2,100\n", "alibaba-2018", "mem:1", 1, "has 8 columns: must have 9: task_name"),
        (
            "a,1,j,1,T,1,2,1,1\n\nM1,1,j_1,1,Terminated,1,2,ten,1\n",
            "alibaba-2018",
            "mem:1",
            3,
            "column 8 (plan_cpu): 'ten'",
        ),
        ("a,1,j,1,T,1,2,1,102\n", "alibaba-2018", "mem:1", 1, "column 9 (plan_mem): '102'"),
    ] {
        let (at, rule) = parse(text, &settings(Some(shape), machine)).unwrap_err();
        assert!(at == line && rule.contains(word), "{text}: {at} {rule}");
    }
}

#[test]
fn machines_of_azure_work_until_they_are_deleted() {
    let of_azure = settings(Some("azure-vm"), "");
    let text = "a,s,d,600,1200,90.1,3.2,80,Interactive,4,32\nb,s,d,300,2591400,90.1,3.2,80,Unknown,>24,>64\n\
                c,s,d,600,600,1,1,1,Delay-insensitive,1,1.75\n";
    let rows = short(&parse(text, &of_azure).unwrap());
    assert_eq!(
        rows,
        [
            (0, Some(2_591_100), 1, 30.0, 71_680.0, 0.0),
            (300, Some(600), 1, 4.0, 32_768.0, 0.0),
            (300, Some(0), 1, 1.0, 1792.0, 0.0)
        ]
    );
    // The same rows with a header, as many files have them.
    let headed = format!("{}\n{text}", Shape::Machines.columns().join(","));
    assert_eq!(short(&plain(&headed).unwrap()), rows);
    let (at, rule) = parse("a,s,d,600,1200,1,1,1,x,some,32\n", &of_azure).unwrap_err();
    assert!(at == 1 && rule.contains("column 10 (vmcorecountbucket): 'some'"), "{rule}");
}

#[test]
fn requests_are_arrivals_only() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n";
    let rows = parse(text, &TraceSettings { needs: true, time: true, ..TraceSettings::default() }).unwrap();
    assert_eq!((rows.len(), rows[1].duration), (2, None));
    assert!((rows[1].submit.as_secs_f64() - 4.314_579).abs() < 1e-6, "{:?}", rows[1].submit);
    for (needs, time) in [(false, true), (true, false)] {
        let (at, rule) = parse(text, &TraceSettings { needs, time, ..TraceSettings::default() }).unwrap_err();
        assert!(at == 1 && rule.contains("arrivals only"), "{rule}");
    }
}

#[test]
fn events_of_google_2011_make_jobs() {
    let of_google = settings(Some("google-2011"), "cpus:32;mem:1000");
    // Task 0 waits 2 s, is evicted after 3 s, is submitted again and finishes; task 1 never ends; task 2 existed before
    // the trace.
    let text = "600000000,,7,0,,0,u,2,9,0.125,0.5,0.001,0\n600000000,,7,1,,0,u,2,9,0.125,0.5,0.001,0\n\
                601000000,,7,2,5,4,u,2,9,0.125,0.5,0.001,0\n602000000,,7,0,5,1,u,2,9,0.125,0.5,0.001,0\n\
                605000000,,7,0,5,2,u,2,9,0.125,0.5,0.001,0\n605000000,,7,0,,0,u,2,9,0.125,,0.001,0\n\
                606000000,,7,0,5,1,u,2,9,0.125,0.5,0.001,0\n607000000,,7,0,5,4,u,2,9,0.125,0.5,0.001,0\n\
                9223372036854775807,,7,1,5,4,u,2,9,0.125,0.5,0.001,0\n";
    let rows = short(&parse(text, &of_google).unwrap());
    assert_eq!(rows, [(0, Some(3), 1, 4.0, 500.0, 0.0), (5, Some(1), 1, 4.0, 0.0, 0.0)]);
    assert!(parse(text, &settings(Some("google-2011"), "cpus:32")).unwrap_err().1.contains("set `machine`"));
    let (at, rule) = parse("1,,7,0,,9,u,2,9,0.1,0.1,0.1,0\n", &of_google).unwrap_err();
    assert!(at == 1 && rule.contains("column 6 (event_type): '9' is not a number from 0 to 8"), "{rule}");
    let (_, rule) = parse("1,,7,0,,0,u,2,9,2,0.1,0.1,0\n", &of_google).unwrap_err();
    assert!(rule.contains("column 10 (cpu_request)"), "{rule}");
}

#[test]
fn events_of_google_2019_make_jobs() {
    let header = "time,type,collection_id,instance_index,cpus,memory\n";
    // Task 0 is queued, waits 2 s and runs for 3 s; task 1 is evicted, and then lost; an update in between changes
    // nothing.
    let text = format!(
        "{header}600000000,0,7,0,0.125,0.5\n600000000,1,7,0,0.125,0.5\n601000000,2,7,0,0.125,0.5\n\
         602000000,3,7,0,0.125,0.5\n603000000,10,7,0,0.25,0.5\n605000000,6,7,0,0.125,0.5\n\
         600000000,0,7,1,,0.25\n601000000,3,7,1,,0.25\n602000000,4,7,1,,0.25\n603000000,0,7,1,,0.25\n603000000,8,7,1,,\n"
    );
    let rows = short(&parse(&text, &settings(None, "cpus:32;mem:1000")).unwrap());
    assert_eq!(rows, [(0, Some(3), 1, 4.0, 500.0, 0.0), (0, Some(1), 1, 0.0, 250.0, 0.0)]);
    assert!(plain(&text).unwrap_err().1.contains("set `machine`"));
    let (at, rule) = parse(&format!("{header}1,11,7,0,0.1,0.1\n"), &settings(None, "cpus:1;mem:1")).unwrap_err();
    assert!(at == 2 && rule.contains("column 2 (type): '11' is not a number from 0 to 10"), "{rule}");
}

#[test]
fn tasks_of_alibaba_2017_are_jobs_of_their_instances() {
    // A task that ended, one that failed, one from before the trace.
    let text =
        "10718,11088,3,12,5,Terminated,1,0.25\n10700,10800,3,13,5,Failed,1,0.25\n0,100,4,1,1,Terminated,1,0.25\n";
    let rows = short(&parse(text, &settings(Some("alibaba-2017"), "mem:1000")).unwrap());
    assert_eq!(rows, [(0, Some(370), 5, 1.0, 250.0, 0.0)]);
    let (at, rule) = parse(text, &settings(Some("alibaba-2017"), "")).unwrap_err();
    assert!(at == 1 && rule.contains("set `machine`"), "{rule}");
    let (_, rule) = parse("1,2,3,4,5,Terminated,1,7\n", &settings(Some("alibaba-2017"), "mem:1000")).unwrap_err();
    assert!(rule.contains("column 8 (plan_mem): '7' is not a number from 0 to 1"), "{rule}");
}

#[test]
fn tasks_of_alibaba_gpu_2020_are_jobs_of_their_instances() {
    let of_2020 = settings(Some("alibaba-gpu-2020"), "");
    // A task with half a GPU for each of two workers, a server without any, one that has not ended.
    let text = "a,worker,2.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\n\
                a,ps,1.0,Terminated,1739162.0,1739201.0,400.0,2.0,,CPU\nb,worker,1.0,Running,1739163.0,,600.0,29.3,100.0,V100\n";
    let rows = short(&parse(text, &of_2020).unwrap());
    assert_eq!(rows, [(0, Some(38), 2, 6.0, 30_000.0, 0.5), (0, Some(39), 1, 4.0, 2048.0, 0.0)]);
    assert!(parse("a,b\n", &of_2020).unwrap_err().1.contains("has 2 columns: must have 10: job_name"));
}

#[test]
fn services_of_alibaba_2025_may_be_there_before_and_after_the_trace() {
    let text = "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,\
                memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n\
                i0,HN,a,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,\n\
                i1,CN,b,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,100.0,130.0,190.0\n\
                i2,CN,b,8,8,0,0,1,1,40.0,40.0,255.0,300.0,-1,150.0,150.0,\n";
    let rows = short(&plain(text).unwrap());
    assert_eq!(
        rows,
        [
            (0, Some(160), 1, 12.0, 122_880.0, 1.0),
            (100, Some(60), 1, 64.0, 327_680.0, 0.0),
            (150, Some(10), 1, 8.0, 40_960.0, 0.0)
        ]
    );
}

#[test]
fn jobs_of_helios_are_spread_over_their_nodes() {
    let text = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
                1,u,v,16,64,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n\
                2,u,v,1,1,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n\
                3,u,v,0,0,0,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:41:28,0,0\n";
    let rows = plain(text).unwrap();
    assert_eq!(short(&rows), [(0, Some(36_848), 2, 32.0, 0.0, 8.0), (26, Some(249), 1, 1.0, 0.0, 1.0)]);
    assert_eq!((rows[0].gang, rows[1].gang), (true, false));
}

#[test]
fn training_jobs_of_blox_and_gavel() {
    let blox =
        "job_id,num_gpus,submit_time,duration,model,batch_size\n1,1,12,9447,resnet50,64\n4,2,115,1942,resnet50,64\n";
    assert_eq!(short(&plain(blox).unwrap())[1], (103, Some(1942), 1, 0.0, 0.0, 2.0));
    let gavel = "ResNet-18 (batch size 128)\tcd %s/a && python3 main.py, -b\t--num_steps\t1\t10288513\t291278.000000\t4\n\
                 A3C\tcd %s/rl\t--max-steps\t0\t1934260\t291280.000000\t1\n";
    let rows = parse(gavel, &TraceSettings { time: true, ..settings(Some("gavel"), "") }).unwrap();
    assert_eq!(short(&rows), [(0, None, 4, 0.0, 0.0, 1.0), (2, None, 1, 0.0, 0.0, 1.0)]);
    assert!(parse(gavel, &settings(Some("gavel"), "")).unwrap_err().1.contains("set `time`"));
    let comma = TraceSettings { time: true, ..settings(Some("gavel"), "") };
    assert!(parse("a,b,c,1,2,3,4\n", &comma).unwrap_err().1.contains("has 1 columns: must have 7"));
}

#[test]
fn requests_for_images_take_their_time() {
    let text = "gmt_create,predict_type,predict_status,exec_time_seconds,groupId\n2024-11-15 16:57:50,TXT_2_IMG,SUCCEED,32.0,G0\n\
                2024-11-15 16:57:51,TXT_2_IMG,PROCESSING,,G0\n2024-11-15 16:57:52,TXT_2_IMG,SUCCEED,2.5,G1\n";
    let rows = parse(text, &TraceSettings { needs: true, ..TraceSettings::default() }).unwrap();
    assert_eq!((rows.len(), rows[1].submit.as_secs(), rows[1].duration), (2, 2, Some(Duration::from_millis(2500))));
    assert!(plain(text).unwrap_err().1.contains("set `needs`"));
}

#[test]
fn the_largest_tasks_are_those_that_no_other_covers() {
    let row = |cpus, mem_mb| Row { cpus, mem_mb, ..Row::default() };
    let rows = [row(1.0, 100.0), row(4.0, 50.0), row(1.0, 100.0), row(2.0, 100.0), row(0.5, 0.0), row(4.0, 60.0)];
    let told: Vec<String> = largest(&rows).iter().map(ToString::to_string).collect();
    assert_eq!(told, ["cpus:2; mem:100", "cpus:4; mem:60"]);
    let many: Vec<Row> = (0..1000).map(|n| row(f64::from(n), f64::from(1000 - n))).collect();
    assert_eq!(largest(&many).len(), MOST_LARGEST);
}
