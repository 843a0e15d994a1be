#!/usr/bin/env bash
# Boots a virtual machine with control groups of version 2 only, runs a script in it, and prints the script's output.
#
#   machine.sh DIR PAYLOAD
#
# The machine has Debian's kernel and a minimal Debian. It is emulated, and therefore about ten times slower. It is made
# below DIR at the first use (needs root, debootstrap, and a mirror). PAYLOAD is a directory that is copied to /payload;
# /payload/run.sh is the script. The exit code is that of the script.
set -euo pipefail
directory=$1 payload=$2
here=$(cd "$(dirname "$0")" && pwd)

for program in debootstrap qemu-system-x86_64 cpio; do
    command -v "$program" > /dev/null || {
        echo "$program is missing: apt-get install --no-install-recommends debootstrap qemu-system-x86 cpio" >&2
        exit 1
    }
done

system=$directory/system
if [ ! -e "$system/made" ]; then
    rm -rf "$system"
    mkdir -p "$system"
    echo "making a Debian below $system"
    debootstrap --variant=minbase --include=python3,procps,iproute2,kmod bookworm "$system" > "$directory/debootstrap.log" 2>&1 || {
        tail -5 "$directory/debootstrap.log" >&2
        exit 1
    }
    # The kernel without its installation scripts.
    (
        cd "$directory"
        kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -1)
        rm -f linux-image-*.deb
        apt-get download "$kernel" > apt.log 2>&1
        dpkg-deb -x linux-image-*.deb kernel
    )
    mkdir -p "$system/lib/modules"
    cp -a "$directory"/kernel/lib/modules/* "$system/lib/modules/"
    chroot "$system" depmod "$(ls "$system/lib/modules")"
    rm -rf "$system"/var/cache/apt/* "$system"/var/lib/apt/lists/* "$system"/usr/share/{doc,locale,man}
    touch "$system/made"
fi

cp "$here/init.sh" "$system/init"
chmod +x "$system/init"
rm -rf "$system/payload"
cp -a "$payload" "$system/payload"
(cd "$system" && find . | cpio --quiet -o -H newc | gzip -1) > "$directory/initrd.gz"

log=$directory/console.log
# The first serial line has the kernel's output, the second one the script's.
qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 6144 -display none -no-reboot \
    -kernel "$directory"/kernel/boot/vmlinuz-* -initrd "$directory/initrd.gz" -append "console=ttyS0 quiet panic=-1 psi=1" \
    -serial "file:$directory/kernel.log" -serial stdio < /dev/null | tr -d '\r' | tee "$log"
code=$(sed -n 's/^the script ended with \([0-9]*\)$/\1/p' "$log" | tail -1)
exit "${code:-1}"
