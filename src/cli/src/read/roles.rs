//! `tepui roles`: lists roles.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::model::Amounts;
use super::table::{number, table};
use super::{ListArgs, ListOutput};

/// Lists roles with their weights, frameworks and resources.
///
/// # Errors
/// The master cannot be read.
pub fn run(args: &ListArgs) -> Result<ExitCode> {
    args.show(async || {
        let document: Value = args.master.read("/roles").await?;
        let roles = document["roles"].as_array().cloned().unwrap_or_default();
        Ok(if args.wants_document() { ListOutput::Document(roles.into()) } else { ListOutput::Text(show(&roles)) })
    })
}

fn show(roles: &[Value]) -> String {
    if roles.is_empty() {
        return "no roles: a role exists while a framework, a weight, a quota or a reservation names it".to_owned();
    }
    let mut table = table(&["ROLE", ">WEIGHT", ">FRAMEWORKS", "ALLOCATED AND OFFERED"]);
    for role in roles {
        let resources: Amounts = serde_json::from_value(role["resources"].clone()).unwrap_or_default();
        table.add_row([
            role["name"].as_str().unwrap_or_default().to_owned(),
            number(role["weight"].as_f64().unwrap_or(1.0)),
            role["frameworks"].as_array().map_or(0, Vec::len).to_string(),
            resources.text(),
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_a_role() {
        let roles =
            [json!({ "name": "a", "weight": 2.0, "frameworks": ["f"], "resources": { "cpus": 1.5, "mem": 0 } })];
        let line = show(&roles).lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "a 2 1 cpus:1.5");
        assert!(show(&[]).contains("no roles"));
    }
}
