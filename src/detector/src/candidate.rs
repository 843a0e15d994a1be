//! A master's place in the group: a node that is removed with its session (docs/mesos/zookeeper.md).

use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Error, Permission};

use crate::Url;

/// Prefix of a candidate's name, before the number.
const LABEL: &str = "json.info_";

/// Returns the access control of nodes: with user and password everyone may read them, and only their creators may do
/// more.
pub(crate) fn rights(url: &Url) -> Vec<Acl> {
    match url.credential() {
        Some(_) => {
            vec![Acl::new(Permission::READ, AuthId::anyone()), Acl::new(Permission::ALL, AuthId::authed())]
        }
        None => vec![Acl::new(Permission::ALL, AuthId::anyone())],
    }
}

/// Creates the group if it is missing, and a node in it with this data. Returns the node's name.
pub(crate) async fn enter(client: &Client, url: &Url, info: &str) -> Result<String, Error> {
    let rights = rights(url);
    let rights = Acls::new(&rights);
    // Checked first: a candidate without the right to create the group may still enter an existing one.
    if client.check_stat(url.path()).await?.is_none() {
        client.mkdir(url.path(), &CreateMode::Persistent.with_acls(rights)).await?;
    }
    let path = format!("{}/{LABEL}", url.path());
    let (_, number) = client.create(&path, info.as_bytes(), &CreateMode::EphemeralSequential.with_acls(rights)).await?;
    Ok(format!("{LABEL}{number}"))
}
