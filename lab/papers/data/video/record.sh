#!/bin/sh
# Records the profiles of video.toml: cost and quality of each kind of query on three streets in three sizes.
# Quality is the same on every machine. The cost is in cores of the machine that runs this. Takes about ten minutes of
# one core.
#   TEPUI=target/release/tepui lab/papers/data/video/record.sh
set -e
here=$(dirname "$0")
videos=$(mktemp -d)
n=0
for size in "640 360" "960 540" "1280 720"; do
    n=$((n + 1))
    set -- $size
    "$TEPUI" framework video generate --seed $n --seconds 12 --width "$1" --height "$2" "$videos/street$n.mp4"
    for kind in cars people plates tracks; do
        "$TEPUI" framework video profile --kind $kind --output "$here/street$n-$kind.json" "$videos/street$n.mp4"
    done
done
rm -r "$videos"
