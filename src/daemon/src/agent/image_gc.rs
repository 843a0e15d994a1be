//! Deleting images by itself when their disk runs full (`--image_gc_config`, mesos-features.md AGT-53).
//!
//! What is deleted says `images.rs`.

use std::time::Duration;

use protos::mesos::internal::ImageGcConfig;

use super::images::Images;
use crate::flags::json;

/// The shortest time between two looks at the disk.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// When images are deleted, and which never are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Collection {
    /// The part of the disk that is to stay free, 0 to 1.
    headroom: f64,
    interval: Duration,
    pub(super) excluded: Vec<String>,
}

impl Collection {
    /// Reads the flag's JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(text: &str) -> Result<Collection, String> {
        let config = json::read::<ImageGcConfig>(text)?;
        let headroom = config.image_disk_headroom;
        if !(0.0..=1.0).contains(&headroom) {
            return Err("'image_disk_headroom' must be between 0 and 1".to_owned());
        }
        let nanoseconds = u64::try_from(config.image_disk_watch_interval.nanoseconds);
        let interval = Duration::from_nanos(nanoseconds.map_err(|_| "'image_disk_watch_interval' is negative")?);
        let names = config.excluded_images.into_iter().filter_map(|image| Some(image.docker?.name));
        Ok(Collection { headroom, interval: interval.max(INTERVAL_MIN), excluded: names.collect() })
    }

    fn is_due(&self, used: f64) -> bool {
        used > 1.0 - self.headroom
    }
}

/// Looks at the disk of the images now and then, if the flag is set.
pub(super) fn watch(images: Images) -> Option<tokio::task::JoinHandle<()>> {
    let (collection, store) = images.collection()?;
    let (collection, store) = (collection.clone(), store.to_owned());
    Some(tokio::spawn(async move {
        loop {
            tokio::time::sleep(collection.interval).await;
            let Ok((_, used)) = crate::host::disk(&store) else { continue };
            if !collection.is_due(used) {
                continue;
            }
            let images = images.clone();
            let pruned = tokio::task::spawn_blocking(move || images.prune(&[])).await;
            match pruned {
                Ok(Ok(pruned)) if pruned.images + pruned.layers > 0 => {
                    let (images, layers) = (pruned.images, pruned.layers);
                    tracing::info!("the disk of the images is full: {images} images and {layers} layers were deleted");
                }
                Ok(Err(error)) => tracing::warn!("images cannot be deleted: {error:#}"),
                _ => {}
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag() {
        let text = r#"{"image_disk_headroom": 0.1, "image_disk_watch_interval": {"nanoseconds": 3600000000000},
            "excluded_images": [{"type": "DOCKER", "docker": {"name": "base:1"}}]}"#;
        let read = Collection::read(text).unwrap();
        assert_eq!((read.interval, read.excluded.as_slice()), (Duration::from_secs(3600), &["base:1".to_owned()][..]));
        assert!(read.is_due(0.91) && !read.is_due(0.89));
        for (text, said) in [
            ("nonsense", ""),
            (r#"{"image_disk_headroom": 2, "image_disk_watch_interval": {"nanoseconds": 1}}"#, "between 0 and 1"),
            (r#"{"image_disk_headroom": 0.1, "image_disk_watch_interval": {"nanoseconds": -1}}"#, "negative"),
        ] {
            assert!(Collection::read(text).unwrap_err().contains(said), "{text}");
        }
    }
}
