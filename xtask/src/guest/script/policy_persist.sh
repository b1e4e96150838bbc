# Three starts of one machine. Its root is in memory; what a root on a disk would keep is on the last drive.
all="$D1 $D2 $D3 $D4 $D5 $D6"
names="p-sata p-scsi p-plain p-usb p-vblk p-nvme"
kept="etc/plumb etc/udev etc/systemd var/lib/plumb"

root_on() {
	mkdir -p /mnt/root
	[ $LIFE != 1 ] || must mkfs.ext4 -q -F "$1"
	must mount -t ext4 "$1" /mnt/root
	for place in $kept; do
		mkdir -p "/$place" "/mnt/root/$place"
		must mount --bind "/mnt/root/$place" "/$place"
	done
}

caches() { for name in $names; do drive_cache "$1" "$2" $name; done; }

# As systemd would: the command of a unit, as it is written in it, if its condition holds. systemd itself is not here.
start_unit() {
	unit=/etc/systemd/system/$1
	condition=$(sed -n 's/^ConditionDirectoryNotEmpty=//p' "$unit")
	differ "the condition of $1 holds" "" "$(ls "$condition")"
	command=$(sed -n 's/^ExecStart=//p' "$unit")
	$command >/tmp/out 2>/tmp/err
	same "ExecStart of $1 ($command) ends with" 0 $?
	cat /tmp/out /tmp/err
}

standing() {
	policy 0 persist --json
	is "all are $1" "[.kept[].standing] == [\"$1\", \"$1\", \"$1\", \"$1\", \"$1\", \"$1\"]"
	info "kept: $(jq -c '[.kept[] | [.identity, .means, .standing]]' /tmp/out)"
}

case $LIFE in
1)
	root_on $D7
	policy 0 plan off $all --out /tmp/plan
	policy 0 apply /tmp/plan --journal /tmp/journals
	policy 0 persist $all --program /sbin/plumb
	standing requested
	caches "before the power cycle" off
	same "the boot unit is wanted" 1 "$(ls /etc/systemd/system/multi-user.target.wants | wc -l)"
	power_cycle
	;;
2)
	root_on $D7
	# A drive forgets when its power goes; that is why something has to last.
	caches "just after power-on" on
	must systemd-udevd --daemon
	must udevadm control --log-level=info
	must udevadm trigger --action=add --subsystem-match=block
	must udevadm settle --timeout=60
	caches "set by the udev rule" off
	start_unit plumb-policy.service
	# No drive of QEMU counts its power cycles, so none may be called proven.
	standing held-over-reboot
	# A name beyond sdz: the disk leaves, and comes back behind 26 others.
	host=$(basename $(readlink -f /sys/block/$(kname $D2)/device) | cut -d: -f1)
	target=$(basename $(readlink -f /sys/block/$(kname $D2)/device) | cut -d: -f3)
	echo "write back" >$(cache_type $D2)
	drive_cache "switched on by somebody" on p-scsi
	detach $D2
	echo 1 >/sys/bus/pseudo/drivers/scsi_debug/add_host
	wait_for "26 disks" [ -b /dev/sdz ]
	echo "0 $target 0" >/sys/class/scsi_host/host$host/scan
	must udevadm settle --timeout=60
	wait_for_drives /lab/drives
	now=$(kname $(drive p-scsi))
	same "its name has four letters" 4 ${#now}
	wait_for "the rule" grep -q "write through" $(cache_type /dev/$now)
	drive_cache "set by the udev rule when it came back as $now" off p-scsi
	policy 0 show $now --json
	is "$now is off" '.devices[0].state == "off"'
	rmmod scsi_debug
	must udevadm control --exit
	power_cycle
	;;
3)
	root_on $D7
	caches "just after the next power-on" on
	# Without udev: the unit alone.
	start_unit plumb-policy.service
	caches "set by the unit" off
	standing held-over-reboot
	echo "write back" >$(cache_type $D1)
	drive_cache "forgotten in sleep" on p-sata
	start_unit plumb-policy-resume.service
	drive_cache "set by the unit after sleep" off p-sata
	policy 0 persist --remove $all
	same "no rule is left" "" "$(ls /etc/udev/rules.d | grep plumb)"
	;;
esac
