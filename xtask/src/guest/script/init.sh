#!/bin/busybox sh
# The first process of a guest: mounts what every system has, inserts the drivers, waits for the drives, runs the
# scenarios one after the other, and powers off. Its console goes to a log; what the host must know goes to descriptor 3.

/bin/busybox mkdir -p /proc /sys /dev /run /tmp /mnt /out /etc /var/run
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox --install -s /bin
export PATH=/sbin:/bin HOME=/ LVM_SUPPRESS_FD_WARNINGS=1
exec <>/dev/console >&0 2>&1
mkdir -p /dev/shm /dev/mapper
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
ln -s /proc/self/mounts /etc/mtab

. /lab/library.sh
insert_modules /lab/modules
name_scsi_disks

# The port's name is in sysfs; the device node appears with the driver.
by_hand || for port in /sys/class/virtio-ports/*; do
	[ "$(cat "$port/name")" = plumb ] && exec 3<>"/dev/${port##*/}"
done

if wait_for_drives /lab/drives; then
	tell hello "$(uname -r)"
	if by_hand; then
		echo "scenarios here: $(cat /lab/order | tr '\n' ' '); start one with: sh -eu /lab/scenario.sh NAME"
		[ -e /lab/policy.sh ] && echo "those of policy with: sh -u /lab/policy.sh NAME 1"
		setsid cttyhack sh
	else
		resume_scenario
		remaining_scenarios | while read -r scenario; do run_scenario "$scenario"; done
	fi
	tell bye
else
	echo "these drives did not appear: $missing"
fi
poweroff -f
