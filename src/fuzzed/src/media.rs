//! Checks video files that are read without another program.

use video::media::Video;

use crate::files;

/// Maximum number of pixels of a picture; larger ones only slow the fuzzer down.
const PIXELS_MAX: usize = 1 << 18;

/// Rejects a video, or decodes frames of its size as far as possible, and no more than it declares.
pub fn media(data: &[u8]) {
    let directory = files::scratch();
    let file = directory.path().join("video");
    files::write(&file, data);
    let Ok(mut video) = Video::open_indexed(&file) else { return };
    let info = video.info();
    assert!(info.width >= 2 && info.height >= 2 && info.fps > 0.0 && info.seconds().is_none_or(f64::is_finite));
    let frames = info.frames.expect("an index has a length");
    let keys = video.keys(frames);
    assert!(keys.first() == Some(&0) && keys.iter().all(|key| *key < frames));
    assert!(video.cheap_frames(5, 0, frames).is_sorted());
    if info.width * info.height > PIXELS_MAX {
        return;
    }
    for number in [0, 1, frames - 1, 0] {
        if let Ok(Some(frame)) = video.frame(number) {
            assert!(number < frames);
            let _ = frame;
        }
    }
    assert!(matches!(video.frame(frames), Ok(None)));
}
