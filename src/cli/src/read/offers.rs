//! `tepui offers`: lists the current offers of frameworks.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::model::{Agents, Frameworks};
use super::table::table;
use super::{ListArgs, ListOutput};

/// Lists offers.
///
/// # Errors
/// The master cannot be read.
pub fn run(args: &ListArgs) -> Result<ExitCode> {
    args.show(async || {
        let master = &args.master;
        if args.wants_document() {
            let document: Value = master.read("/frameworks").await?;
            let frameworks = document["frameworks"].as_array().cloned().unwrap_or_default();
            let offers = frameworks.iter().flat_map(|f| f["offers"].as_array().cloned().unwrap_or_default());
            return Ok(ListOutput::Document(offers.collect()));
        }
        let (frameworks, agents) = (master.read("/frameworks").await?, master.read("/slaves").await?);
        Ok(ListOutput::Text(show(&frameworks, &agents)))
    })
}

fn show(frameworks: &Frameworks, agents: &Agents) -> String {
    let hosts = agents.names();
    let mut table = table(&["ID", "FRAMEWORK", "ROLE", "HOST", "RESOURCES"]);
    for framework in &frameworks.frameworks {
        for offer in &framework.offers {
            let role = match (&offer.allocation_info.role[..], &framework.role) {
                ("", Some(role)) => role,
                (role, _) => role,
            };
            table.add_row([
                offer.id.clone(),
                framework.name.clone(),
                role.to_owned(),
                hosts.get(offer.slave_id.as_str()).unwrap_or(&offer.slave_id).clone(),
                offer.resources.text(),
            ]);
        }
    }
    match frameworks.frameworks.iter().all(|f| f.offers.is_empty()) {
        true => "no framework holds an offer".to_owned(),
        false => table.trim_fmt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_an_offer() {
        let frameworks: Frameworks = serde_json::from_str(
            r#"{"frameworks":[{"name":"n","role":"*","offers":[{"id":"O1","slave_id":"S0",
            "resources":{"cpus":2.0,"mem":0.0,"ports":"[1-2]"}}]}]}"#,
        )
        .unwrap();
        let text = show(&frameworks, &Agents::default());
        let line = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "O1 n * S0 cpus:2; ports:[1-2]");
        assert_eq!(show(&Frameworks::default(), &Agents::default()), "no framework holds an offer");
    }
}
