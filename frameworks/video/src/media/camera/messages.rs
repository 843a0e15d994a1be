//! Parses the standard error of `ffmpeg` with `-loglevel level+info` and the filter `showinfo`. Performs no I/O.

/// A relevant line of `ffmpeg`'s standard error.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// Format of the input, by `ffmpeg`'s names.
    Format(String),
    /// A picture follows on the other pipe.
    Picture {
        /// Timestamp of the source, in seconds; `None` if there is none.
        stamp: Option<f64>,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// Error message.
    Error(String),
}

/// Formats whose timestamps `ffmpeg` makes up from a nominal rate.
const UNSTAMPED: [&str; 7] = ["mpjpeg", "mjpeg", "image2", "image2pipe", "jpeg_pipe", "h264", "hevc"];

/// Returns whether pictures of this format have timestamps of their own.
pub(super) fn has_stamps(format: &str) -> bool {
    !format.split(',').any(|name| UNSTAMPED.contains(&name))
}

/// Parses a line; `None` if it is not relevant.
pub(super) fn message(line: &str) -> Option<Message> {
    let found = |mark: &str| line.find(mark).map(|at| line[at + mark.len()..].trim());
    if let Some(text) = found("[error]").or_else(|| found("[fatal]")) {
        return (!text.is_empty()).then(|| Message::Error(text.to_owned()));
    }
    let text = found("[info]")?;
    if let Some(rest) = text.strip_prefix("Input #0, ") {
        return rest.split_once(", from").map(|(format, _)| Message::Format(format.to_owned()));
    }
    if !line.contains("showinfo") || !text.starts_with("n:") {
        return None;
    }
    let word = |key: &str| text.split_whitespace().find_map(|word| word.strip_prefix(key));
    let (width, height) = word("s:")?.split_once('x')?;
    let stamp = word("pts_time:").and_then(|stamp| stamp.parse().ok());
    Some(Message::Picture { stamp, width: width.parse().ok()?, height: height.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program() {
        let picture = "[Parsed_showinfo_0 @ 0x55be] [info] n:   1 pts:      1 pts_time:0.04    pos:     9182 \
                       fmt:yuvj444p sar:1/1 s:320x240 i:P iskey:1 type:I ";
        assert_eq!(message(picture), Some(Message::Picture { stamp: Some(0.04), width: 320, height: 240 }));
        let unstamped = "[Parsed_showinfo_0 @ 0x5] [info] n:1 pts:NOPTS pts_time:NOPTS pos:9 fmt:gray s:8x6 i:P";
        assert_eq!(message(unstamped), Some(Message::Picture { stamp: None, width: 8, height: 6 }));
        let input = "[info] Input #0, mpjpeg, from 'http://127.0.0.1/a, from b':";
        assert_eq!(message(input), Some(Message::Format("mpjpeg".to_owned())));
        let error = "[http @ 0x55] [error] HTTP error 404 Not Found";
        assert_eq!(message(error), Some(Message::Error("HTTP error 404 Not Found".to_owned())));
        for nothing in ["", "[info]   Duration: N/A", "[info] n: 5 s:1x1", "[Parsed_showinfo_0 @ 0] [info] n:1 s:axb"] {
            assert_eq!(message(nothing), None, "{nothing}");
        }
        assert!(has_stamps("mov,mp4,m4a") && has_stamps("mpegts") && has_stamps("rtsp") && !has_stamps("mpjpeg"));
    }
}
