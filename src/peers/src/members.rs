//! Members of a group, and the group's identity.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entry::Number;
use crate::message::Body;

/// Maximum number of members of a group.
pub const MEMBERS_MAX: usize = 9;

/// Identity of a group, which differs from that of all others. Only its members know it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster([u8; 16]);

impl fmt::Debug for Cluster {
    /// Hides the value: a process that knows it may send messages to members without a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster(..)")
    }
}

/// A master that is a member of the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Number of the member.
    pub number: Number,
    /// Random number on the member's disk. With another disk it is another member.
    pub disk: u64,
    /// Address of the member as `host:port`, as `--peers` names it.
    pub address: String,
}

/// Members of the group at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Number of the configuration, from 1; each change adds one.
    pub number: u32,
    /// Members in the order of their numbers.
    pub members: Vec<Member>,
    /// Number of the next member that is added.
    pub next: Number,
}

/// Reasons why the members cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// There is a member at that address already.
    #[error("{0} is a member already")]
    Present(String),
    /// There is no member at the first address; the second text lists the members.
    #[error("{0} is not a member: the members are {1}")]
    Absent(String, String),
    /// The new member was not started, or does not reach this master; the second text lists the members.
    #[error("no master at {0} asks to join: start it with --peers={1} and an empty work directory")]
    Silent(String, String),
    /// Two masters cannot continue without one of them, so a group has at least three.
    #[error("a group has at least 3 members")]
    TooFew,
    /// Each write waits for more than half of the members, so their number is limited.
    #[error("a group has at most {MEMBERS_MAX} members")]
    TooMany,
    /// The named master does not answer, or is not in this configuration yet.
    #[error("{0} does not answer this master: try again when it does")]
    Unreachable(String),
    /// The named master leads, and must hand over first.
    #[error("{0} leads: run 'tepui masters transfer' first")]
    Leads(String),
    /// Another master leads.
    #[error("this master does not lead the group")]
    NotLeading,
    /// An earlier change is not finished.
    #[error("another change of the members is under way")]
    UnderWay,
}

impl Configuration {
    /// Returns the first configuration, and the identity of the group: all members in the order of their addresses,
    /// each with the number of its disk. All members derive the same.
    pub fn first(mut disks: Vec<(String, u64)>) -> (Configuration, Cluster) {
        disks.sort();
        let mut hash = Sha256::new();
        for (address, disk) in &disks {
            hash.update(disk.to_le_bytes());
            hash.update(address.as_bytes());
            hash.update([0]);
        }
        let members = (1..).zip(disks).map(|(number, (address, disk))| Member { number, disk, address });
        let members: Vec<Member> = members.collect();
        let next = members.len() as u64 + 1;
        let mut cluster = [0; 16];
        cluster.copy_from_slice(&hash.finalize()[..16]);
        (Configuration { number: 1, members, next }, Cluster(cluster))
    }

    /// Returns the message that tells a master that it is not a member. It lacks the disks by which members recognize
    /// each other.
    pub(crate) fn not_member_answer(&self) -> Body {
        let members = self.members.iter().map(|member| member.address.clone()).collect();
        Body::NotMember { configuration: self.number, members }
    }

    /// Returns the configuration of a group that this master does not belong to.
    pub(crate) fn of_other_group(number: u32, addresses: Vec<String>) -> Configuration {
        let members = (1..).zip(addresses).map(|(number, address)| Member { number, disk: 0, address });
        Configuration { number, members: members.take(MEMBERS_MAX).collect(), next: 0 }
    }

    /// Returns the member with a disk.
    pub fn with_disk(&self, disk: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.disk == disk)
    }

    /// Returns the member with a number.
    pub fn member(&self, number: Number) -> Option<&Member> {
        self.members.iter().find(|member| member.number == number)
    }

    /// Returns the member at an address.
    pub fn at(&self, address: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.address == address)
    }

    /// Returns how many members are more than half.
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Returns all addresses, separated by commas.
    pub fn addresses(&self) -> String {
        self.members.iter().map(|member| member.address.as_str()).collect::<Vec<_>>().join(",")
    }

    /// Returns the next configuration with a further member.
    pub fn adding(&self, address: &str, disk: u64) -> Result<Configuration, ChangeError> {
        if self.at(address).is_some() {
            return Err(ChangeError::Present(address.to_owned()));
        }
        if self.members.len() >= MEMBERS_MAX {
            return Err(ChangeError::TooMany);
        }
        let mut members = self.members.clone();
        members.push(Member { number: self.next, disk, address: address.to_owned() });
        Ok(Configuration { number: self.number + 1, members, next: self.next + 1 })
    }

    /// Returns the next configuration without a member.
    pub fn removing(&self, address: &str) -> Result<Configuration, ChangeError> {
        if self.at(address).is_none() {
            return Err(ChangeError::Absent(address.to_owned(), self.addresses()));
        }
        if self.members.len() <= 3 {
            return Err(ChangeError::TooFew);
        }
        let members = self.members.iter().filter(|member| member.address != address).cloned().collect();
        Ok(Configuration { number: self.number + 1, members, next: self.next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(count: u64) -> Vec<(String, u64)> {
        (1..=count).map(|number| (format!("h{number}:5050"), 100 + number)).collect()
    }

    #[test]
    fn all_members_derive_the_same_group() {
        let mut reversed = disks(3);
        reversed.reverse();
        assert_eq!(Configuration::first(disks(3)), Configuration::first(reversed));
        let mut other = disks(3);
        other[2].1 = 7;
        assert_ne!(Configuration::first(disks(3)).1, Configuration::first(other).1);
        assert_eq!(format!("{:?}", Configuration::first(disks(3)).1), "Cluster(..)");
    }

    #[test]
    fn members_come_and_go() {
        let (three, _) = Configuration::first(disks(3));
        assert_eq!(three.removing("h1:5050"), Err(ChangeError::TooFew));
        assert_eq!(three.adding("h1:5050", 9), Err(ChangeError::Present("h1:5050".to_owned())));
        let four = three.adding("h4:5050", 9).unwrap();
        assert_eq!((four.number, four.majority(), four.at("h4:5050").unwrap().number), (2, 3, 4));
        let back = four.removing("h4:5050").unwrap().adding("h4:5050", 10).unwrap();
        assert_eq!(back.at("h4:5050").unwrap().number, 5, "numbers are not used again");
        let error = four.removing("h9:5050").unwrap_err().to_string();
        assert_eq!(error, "h9:5050 is not a member: the members are h1:5050,h2:5050,h3:5050,h4:5050");
        let (nine, _) = Configuration::first(disks(9));
        assert_eq!(nine.adding("x:1", 1), Err(ChangeError::TooMany));
    }
}
