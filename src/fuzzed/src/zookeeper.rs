//! Checks data from ZooKeeper: names of nodes, and the data of a leader's node.

use detector::{Leader, Url, entry_of_node, node_of_entry, without_credential};

use crate::pieces::Pieces;

/// Checks an input whose first line is the name of a node, or a URL, and whose rest is the node's data.
pub fn zookeeper(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let name = String::from_utf8_lossy(pieces.line()).into_owned();
    let data = pieces.rest();
    for label in ["json.info_0000000001", "info_0000000001", "0000000001", &name] {
        if let Some(leader) = Leader::read(label, data) {
            assert!(!leader.pid.id().is_empty() && leader.pid.address().port() != 0 && !leader.host.is_empty());
            assert_eq!(leader.member, *label);
        }
    }
    // An entry has one node, and the node of an entry has the name that follows from the entry.
    if let Some(entry) = entry_of_node(&name) {
        assert_eq!(node_of_entry(&entry), name);
    }
    let node = node_of_entry(&name);
    assert!(!node.contains('/') && entry_of_node(&node).as_ref() == Some(&name));
    if let Ok(url) = name.parse::<Url>() {
        let shown = url.to_string();
        let again: Url = shown.parse().expect("what is shown is a URL");
        assert_eq!((again.servers(), again.path()), (url.servers(), url.path()));
        assert_eq!(without_credential(&shown), shown);
    }
    let _ = without_credential(&name);
}
