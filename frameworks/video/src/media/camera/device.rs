//! Turns `ffmpeg`'s errors about a Video4Linux device into messages that name the device. Performs no I/O.

/// Returns the message for an error of this device; the program's own text where it is sufficient.
///
/// `ffmpeg` ends with the text of the kernel's error (`errno`), which says neither what the device lacks nor what to
/// do.
pub(super) fn device_error(device: &str, error: &str) -> String {
    let rules = [
        ("No such file or directory", "there is no such device on this machine"),
        ("No such device", "there is no such device on this machine any more"),
        ("Permission denied", "the worker's user needs to read and write it; such devices belong to the group video"),
        ("Operation not permitted", "the worker's container must be given the device"),
        ("Device or resource busy", "another program uses it, and a camera has one reader at a time"),
        ("Inappropriate ioctl", "it is not a device of Video4Linux"),
        (
            "Not a video capture device",
            "it is not a camera: a camera with several devices has its pictures on one of them",
        ),
        ("Unknown input format", "ffmpeg was built without Video4Linux"),
    ];
    match rules.iter().find(|(text, _)| error.contains(text)) {
        Some((_, rule)) => format!("{device}: {rule}"),
        None if error.contains(device) => error.to_owned(),
        None => format!("{device}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_devices_name_the_device_and_the_rule() {
        for (error, rule) in [
            ("/dev/video9: No such file or directory", "/dev/video9: there is no such device on this machine"),
            ("ioctl(VIDIOC_DQBUF): No such device", "/dev/video9: there is no such device on this machine any more"),
            ("/dev/video9: Permission denied", "the worker's user needs to read and write it"),
            ("/dev/video9: Operation not permitted", "/dev/video9: the worker's container must be given the device"),
            ("ioctl(VIDIOC_STREAMON): Device or resource busy", "/dev/video9: another program uses it"),
            ("/dev/video9: Inappropriate ioctl for device", "/dev/video9: it is not a device of Video4Linux"),
            ("Not a video capture device.", "/dev/video9: it is not a camera"),
            ("Unknown input format: 'v4l2'", "/dev/video9: ffmpeg was built without Video4Linux"),
            ("Cannot find a proper format for codec", "/dev/video9: Cannot find a proper format for codec"),
            ("/dev/video9: Invalid argument", "/dev/video9: Invalid argument"),
        ] {
            let shown = device_error("/dev/video9", error);
            assert!(shown.starts_with("/dev/video9: ") && shown.contains(rule), "{error}: {shown}");
        }
    }
}
