//! Validation of containers: their volumes and their type (TSK-17).

use protos::mesos::volume::source::Type;
use protos::mesos::{ContainerInfo, Volume, container_info};

use super::command::{SecretInvalid, secret};

/// Reasons why a container is invalid. `Display` is the whole text of the wire, so no variant has a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContainerInvalid {
    /// A volume is invalid.
    #[error("Invalid volume: {0}")]
    Volume(VolumeInvalid),
    /// A container of type DOCKER has no DockerInfo.
    #[error("DockerInfo 'docker' is not set for DOCKER typed ContainerInfo")]
    NoDocker,
    /// A parameter would change the name by which the agent finds the container.
    #[error("Parameter in DockerInfo must not be 'name'")]
    DockerName,
}

/// Reasons why a volume is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeInvalid {
    /// The volume has no source, or several.
    #[error("Exactly one of 'host_path', 'image' and 'source' must be set")]
    Sources,
    /// The source of the volume lacks the field of its type.
    #[error("'source.{0}' is not set for {1} volume")]
    Missing(&'static str, &'static str),
    /// The secret of the volume is invalid.
    #[error(transparent)]
    Secret(SecretInvalid),
    /// The type of the volume's source is unknown.
    #[error("'source.type' is unknown")]
    UnknownType,
}

/// Checks the volumes of a container, and the fields that its type needs.
///
/// # Errors
/// The first rule that the container breaks.
pub fn container(info: &ContainerInfo) -> Result<(), ContainerInvalid> {
    info.volumes.iter().try_for_each(volume).map_err(ContainerInvalid::Volume)?;
    if info.r#type() == container_info::Type::Docker {
        let docker = info.docker.as_ref().ok_or(ContainerInvalid::NoDocker)?;
        if docker.parameters.iter().any(|parameter| parameter.key == "name") {
            return Err(ContainerInvalid::DockerName);
        }
    }
    Ok(())
}

fn volume(volume: &Volume) -> Result<(), VolumeInvalid> {
    let given = [volume.host_path.is_some(), volume.image.is_some(), volume.source.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(VolumeInvalid::Sources);
    }
    let Some(source) = &volume.source else { return Ok(()) };
    let kind = source.r#type();
    let missing = |field| VolumeInvalid::Missing(field, kind.as_str_name());
    let (is_there, field) = match kind {
        Type::DockerVolume => (source.docker_volume.is_some(), "docker_volume"),
        Type::HostPath => (source.host_path.is_some(), "host_path"),
        Type::SandboxPath => (source.sandbox_path.is_some(), "sandbox_path"),
        Type::Secret => {
            let value = source.secret.as_ref().ok_or_else(|| missing("secret"))?;
            return secret(value).map_err(VolumeInvalid::Secret);
        }
        Type::CsiVolume => {
            let csi = source.csi_volume.as_ref().ok_or_else(|| missing("csi_volume"))?;
            (csi.static_provisioning.is_some(), "csi_volume.static_provisioning")
        }
        Type::Unknown => return Err(VolumeInvalid::UnknownType),
    };
    if is_there { Ok(()) } else { Err(missing(field)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::container_info::DockerInfo;
    use protos::mesos::volume::source::{CsiVolume, DockerVolume, HostPath, SandboxPath};
    use protos::mesos::volume::{Mode, Source};
    use protos::mesos::{Image, Parameter, Secret};

    fn with(source: Option<Source>) -> Volume {
        Volume { container_path: "v".to_owned(), mode: Mode::Rw as i32, source, ..Volume::default() }
    }

    fn of(kind: Type) -> Source {
        Source { r#type: Some(kind as i32), ..Source::default() }
    }

    #[test]
    fn volumes() {
        let path = HostPath { path: "/x".to_owned(), ..HostPath::default() };
        let host = Source { host_path: Some(path), ..of(Type::HostPath) };
        let docker = Source { docker_volume: Some(DockerVolume::default()), ..of(Type::DockerVolume) };
        let sandbox = Source { sandbox_path: Some(SandboxPath::default()), ..of(Type::SandboxPath) };
        for good in [
            with(Some(host.clone())),
            with(Some(docker)),
            with(Some(sandbox)),
            Volume { host_path: Some("/x".to_owned()), ..with(None) },
            Volume { image: Some(Image::default()), ..with(None) },
        ] {
            assert_eq!(volume(&good), Ok(()), "{good:?}");
        }
        let secret = |secret| Source { secret: Some(secret), ..of(Type::Secret) };
        let csi = Source { csi_volume: Some(CsiVolume::default()), ..of(Type::CsiVolume) };
        let both = "Exactly one of 'host_path', 'image' and 'source' must be set";
        for (bad, words) in [
            (with(None), both),
            (Volume { host_path: Some("/x".to_owned()), ..with(Some(host.clone())) }, both),
            (Volume { image: Some(Image::default()), ..with(Some(host)) }, both),
            (with(Some(of(Type::HostPath))), "'source.host_path' is not set for HOST_PATH volume"),
            (with(Some(of(Type::SandboxPath))), "'source.sandbox_path' is not set for SANDBOX_PATH volume"),
            (with(Some(of(Type::DockerVolume))), "'source.docker_volume' is not set for DOCKER_VOLUME volume"),
            (with(Some(of(Type::Secret))), "'source.secret' is not set for SECRET volume"),
            (with(Some(of(Type::CsiVolume))), "'source.csi_volume' is not set for CSI_VOLUME volume"),
            (with(Some(csi)), "'source.csi_volume.static_provisioning' is not set for CSI_VOLUME volume"),
            (with(Some(of(Type::Unknown))), "'source.type' is unknown"),
            (with(Some(secret(Secret::default()))), "Secret of type UNKNOWN is not allowed"),
        ] {
            assert_eq!(volume(&bad).unwrap_err().to_string(), words, "{bad:?}");
        }
    }

    #[test]
    fn docker() {
        let kind = container_info::Type::Docker as i32;
        let named = |key: &str| {
            let parameters = vec![Parameter { key: key.to_owned(), value: "x".to_owned() }];
            Some(DockerInfo { image: "i".to_owned(), parameters, ..DockerInfo::default() })
        };
        let of = |docker| container(&ContainerInfo { r#type: kind, docker, ..ContainerInfo::default() });
        assert_eq!(of(named("label")), Ok(()));
        assert_eq!(of(named("name")), Err(ContainerInvalid::DockerName));
        assert_eq!(of(None), Err(ContainerInvalid::NoDocker));
    }
}
