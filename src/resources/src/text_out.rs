//! Formats resources as text, as in Mesos's messages and logs.

use std::fmt;

use crate::{Resource, Resources};

/// Formats a resource as `cpus(allocated: dev)(reservations: [(DYNAMIC,dev,me)]):0.5`, disks as
/// `disk[MOUNT:/mnt,id:path]:64`, revocable ones with `{REV}`, shared ones with `<SHARED>`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(role) = &self.allocation {
            write!(f, "(allocated: {role})")?;
        }
        if self.is_reserved() {
            f.write_str("(reservations: [")?;
            for (i, reservation) in self.reservations().iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(f, "{comma}{reservation}")?;
            }
            f.write_str("])")?;
        }
        if let Some(disk) = &self.disk {
            write!(f, "[{disk}]")?;
        }
        if self.revocable {
            f.write_str("{REV}")?;
        }
        if self.is_shared() {
            f.write_str("<SHARED>")?;
        }
        write!(f, ":{}", self.value)
    }
}

/// Formats the entries separated by `; `, shared ones with the number of their copies as in `:64<2>`, or `{}` for an
/// empty set.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("{}");
        }
        for (i, resource) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{resource}")?;
            if resource.is_shared() {
                write!(f, "<{}>", resource.copies)?;
            }
        }
        Ok(())
    }
}
