//! Authorization (docs/mesos/security.md): the objects of each action, and the messages of refusals.
//!
//! The access control lists are in the crate `authorizer`; without them each check reads one pointer.

use authorizer::Action;
use base::Pid;
use cores::CallError;
use protos::mesos::offer::{Operation, operation::Type};
use protos::mesos::{FrameworkInfo, Resource as Proto, SlaveInfo};
use resources::{Resource, Role, resource_from_proto};

use crate::io::Outbox;
use crate::master::Master;
use crate::messages::REGISTRATION;
use crate::refusals::Fault;
use crate::validate::roles_of;

/// An action and its object; `None` stands for any object.
type RequiredPermission = (Action, Option<String>);

impl Master {
    /// Checks that an operator may perform an action on an object.
    ///
    /// # Errors
    /// 403 if the access control lists do not allow it.
    pub(crate) fn authorize(
        &self,
        principal: Option<&str>,
        action: Action,
        object: Option<&str>,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        if self.config.authorizer.approves(principal, action, object) {
            return Ok(());
        }
        let who = principal.unwrap_or("a client without a principal");
        out.warn(format!("Refusing a call of {who}: {}", refusal(action, object)));
        let on = object.map(|object| format!(" for '{object}'")).unwrap_or_default();
        Err(CallError::forbidden(format!("{}{on}", action.key())))
    }

    /// Checks that a framework may have its roles.
    ///
    /// # Errors
    /// The first role that it may not have.
    pub(crate) fn authorize_roles(&self, info: &FrameworkInfo) -> Result<(), String> {
        let authorizer = &self.config.authorizer;
        if !authorizer.is_on() {
            return Ok(());
        }
        let refused = authorizer.approves_all(info.principal.as_deref(), Action::RegisterFramework, roles_of(info));
        refused.map_err(|role| refusal(Action::RegisterFramework, role))
    }

    /// Checks that a principal may perform an operation.
    ///
    /// # Errors
    /// The first resource that is not allowed.
    pub(crate) fn authorize_operation(&self, principal: Option<&str>, operation: &Operation) -> Result<(), String> {
        let authorizer = &self.config.authorizer;
        if !authorizer.is_on() {
            return Ok(());
        }
        let refused =
            |permission: &RequiredPermission| !authorizer.approves(principal, permission.0, permission.1.as_deref());
        match required_permissions(operation).into_iter().find(refused) {
            None => Ok(()),
            Some((action, object)) => Err(refusal(action, object.as_deref())),
        }
    }

    /// Returns whether an agent may register with the reservations of its resources.
    pub(crate) fn authorize_agent(&self, from: &Pid, info: &SlaveInfo, out: &mut Outbox) -> bool {
        let authorizer = &self.config.authorizer;
        if !authorizer.is_on() {
            return true;
        }
        let principal = self.peers.authentication(from).map(|authentication| &*authentication.principal);
        let reserved = read(&info.resources).filter(|resource| resource.reservation().is_some());
        let required_permissions = reserved.map(|resource| (Action::ReserveResources, role_of(&resource)));
        let mut required_permissions = std::iter::once((Action::RegisterAgent, None)).chain(required_permissions);
        let refused =
            required_permissions.find(|(action, object)| !authorizer.approves(principal, *action, object.as_deref()));
        if let Some((action, object)) = &refused {
            let why = refusal(*action, object.as_deref());
            out.warn(format!("Refusing registration of agent at {from}: {why}"));
            self.refuse_message(from, REGISTRATION, ("hostname", &info.hostname), Fault::Denied(why), out);
        }
        refused.is_none()
    }
}

/// Returns the message of a refusal: the object, and the access control list that denies it.
fn refusal(action: Action, object: Option<&str>) -> String {
    let key = action.key();
    match object {
        Some(object) => format!("Not authorized to do this to '{object}', by '{key}' of the access control lists"),
        None => format!("Not authorized to do this, by '{key}' of the access control lists"),
    }
}

fn read(list: &[Proto]) -> impl Iterator<Item = Resource> {
    list.iter().filter_map(|resource| resource_from_proto(resource).ok())
}

/// Returns the role that a resource is reserved to, or `*`.
fn role_of(resource: &Resource) -> Option<String> {
    Some(resource.reservation_role().map_or("*", Role::as_str).to_owned())
}

/// Returns the actions that an operation needs permission for.
fn required_permissions(operation: &Operation) -> Vec<RequiredPermission> {
    let roles = |action, list: &[Proto]| read(list).map(|resource| (action, role_of(&resource))).collect();
    let one = |action, resource: &Proto| roles(action, std::slice::from_ref(resource));
    match operation.r#type() {
        Type::Reserve => {
            let Some(body) = &operation.reserve else { return Vec::new() };
            match (read(&body.source).next(), read(&body.resources).next()) {
                (Some(source), Some(target)) => re_reservation(&source, &target),
                _ => roles(Action::ReserveResources, &body.resources),
            }
        }
        Type::Unreserve => {
            let list = operation.unreserve.iter().flat_map(|body| read(&body.resources));
            let reserver = |resource: Resource| resource.reservation()?.principal.as_deref().map(str::to_owned);
            list.map(|resource| (Action::UnreserveResources, reserver(resource))).collect()
        }
        Type::Create => operation.create.as_ref().map_or(Vec::new(), |body| roles(Action::CreateVolume, &body.volumes)),
        Type::Destroy => {
            let list = operation.destroy.iter().flat_map(|body| read(&body.volumes));
            let creator = |volume: Resource| volume.disk()?.persistence_principal().map(str::to_owned);
            list.map(|volume| (Action::DestroyVolume, creator(volume))).collect()
        }
        Type::GrowVolume => {
            operation.grow_volume.as_ref().map_or(Vec::new(), |body| one(Action::ResizeVolume, &body.volume))
        }
        Type::ShrinkVolume => {
            operation.shrink_volume.as_ref().map_or(Vec::new(), |body| one(Action::ResizeVolume, &body.volume))
        }
        Type::CreateDisk | Type::DestroyDisk | Type::Launch | Type::LaunchGroup | Type::Unknown => Vec::new(),
    }
}

/// Returns the actions of a RESERVE that replaces reservations: the common ones stay, the others of `source` are
/// unreserved, the others of `target` reserved.
fn re_reservation(source: &Resource, target: &Resource) -> Vec<RequiredPermission> {
    let (old, new) = (source.reservations(), target.reservations());
    let common = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let undone = old[common..].iter().map(|one| {
        let reserver = one.principal.as_deref().map(str::to_owned);
        (Action::UnreserveResources, reserver)
    });
    let made = new[common..].iter().map(|one| (Action::ReserveResources, Some(one.role.as_str().to_owned())));
    undone.chain(made).collect()
}
