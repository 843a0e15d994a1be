//! Checks images: names, manifests, configurations, and directories in the layout of OCI.

use std::sync::LazyLock;

use ::store::Access;
use fetcher::image::{ImageRequest, Manifest, Name, fetch_image};

use crate::files;
use crate::pieces::Pieces;

/// A layer and its digest: an empty archive.
static LAYER: LazyLock<(Vec<u8>, &str)> =
    LazyLock::new(|| (vec![0; 1024], "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"));

/// Checks an input whose first line is the name of an image. An index, a manifest and a configuration follow, in which
/// `$M`, `$C` and `$L` stand for the digests of manifest, configuration and layer. The image is stored or rejected.
pub fn image(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let text = String::from_utf8_lossy(pieces.line()).into_owned();
    if let Ok(name) = Name::parse(&text) {
        let shown = name.to_string();
        assert_eq!(Name::parse(&shown).expect("what is shown is a name"), name);
        assert!(!shown.contains("..") || !shown.split('/').any(|part| part == ".."));
    }
    let digests = [("$M", "a".repeat(64)), ("$C", "b".repeat(64)), ("$L", LAYER.1.to_owned())];
    let mut part = || {
        let text = String::from_utf8_lossy(pieces.bytes()).into_owned();
        digests.iter().fold(text, |text, (sign, hex)| text.replace(sign, &format!("sha256:{hex}")))
    };
    let (index, manifest, configuration) = (part(), part(), part());
    for text in [&index, &manifest] {
        if let Ok(layers) = Manifest::read(text.as_bytes()).and_then(|manifest| manifest.digests()) {
            assert!(layers.len() <= text.len());
        }
    }
    let directory = files::scratch();
    let [registry, store] = ["registry", "store"].map(|name| directory.path().join(name));
    let blobs = registry.join("app/blobs/sha256");
    ::store::create_directories(&blobs, Access::Owner).expect("a directory");
    files::write(&registry.join("app/index.json"), index.as_bytes());
    let contents = [manifest.as_bytes(), configuration.as_bytes(), &LAYER.0];
    for ((_, hex), content) in digests.iter().zip(contents) {
        files::write(&blobs.join(hex), content);
    }
    let wanted = ImageRequest {
        name: "app".to_owned(),
        registry: registry.display().to_string(),
        store: store.clone(),
        cached: true,
        stall: 1,
        logins: String::new(),
    };
    if let Ok(image) = fetch_image(&wanted) {
        assert!(image.layers.iter().all(|id| store.join("layers").join(id).join("rootfs").is_dir()));
        assert_eq!(fetch_image(&wanted).expect("it is in the store"), image);
    }
}
