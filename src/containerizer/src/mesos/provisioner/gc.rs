//! Garbage collection of images when their disk is almost full (`--image_gc_config`, AGT-53).
//!
//! `mod.rs` decides which images are deleted.

use super::Provisioner;

/// Starts the task that checks the disk of the images at intervals, if the flag is set.
pub(crate) fn watch(images: Provisioner) -> Option<tokio::task::JoinHandle<()>> {
    let (collection, store) = images.collection()?;
    let (collection, store) = (collection.clone(), store.to_owned());
    Some(tokio::spawn(async move {
        loop {
            tokio::time::sleep(collection.interval).await;
            let Ok((_, used)) = containers::file_system_use(&store) else { continue };
            if used <= 1.0 - collection.headroom {
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
