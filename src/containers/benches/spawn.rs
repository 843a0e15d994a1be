//! How fast processes start: `/bin/true` through the launcher and through `std::process::Command`, from a small parent
//! and from one with a lot of memory in use. Prints figures; asserts none.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods)] // a benchmark measures real time

use std::os::unix::process::CommandExt;
use std::time::Instant;

use containers::{Launcher, Program, Spec, User};

const COUNT: u32 = 1000;
/// Memory that a busy agent uses, in bytes.
const BALLAST_BYTES: usize = 256 << 20;

fn main() {
    all("small parent");
    let ballast = vec![1_u8; BALLAST_BYTES];
    all("parent with 256 MiB");
    drop(ballast);
}

fn all(parent: &str) {
    let mut spec = Spec::new(Program::Argv { file: "/bin/true".into(), argv: vec![] });
    let launch = |spec: &Spec| {
        if let Ok(child) = Launcher::posix().spawn(spec) {
            let _ = child.wait(None);
        }
    };
    measure(&format!("{parent}: Launcher"), || launch(&spec));
    if let Ok(nobody) = User::by_name("nobody")
        && User::by_name("root").is_ok_and(|root| root.is_current())
    {
        spec.user = Some(nobody);
        measure(&format!("{parent}: Launcher, switching the user"), || launch(&spec));
    }
    measure(&format!("{parent}: std, posix_spawn"), || {
        drop(std::process::Command::new("/bin/true").env_clear().status())
    });
    measure(&format!("{parent}: std, group and directory"), || {
        drop(std::process::Command::new("/bin/true").env_clear().process_group(0).current_dir("/").status());
    });
}

fn measure(what: &str, mut start: impl FnMut()) {
    let (began, before) = (Instant::now(), ticks());
    for _ in 0..COUNT {
        start();
    }
    let each = began.elapsed() / COUNT;
    let cpu = (ticks() - before) as f64 / rustix::param::clock_ticks_per_second() as f64 * 1e6 / f64::from(COUNT);
    println!(
        "{what}: {each:.0?} each, of it CPU {cpu:.0}µs with /bin/true's own; {:.0} a second",
        1.0 / each.as_secs_f64()
    );
}

/// Returns the clock ticks that this process and its reaped children have used.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    numbers.skip(11).take(4).filter_map(|number| number.parse::<u64>().ok()).sum()
}
