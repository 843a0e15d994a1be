//! Containers: their volumes and what type they are (mesos-features.md TSK-17).

use protos::mesos::volume::source::Type;
use protos::mesos::{ContainerInfo, Volume, container_info};

use super::command::secret;

/// Checks a container's volumes, and the fields that its type needs.
///
/// # Errors
/// The rule that it breaks.
pub fn container(info: &ContainerInfo) -> Result<(), String> {
    info.volumes.iter().try_for_each(volume).map_err(|why| format!("Invalid volume: {why}"))?;
    if info.r#type() == container_info::Type::Docker {
        let docker = info.docker.as_ref().ok_or("DockerInfo 'docker' is not set for DOCKER typed ContainerInfo")?;
        if docker.parameters.iter().any(|parameter| parameter.key == "name") {
            return Err("Parameter in DockerInfo must not be 'name'".to_owned());
        }
    }
    Ok(())
}

fn volume(volume: &Volume) -> Result<(), String> {
    let given = [volume.host_path.is_some(), volume.image.is_some(), volume.source.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err("Exactly one of 'host_path', 'image' and 'source' must be set".to_owned());
    }
    let Some(source) = &volume.source else { return Ok(()) };
    let expect = |there: bool, field: &str, kind: &str| match there {
        true => Ok(()),
        false => Err(format!("'source.{field}' is not set for {kind} volume")),
    };
    match source.r#type() {
        Type::DockerVolume => expect(source.docker_volume.is_some(), "docker_volume", "DOCKER_VOLUME"),
        Type::HostPath => expect(source.host_path.is_some(), "host_path", "HOST_PATH"),
        Type::SandboxPath => expect(source.sandbox_path.is_some(), "sandbox_path", "SANDBOX_PATH"),
        Type::Secret => {
            let value = source.secret.as_ref().ok_or("'source.secret' is not set for SECRET volume")?;
            secret(value)
        }
        Type::CsiVolume => {
            let csi = source.csi_volume.as_ref().ok_or("'source.csi_volume' is not set for CSI_VOLUME volume")?;
            expect(csi.static_provisioning.is_some(), "csi_volume.static_provisioning", "CSI_VOLUME")
        }
        Type::Unknown => Err("'source.type' is unknown".to_owned()),
    }
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
            assert_eq!(volume(&bad), Err(words.to_owned()), "{bad:?}");
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
        assert_eq!(of(named("name")), Err("Parameter in DockerInfo must not be 'name'".to_owned()));
        assert_eq!(of(None), Err("DockerInfo 'docker' is not set for DOCKER typed ContainerInfo".to_owned()));
    }
}
