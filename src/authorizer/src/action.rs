//! The actions that access control lists allow or deny, with the keys of their rules: one line for each action.

/// The kind of objects that the rules of an action can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Names, compared byte by byte.
    Names,
    /// Roles: `a/%` stands for all roles below `a`.
    Roles,
    /// Paths of HTTP endpoints that need authorization; only those of [`PATHS`] are valid.
    Paths,
    /// No names: a rule is for all objects (`ANY`) or for none (`NONE`).
    AnyOrNone,
}

/// The names of an action in the JSON of access control lists.
#[derive(Debug)]
pub(crate) struct Known {
    /// Key of the action's rules, such as `run_tasks`.
    pub(crate) key: &'static str,
    /// Field of a rule that names its objects, such as `users`.
    pub(crate) object: &'static str,
    pub(crate) kind: Kind,
}

macro_rules! actions {
    ($($action:ident $key:literal $object:literal $kind:ident,)*) => {
        /// An action that needs authorization; each has a key in the access control lists.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is named as its key")]
        pub enum Action { $($action),* }

        impl Action {
            /// All actions, in the order of their declaration.
            #[cfg(test)]
            pub(crate) const ALL: &[Action] = &[$(Action::$action),*];
        }

        /// Names of each action in the lists, indexed by [`Action`].
        pub(crate) static KNOWN: &[Known] = &[$(Known { key: $key, object: $object, kind: Kind::$kind }),*];
    };
}

actions! {
    RegisterFramework "register_frameworks" "roles" Roles,
    RunTask "run_tasks" "users" Names,
    TeardownFramework "teardown_frameworks" "framework_principals" Names,
    ReserveResources "reserve_resources" "roles" Roles,
    UnreserveResources "unreserve_resources" "reserver_principals" Names,
    CreateVolume "create_volumes" "roles" Roles,
    ResizeVolume "resize_volumes" "roles" Roles,
    DestroyVolume "destroy_volumes" "creator_principals" Names,
    CreateBlockDisk "create_block_disks" "roles" Roles,
    DestroyBlockDisk "destroy_block_disks" "roles" Roles,
    CreateMountDisk "create_mount_disks" "roles" Roles,
    DestroyMountDisk "destroy_mount_disks" "roles" Roles,
    DestroyRawDisk "destroy_raw_disks" "roles" Roles,
    GetQuota "get_quotas" "roles" Roles,
    UpdateQuota "update_quotas" "roles" Roles,
    ViewRole "view_roles" "roles" Roles,
    UpdateWeight "update_weights" "roles" Roles,
    GetEndpoint "get_endpoints" "paths" Paths,
    ViewFramework "view_frameworks" "users" Names,
    ViewTask "view_tasks" "users" Names,
    ViewExecutor "view_executors" "users" Names,
    AccessSandbox "access_sandboxes" "users" Names,
    AccessMesosLog "access_mesos_logs" "logs" AnyOrNone,
    ViewFlags "view_flags" "flags" AnyOrNone,
    SetLogLevel "set_log_level" "level" AnyOrNone,
    RegisterAgent "register_agents" "agents" AnyOrNone,
    GetMaintenanceSchedule "get_maintenance_schedules" "machines" AnyOrNone,
    UpdateMaintenanceSchedule "update_maintenance_schedules" "machines" AnyOrNone,
    StartMaintenance "start_maintenances" "machines" AnyOrNone,
    StopMaintenance "stop_maintenances" "machines" AnyOrNone,
    GetMaintenanceStatus "get_maintenance_statuses" "machines" AnyOrNone,
    DrainAgent "drain_agents" "agents" AnyOrNone,
    DeactivateAgent "deactivate_agents" "agents" AnyOrNone,
    ReactivateAgent "reactivate_agents" "agents" AnyOrNone,
    MarkAgentGone "mark_agents_gone" "agents" AnyOrNone,
    LaunchNestedContainerAsUser "launch_nested_containers_as_user" "users" Names,
    LaunchNestedContainerUnderParent "launch_nested_containers_under_parent_with_user" "users" Names,
    LaunchSessionAsUser "launch_nested_container_sessions_as_user" "users" Names,
    LaunchSessionUnderParent "launch_nested_container_sessions_under_parent_with_user" "users" Names,
    KillNestedContainer "kill_nested_containers" "users" Names,
    WaitNestedContainer "wait_nested_containers" "users" Names,
    RemoveNestedContainer "remove_nested_containers" "users" Names,
    AttachContainerInput "attach_containers_input" "users" Names,
    AttachContainerOutput "attach_containers_output" "users" Names,
    ViewContainer "view_containers" "users" Names,
    LaunchStandaloneContainer "launch_standalone_containers" "users" AnyOrNone,
    KillStandaloneContainer "kill_standalone_containers" "users" AnyOrNone,
    WaitStandaloneContainer "wait_standalone_containers" "users" AnyOrNone,
    RemoveStandaloneContainer "remove_standalone_containers" "users" AnyOrNone,
    ViewStandaloneContainer "view_standalone_containers" "users" AnyOrNone,
    ModifyResourceProviderConfig "modify_resource_provider_configs" "resource_providers" AnyOrNone,
    MarkResourceProvidersGone "mark_resource_providers_gone" "resource_providers" AnyOrNone,
    ViewResourceProvider "view_resource_providers" "resource_providers" AnyOrNone,
    PruneImages "prune_images" "images" AnyOrNone,
}

/// The only paths that a rule of `get_endpoints` may name.
pub(crate) const PATHS: [&str; 6] = [
    "/containers",
    "/containerizer/debug",
    "/files/debug",
    "/logging/toggle",
    "/metrics/snapshot",
    "/monitor/statistics",
];

impl Action {
    /// Returns the key of the action's rules in the access control lists, such as `run_tasks`.
    pub fn key(self) -> &'static str {
        KNOWN[self as usize].key
    }
}
