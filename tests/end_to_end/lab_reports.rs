//! Tests the pages of the laboratory in a browser: nothing is cut off on a usual screen, small screens scroll inside of
//! boxes, a sweep is one table that can be sorted, with details on demand, and a comparison starts with the clear
//! results.

use std::path::Path;

use serde_json::json;

use crate::browser::Browser;
use crate::process::ToItsEnd;
use crate::support::{Directory, tepui, until};

/// Scenario with two frameworks of which one refuses for long; with `SWEEP` inserted it is a sweep of twelve points.
const SCENARIO: &str = r#"
name = "refusals"
about = "One framework refuses for long what it has no use for."
duration = "2m"
repetitions = 3
[model]
fidelity = "light"
[[agents]]
count = 4
resources = "cpus:4;mem:4096"
[[frameworks]]
name = "batch"
role = "batch"
[[frameworks.jobs]]
poisson = "1s"
needs = "cpus:1;mem:512"
time = "exponential 10s"
[[frameworks]]
name = "services"
role = "services"
conduct = { refuse_idle = "30s" }
[[frameworks.jobs]]
poisson = "2s"
needs = "cpus:1;mem:512"
time = "exponential 10s"
[[windows]]
name = "steady"
from = "30s"
to = "2m"
"#;

const SWEEP: &str = r#"
[sweep]
"frameworks.services.conduct.refuse_idle" = ["1s", "5s", "10s", "20s", "40s", "60s"]
"master.policies" = [{}, { adaptive_timeout = { min = "1secs", max = "5mins" }, refusal = { timed_out = "1mins" } }]
"#;

fn run(directory: &Directory, name: &str, text: &str, options: &[&str]) -> String {
    let (file, out) = (directory.join(&format!("{name}.toml")), directory.join(name));
    std::fs::write(&file, text).unwrap();
    let output = tepui().args(["lab", "run", &file, "--out", &out]).args(options).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}

fn text_of(arguments: &[&str]) -> String {
    let output = tepui().arg("lab").args(arguments).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks a page on screens of several sizes. On one of 1100 pixels no table may need its scroll bar.
fn look_at(browser: &Browser, name: &str, file: &str) {
    for (width, scheme) in [(400, "light"), (1100, "light"), (1100, "dark"), (1440, "dark")] {
        browser.view(width, 1200, scheme);
        browser.open(&format!("file://{file}"));
        browser.fits();
        browser.is_accessible();
        browser.picture(&format!("lab-{name}-{width}-{scheme}"));
        let cut = "return [...document.querySelectorAll('.wide')].filter((box) => box.scrollWidth > box.clientWidth)
            .map((box) => box.innerText)";
        if width >= 1100 {
            assert_eq!(browser.script(cut), json!([]), "tables of {name} are cut at {width} pixels");
        }
    }
}

#[test]
fn pages_of_runs_sweeps_and_comparisons_fit_and_are_small() {
    let directory = Directory::new("lab-reports");
    let browser = Browser::start();
    let one = run(&directory, "one", SCENARIO, &[]);
    look_at(&browser, "run", &format!("{one}/report.html"));
    browser.shows(&["99th percentile", "unfairness (%)", "Glossary", "Jain's index"]);

    let sweep = run(&directory, "sweep", &format!("{SCENARIO}{SWEEP}"), &["--seeds", "2"]);
    let page = format!("{sweep}/report.html");
    let size = std::fs::metadata(Path::new(&page)).unwrap().len();
    assert!(size < 400_000, "a page of twelve points has {size} bytes");
    look_at(&browser, "sweep", &page);
    // The table has a row for each point, sorted by a column, and shows the details of a point by its link.
    let first = "return document.querySelector('table.sortable tbody tr').innerText.split('\\t')[0].trim()";
    assert_eq!(browser.script("return document.querySelectorAll('table.sortable tbody tr').length"), 12);
    assert_eq!(browser.script(first), "1s");
    browser.click_button("conduct.refuse_idle");
    assert_eq!(browser.script(first), "1s");
    browser.click_button("conduct.refuse_idle");
    assert_eq!(browser.script(first), "60s");
    let open = "return document.querySelectorAll('details[open]').length";
    assert_eq!(browser.script(open), 0);
    browser.click("//table[@class='sortable']//a[.='20s']");
    assert_eq!(browser.script(open), 1);
    browser.shows(&["rescinded", "Offers declined so far"]);
    browser.picture("lab-sweep-open");

    let other = run(&directory, "other", &SCENARIO.replace("refuse_idle = \"30s\"", "refuse_idle = \"1s\""), &[]);
    let file = directory.join("compared.html");
    let told = text_of(&["compare", &one, &other, "--html", &file]);
    assert!(told.starts_with("The 3 runs of other with the seeds of one are compared with these, seed by seed.\n"));
    assert!(told.contains("\nSignificantly shorter in other: ") && told.contains("mean wait of services, "), "{told}");
    look_at(&browser, "compare", &file);
    browser.shows(&["Summary", "Significantly shorter in other"]);
}

#[test]
fn details_of_many_points_are_unpacked_by_the_page() {
    let directory = Directory::new("lab-reports-many");
    let points: Vec<String> = (1..=80).map(|n| format!("\"{n}s\"")).collect();
    let sweep = format!("[sweep]\n\"frameworks.services.conduct.refuse_idle\" = [{}]\n", points.join(", "));
    let out = run(&directory, "many", &format!("{}{sweep}", SCENARIO.replace("2m", "40s")), &["--seeds", "1"]);
    let page = format!("{out}/report.html");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.len() < 350_000 && !text.contains("rescinded</th>"), "{} bytes", text.len());
    let browser = Browser::start();
    look_at(&browser, "many", &page);
    until("the details are there", || {
        browser.script("return document.querySelectorAll('details table').length") == 80 * 4
    });
    assert_eq!(browser.script("return document.querySelectorAll('details > div:empty').length"), 0);
    browser.click("//table[@class='sortable']//a[.='20s']");
    assert_eq!(browser.script("return document.querySelector('details[open] summary').textContent.slice(-3)"), "20s");
    browser.shows(&["rescinded", "Offers declined so far"]);
    let line = "return getComputedStyle(document.querySelector('details[open] path.c1')).stroke";
    assert_eq!(browser.script(line), "rgb(214, 39, 40)");
    browser.picture("lab-sweep-many");
}
