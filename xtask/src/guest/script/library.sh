# Functions of the guest: talking to the host, finding drives, and taking a stack down again.

# Whether a person uses this guest: then there is no host to talk to.
by_hand() { [ -e /lab/shell ]; }

# One frame to the host; see channel.rs for the frames.
tell() {
	if by_hand; then echo "(to the host: $*)"; else echo "@@$*" >&3; fi
}

# Inserts the modules of a list, dependencies first, leaving out those that are there already.
insert_modules() {
	while read -r file parameters; do
		name=${file##*/}
		name=${name%.ko}
		[ -d "/sys/module/$name" ] || insmod "$file" $parameters || echo "cannot insert $name"
	done <"$1"
}

# Stops until the host has sampled its counters.
sync_with_host() {
	by_hand && return 0
	tell sync "$1"
	read -r answer <&3
	[ "$answer" = go ]
}

# Sends a file to the host: blob LABEL FILE
blob() {
	tell blob "$1" "$(stat -c %s "$2")"
	by_hand || cat "$2" >&3
}

# Gives the SCSI disks their driver one after the other, so that their names follow the order of the buses. Left to
# itself the kernel does it in parallel, and recordings would differ from run to run.
name_scsi_disks() {
	expected=$(cat /lab/scsi_disks)
	[ "$expected" -gt 0 ] || return 0
	echo 0 >/sys/bus/scsi/drivers_autoprobe
	insert_modules /lab/scsi_modules
	tries=0
	while [ "$(ls /sys/class/scsi_device | wc -l)" -lt "$expected" ] && [ $tries -lt 1200 ]; do
		tries=$((tries + 1))
		usleep 50000
	done
	ls /sys/class/scsi_device | sort -t : -k 1,1n -k 2,2n -k 3,3n -k 4,4n | while read -r address; do
		echo "$address" >/sys/bus/scsi/drivers/sd/bind
	done
	echo 1 >/sys/bus/scsi/drivers_autoprobe
}

# The serial number of a block device, as the kernel learned it. USB storage keeps it in the USB device above.
serial_of() {
	node=/sys/block/$1
	if [ -r "$node/serial" ]; then
		cat "$node/serial"
	elif [ -r "$node/device/serial" ]; then
		cat "$node/device/serial"
	elif [ -r "$node/device/vpd_pg80" ]; then
		tail -c +5 "$node/device/vpd_pg80" | tr -d '\0'
	else
		above=$(readlink -f "$node/device")
		while [ "$above" != /sys ] && [ -n "$above" ] && [ ! -r "$above/serial" ]; do above=${above%/*}; done
		if [ -r "$above/serial" ]; then cat "$above/serial"; fi
	fi
}

# Waits for the drives of a list of lines "NAME SERIAL NTH", and writes "NAME NODE" lines to /tmp/drives.
wait_for_drives() {
	tries=0
	while :; do
		for node in /sys/block/*; do
			node=${node##*/}
			# The paths of an NVMe namespace that has several are not the disk.
			case $node in ram* | loop* | nvme*c*n*) continue ;; esac
			echo "$(serial_of "$node" | tr -d ' ') $node"
		done >/tmp/serials 2>/dev/null
		missing=
		: >/tmp/drives
		while read -r name serial nth; do
			node=$(grep "^$serial " /tmp/serials | sed -n "${nth}s/.* //p")
			if [ -n "$node" ]; then echo "$name $node" >>/tmp/drives; else missing="$missing $name"; fi
		done <"$1"
		[ -z "$missing" ] && return 0
		tries=$((tries + 1))
		[ $tries -gt 6000 ] && return 1
		usleep 100000
	done
}

# The device file of a drive: drive NAME
drive() { sed -n "s|^$1 |/dev/|p" /tmp/drives; }

# Runs a command for as long as a scenario may take.
in_time() { timeout -s KILL "$(cat /lab/timeout)" "$@" </dev/null; }

# Runs one scenario in a shell of its own, so that its failure ends it and nothing else.
run_scenario() {
	tell begin "$1"
	if [ -e "/lab/scenarios/$1/program" ]; then
		in_time sh -u /lab/policy.sh "$1" 1
	else
		in_time sh -eu /lab/scenario.sh "$1"
	fi
	end_scenario "$1" $?
}

# Tells the end of a scenario, and its status, after taking it down.
end_scenario() {
	status=$2
	take_down "$1" </dev/null
	tell end $status
}

# A word of the kernel's command line: boot_word plumb.life
boot_word() { tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"; }

# After a power cycle: the scenario that asked for it goes on.
resume_scenario() {
	resumed=$(boot_word plumb.scenario)
	[ -n "$resumed" ] || return 0
	in_time sh -u /lab/policy.sh "$resumed" "$(boot_word plumb.life)"
	end_scenario "$resumed" $?
}

# The scenarios that have not been run before this start.
remaining_scenarios() {
	resumed=$(boot_word plumb.scenario)
	awk -v resumed="$resumed" 'resumed == "" || found; $0 == resumed { found = 1 }' /lab/order
}

# Undoes whatever a scenario has put on its drives, topmost first, and wipes their signatures.
take_down() {
	cd /
	awk '$2 ~ "^/mnt" { print $2 }' /proc/mounts | tac | while read -r mounted; do umount "$mounted" || umount -l "$mounted"; done
	if [ -e "/lab/scenarios/$1/after" ]; then sh /lab/scenarios/$1/after; fi
	for looped in /sys/block/loop*/loop; do
		[ -d "$looped" ] && looped=${looped%/loop} && losetup -d "/dev/${looped##*/}"
	done
	for stopped in /sys/block/bcache*/bcache/stop; do [ -e "$stopped" ] && echo 1 >"$stopped"; done
	for set in /sys/fs/bcache/*/stop; do [ -e "$set" ] && echo 1 >"$set"; done
	[ -e /dev/mapper/control ] && ls /sys/block | grep -q '^dm-' && dmsetup remove_all --force
	for array in /sys/block/md*; do [ -d "$array" ] && mdadm --quiet --stop "/dev/${array##*/}"; done
	rm -rf /dev/vg /mnt/*
	for name in $(cat "/lab/scenarios/$1/drives"); do
		device=$(drive "$name")
		dd if=/dev/zero of="$device" bs=1M count=8 conv=notrunc 2>/dev/null
		blockdev --rereadpt "$device" 2>/dev/null
	done
	true
} >/dev/console 2>&1
