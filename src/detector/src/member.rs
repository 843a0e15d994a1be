//! The members of a group in ZooKeeper: finds the leader, and reads its data.

use base::Pid;
use prost::Message;
use wire::client::Address;

use crate::Leader;

/// An error of detecting the leader.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// ZooKeeper cannot be reached, or returns an error.
    #[error(transparent)]
    ZooKeeper(#[from] zookeeper_client::Error),
    /// There is a leader, but the data of its node cannot be read.
    #[error("the node '{0}' does not contain the master's address")]
    Member(String),
    /// There was no connection for the timeout of a session.
    #[error("there was no connection for {} ms, so the session is over", .0.as_millis())]
    Away(std::time::Duration),
    /// A candidate is refused, and a repetition would not help.
    #[error("{0}")]
    Refused(String),
    /// The node of this candidate was deleted.
    #[error("the node of this candidate is gone")]
    Ousted,
}

/// Returns the member with the smallest number; names without a number are not members.
pub(crate) fn first(members: &[String]) -> Option<&String> {
    let number = |name: &&String| name.rsplit('_').next().and_then(|digits| digits.parse::<i32>().ok());
    members.iter().filter(|name| number(name).is_some()).min_by_key(|name| number(name))
}

impl Leader {
    /// Parses the leader from its `MasterInfo` in JSON; `member` distinguishes its process from earlier ones.
    pub fn of_info(member: &str, info: &[u8]) -> Option<Leader> {
        let leader = Leader::read("json.info_", info)?;
        Some(Leader { member: member.to_owned(), ..leader })
    }

    /// Parses the leader from the name of its node and the data in it: JSON, protobuf or a PID, by the name's label.
    /// Returns `None` if the data names no process.
    pub fn read(name: &str, data: &[u8]) -> Option<Leader> {
        let label = name.split_once('_').map_or("", |(label, _)| label);
        let (pid, hostname, port, region): (Pid, Option<String>, Option<u64>, Option<String>) = match label {
            "json.info" => {
                let info: serde_json::Value = serde_json::from_slice(data).ok()?;
                let hostname = info.get("hostname").and_then(|name| name.as_str()).map(str::to_owned);
                let port = info.get("port").and_then(serde_json::Value::as_u64);
                let region = info.pointer("/domain/fault_domain/region/name").and_then(|name| name.as_str());
                (info.get("pid")?.as_str()?.parse().ok()?, hostname, port, region.map(str::to_owned))
            }
            "info" => {
                let info = protos::mesos::MasterInfo::decode(data).ok()?;
                let region = info.domain.and_then(|domain| domain.fault_domain).map(|domain| domain.region.name);
                (info.pid?.parse().ok()?, info.hostname, Some(info.port.into()), region)
            }
            "" => (std::str::from_utf8(data).ok()?.trim().parse().ok()?, None, None, None),
            _ => return None,
        };
        if pid.id().is_empty() || pid.address().port() == 0 {
            return None;
        }
        let host = hostname.filter(|name| !name.is_empty()).unwrap_or_else(|| pid.address().ip().to_string());
        let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(pid.address().port());
        let address = Address::new(&pid.address().ip().to_string(), pid.address().port());
        Some(Leader { member: name.to_owned(), pid, address, host, port, region, is_own: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_number_leads_whatever_its_label() {
        let members = ["log_replicas", "json.info_0000000012", "info_0000000003", "json.info_0000000004"];
        let members = members.map(str::to_owned);
        assert_eq!(first(&members).unwrap(), "info_0000000003");
        assert_eq!(first(&members[..1]), None);
    }

    #[test]
    fn members_of_all_ages() {
        let text = "master@10.0.0.1:5050";
        let json = format!(r#"{{"pid":"{text}","hostname":"m1"}}"#);
        let info = protos::mesos::MasterInfo { pid: Some(text.into()), ..Default::default() };
        let pid = |name: &str, data: &[u8]| Leader::read(name, data).map(|leader| leader.pid.to_string());
        assert_eq!(pid("json.info_0000000001", json.as_bytes()).as_deref(), Some(text));
        assert_eq!(pid("info_0000000001", &info.encode_to_vec()).as_deref(), Some(text));
        assert_eq!(pid("0000000001", text.as_bytes()).as_deref(), Some(text));
        let host = |data: &str| Leader::read("json.info_1", data.as_bytes()).map(|leader| (leader.host, leader.port));
        assert_eq!(host(&json), Some(("m1".to_owned(), 5050)));
        let elsewhere = r#"{"pid":"master@10.0.0.1:5050","port":5051}"#;
        assert_eq!(host(elsewhere), Some(("10.0.0.1".to_owned(), 5051)));
        let domain = r#""domain":{"fault_domain":{"region":{"name":"r"},"zone":{"name":"z"}}}"#;
        let far = format!(r#"{{"pid":"{text}",{domain}}}"#);
        let region = |data: &str| Leader::read("json.info_1", data.as_bytes()).and_then(|leader| leader.region);
        assert_eq!((region(&far).as_deref(), region(&json)), (Some("r"), None));
        for (name, data) in [
            ("json.info_0000000001", "{}"),
            ("json.info_0000000001", r#"{"pid": 7}"#),
            ("json.info_0000000001", r#"{"pid": "@0.0.0.0:0"}"#),
            ("info_0000000001", "{}"),
            ("other_0000000001", text),
        ] {
            assert_eq!(pid(name, data.as_bytes()), None, "{name}: {data}");
        }
    }
}
