//! `tepui framework video frame`: draws a picture with a grid and a query's lines, to choose coordinates.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use video::media::Source;
use video::media::first_frame;
use video::output::{draw_scope, grid, png};

use super::tools::ScopeArgs;
use crate::say::say;

/// Flags of `tepui framework video frame`.
#[derive(Debug, clap::Args)]
pub(super) struct FrameArgs {
    /// A video file, or a camera: rtsp://, http://, https://, /dev/videoN or pipe:PATH
    #[arg(value_name = "SOURCE")]
    source: Source,
    /// The picture to write, as PNG
    #[arg(short, long, value_name = "FILE", default_value = "frame.png")]
    output: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Take the picture at this second of a video file
    #[arg(long, default_value_t = 0.0)]
    at: f64,
}

pub(super) fn frame(args: &FrameArgs) -> Result<ExitCode> {
    let scope = args.scope.read()?;
    let mut frame = first_frame(&args.source, args.at)?;
    grid(&mut frame);
    draw_scope(&mut frame, &scope);
    let bytes = png(&frame).context("the picture cannot be encoded")?;
    std::fs::write(&args.output, bytes).with_context(|| format!("cannot write {}", args.output.display()))?;
    say!("{}: {}x{} pixels of {}", args.output.display(), frame.width(), frame.height(), args.source);
    Ok(ExitCode::SUCCESS)
}
