//! One level of a reservation.

use std::fmt;
use std::sync::Arc;

use protos::mesos;
use protos::mesos::resource::ReservationInfo;
use protos::mesos::resource::reservation_info::Type;

use crate::{Labels, Role};

/// Origin of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReservationKind {
    /// The agent's `--resources` flag; such a reservation cannot be removed by a call.
    Static,
    /// A RESERVE operation of a framework or an operator.
    Dynamic,
}

/// One level of a reservation. A resource has a stack of them, each refining the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Origin of the reservation: static or dynamic.
    pub kind: ReservationKind,
    /// Role of the reservation; never `*` in a valid resource.
    pub role: Role,
    /// Principal that made the reservation.
    pub principal: Option<Arc<str>>,
    /// Labels of the reservation; resources whose reservations differ in them are never merged.
    pub labels: Option<Labels>,
}

impl Reservation {
    /// Creates a static reservation, which is one by the agent's flags.
    #[must_use]
    pub const fn fixed(role: Role) -> Self {
        Self { kind: ReservationKind::Static, role, principal: None, labels: None }
    }

    /// Creates a dynamic reservation, which is one by a call.
    #[must_use]
    pub const fn dynamic(role: Role, principal: Option<Arc<str>>, labels: Option<Labels>) -> Self {
        Self { kind: ReservationKind::Dynamic, role, principal, labels }
    }

    /// Returns whether the reservation was made by a call.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.kind == ReservationKind::Dynamic
    }

    /// Converts to an entry of `Resource.reservations`.
    #[must_use]
    pub fn to_proto(&self) -> ReservationInfo {
        let kind = match self.kind {
            ReservationKind::Static => Type::Static,
            ReservationKind::Dynamic => Type::Dynamic,
        };
        ReservationInfo { r#type: Some(kind.into()), role: Some(self.role.as_str().to_owned()), ..self.to_old_proto() }
    }

    /// Converts to the older `Resource.reservation`, without type and role.
    #[must_use]
    pub(crate) fn to_old_proto(&self) -> ReservationInfo {
        ReservationInfo {
            r#type: None,
            role: None,
            principal: self.principal.as_deref().map(str::to_owned),
            labels: self.labels.as_ref().map(|labels| labels.as_proto().clone()),
        }
    }
}

/// Returns the principal and the labels of a message.
pub(crate) fn identity(info: &ReservationInfo) -> (Option<Arc<str>>, Option<Labels>) {
    let labels = info.labels.clone().map(|labels: mesos::Labels| labels.into());
    (info.principal.as_deref().map(Into::into), labels)
}

/// Formats the reservation as `(DYNAMIC,role,principal,{key: value})`.
impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ReservationKind::Static => "STATIC",
            ReservationKind::Dynamic => "DYNAMIC",
        };
        write!(f, "({kind},{}", self.role)?;
        if let Some(principal) = &self.principal {
            write!(f, ",{principal}")?;
        }
        if let Some(labels) = &self.labels {
            write!(f, ",{labels}")?;
        }
        f.write_str(")")
    }
}
