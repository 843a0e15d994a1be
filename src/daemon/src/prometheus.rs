//! Mesos's metrics in the text format of Prometheus: names are Mesos's with `_` for `/`, and what is a part of the name
//! in Mesos's flat list (a framework, a role) is a label.
//!
//! It measures nothing.

pub use base::prometheus::{Kind, MEDIA_TYPE, Text};

/// Adds one of Mesos's metrics under its flat name.
pub fn add_flat(text: &mut Text, flat: &str, value: f64) {
    let (name, labels) = translate(flat);
    let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (*key, value.as_str())).collect();
    text.add(&name, Kind::Untyped, "", &labels, value);
}

/// A flat name as a name with labels.
fn translate(flat: &str) -> (String, Vec<(&'static str, String)>) {
    if let Some(rest) = flat.strip_prefix("master/frameworks/") {
        let mut parts = rest.splitn(3, '/');
        if let (Some(name), Some(id), Some(what)) = (parts.next(), parts.next(), parts.next()) {
            let mut labels = vec![("framework", decoded(name)), ("framework_id", id.to_owned())];
            let what = take_role(what, "roles/", &mut labels).unwrap_or_else(|| what.to_owned());
            return (valid(&format!("master_framework_{what}")), labels);
        }
    }
    for (prefix, name) in [
        ("allocator/mesos/roles/", "allocator_mesos_role"),
        ("allocator/mesos/offer_filters/roles/", "allocator_mesos_offer_filters_role"),
        ("allocator/mesos/quota/roles/", "allocator_mesos_quota_role"),
    ] {
        let mut labels = Vec::new();
        if let Some(what) = take_role(flat, prefix, &mut labels) {
            return (valid(&format!("{name}_{what}")), labels);
        }
    }
    if let Some((principal, what)) = flat.strip_prefix("frameworks/").and_then(|rest| rest.rsplit_once('/')) {
        return (valid(&format!("frameworks_{what}")), vec![("principal", principal.to_owned())]);
    }
    (valid(flat), Vec::new())
}

/// What follows a role, which may itself have slashes: the last part, or from `shares/`, `resources/` on.
fn take_role(name: &str, prefix: &str, labels: &mut Vec<(&'static str, String)>) -> Option<String> {
    let rest = name.strip_prefix(prefix)?;
    let cut = ["/shares/", "/resources/"].iter().find_map(|word| rest.rfind(word)).or_else(|| rest.rfind('/'))?;
    labels.push(("role", rest[..cut].to_owned()));
    let what = &rest[cut + 1..];
    if let Some((resource, what)) = what.strip_prefix("resources/").and_then(|what| what.rsplit_once('/')) {
        labels.push(("resource", resource.to_owned()));
        return Some(what.to_owned());
    }
    Some(what.to_owned())
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// `tepui_` and the name with only letters, digits and `_`.
fn valid(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    std::iter::once("tepui_").map(str::to_owned).chain(kept.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels() {
        for (flat, wanted) in [
            ("master/tasks_running", "tepui_master_tasks_running 1\n"),
            (
                "master/frameworks/my%20app/id-1/offers/sent",
                "tepui_master_framework_offers_sent{framework=\"my app\",framework_id=\"id-1\"} 1\n",
            ),
            (
                "master/frameworks/x/id-1/roles/a/b/suppressed",
                "tepui_master_framework_suppressed{framework=\"x\",framework_id=\"id-1\",role=\"a/b\"} 1\n",
            ),
            (
                "allocator/mesos/roles/a/b/shares/dominant",
                "tepui_allocator_mesos_role_shares_dominant{role=\"a/b\"} 1\n",
            ),
            (
                "allocator/mesos/quota/roles/a/resources/cpus/limit",
                "tepui_allocator_mesos_quota_role_limit{role=\"a\",resource=\"cpus\"} 1\n",
            ),
            ("frameworks/me/messages_received", "tepui_frameworks_messages_received{principal=\"me\"} 1\n"),
        ] {
            let mut text = Text::default();
            add_flat(&mut text, flat, 1.0);
            let written = text.write();
            assert!(written.ends_with(wanted), "{flat}: {written}");
        }
    }
}
