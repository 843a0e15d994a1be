//! `tepui fairness`: lists shares beside fair shares, and how frameworks treat offers.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::table::{number, percent, table};
use super::{ListArgs, ListOutput};

/// Shows the master's fairness report.
///
/// # Errors
/// The master cannot be read, or is not tepui's.
pub fn run(args: &ListArgs) -> Result<ExitCode> {
    args.show(async || {
        let report = args.master.call("GET_FAIRNESS", &Value::Null).await?;
        Ok(if args.wants_document() { ListOutput::Document(report) } else { ListOutput::Text(show(&report)) })
    })
}

fn show(report: &Value) -> String {
    let float = |value: &Value| value.as_f64().unwrap_or_default();
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    let mut roles = table(&["ROLE", ">SHARE", ">FAIR SHARE"]);
    for role in list("roles") {
        let name = role["role"].as_str().unwrap_or_default().to_owned();
        roles.add_row([name, percent(float(&role["share"])), percent(float(&role["fair_share"]))]);
    }
    let mut frameworks =
        table(&["FRAMEWORK", "ROLE", ">SHARE", ">FAIR SHARE", ">OFFERS", ">ACCEPTED", ">DECLINED", "WANTS OFFERS"]);
    for one in list("frameworks") {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let count = |name: &str| one["offers"][name].as_u64().unwrap_or_default().to_string();
        let wants = if one["wants_offers"] == true { "yes" } else { "no" };
        frameworks.add_row([
            text(&one["framework_id"]["value"]),
            text(&one["role"]),
            percent(float(&one["share"])),
            percent(float(&one["fair_share"])),
            count("sent"),
            count("accepted"),
            count("declined"),
            wants.to_owned(),
        ]);
    }
    if list("frameworks").is_empty() {
        return "no framework is subscribed, so no shares are compared".to_owned();
    }
    format!(
        "{}\n\n{}\n\nJain's index {}, lost share {}; shares are dominant shares",
        roles.trim_fmt(),
        frameworks.trim_fmt(),
        number(float(&report["jain_index"])),
        percent(float(&report["lost_share"]))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shares_beside_fair_shares() {
        let framework = json!({ "framework_id": { "value": "f1" }, "role": "a", "wants_offers": true, "share": 0.25,
            "fair_share": 0.5, "offers": { "sent": 3, "accepted": 1, "declined": 2 } });
        let roles = json!([{ "role": "a", "share": 0.25, "fair_share": 0.5 }]);
        let report = json!({ "roles": roles, "frameworks": [framework], "jain_index": 0.9, "lost_share": 0.25 });
        let text = show(&report);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[1], "a 25.0 % 50.0 %");
        assert_eq!(lines[4], "f1 a 25.0 % 50.0 % 3 1 2 yes");
        assert!(text.ends_with("Jain's index 0.9, lost share 25.0 %; shares are dominant shares"));
    }
}
