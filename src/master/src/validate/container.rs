//! Containers: their volumes and what type they are (mesos-features.md TSK-17).

use protos::mesos::volume::source::Type;
use protos::mesos::{ContainerInfo, Volume, container_info};

use super::command::secret;

pub(crate) fn container(info: &ContainerInfo) -> Result<(), String> {
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
