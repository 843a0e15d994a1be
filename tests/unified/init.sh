#!/bin/sh
# The init process of the machine that machine.sh boots: mounts the usual file systems, runs the script, and powers off.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /dev/shm
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
modprobe overlay
hostname unified
echo "127.0.0.1 localhost unified" > /etc/hosts
{
    echo "Linux $(uname -r), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
    sh /payload/run.sh
    echo "the script ended with $?"
} > /dev/ttyS1 2>&1
sync
echo o > /proc/sysrq-trigger
sleep 5
