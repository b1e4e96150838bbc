# One scenario: builds the stack, lets plumb survey it, then syncs a few writes between two samples of the host.
# $1 is its name; D1, D2, … are its drives. Its setup must leave what it names as its target, a directory or a device,
# ready for writes.
. /lab/library.sh
home=/lab/scenarios/$1
TARGET=$(cat "$home/target")
SYNCS=$(cat "$home/syncs")
trap '[ $? = 0 ] || tell fail "in its script; the last command is in the console log"' EXIT

# Ends the scenario here as one that this kernel cannot run.
skip() {
	tell skip "$*"
	exit 0
}

# An ext4 on a device, mounted: ext4_on DEVICE [DIRECTORY] [OPTIONS]. Its inode tables are written at once, because
# the kernel would do it later, in the background, with flushes of its own. It has room for 245 files, or for about INODES.
ext4_on() {
	mkfs.ext4 -q -F -N "${INODES:-256}" -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$1"
	mkdir -p "${2:-/mnt/t}"
	mount -t ext4 -o "${3:-rw}" "$1" "${2:-/mnt/t}"
}

# A dm device, /dev/mapper/NAME: dm NAME TABLE [UUID]. No udev makes the device file here, so it is asked for.
dm() {
	dmsetup create "$1" --table "$2" --uuid "${3:-$1}" --noudevsync
	dmsetup mknodes "$1"
	[ -b "/dev/mapper/$1" ]
}

# The size of a device in sectors.
sectors() { blockdev --getsz "$1"; }

# The SCSI address of a disk: scsi_address /dev/sda is 0:0:0:0
scsi_address() { basename "$(readlink -f "/sys/block/${1#/dev/}/device")"; }

# One write and its fsync; a setup may put another in its place.
write_synced() { dd if=/dev/urandom of="$written" bs=4k count=1 conv=fsync,notrunc 2>/dev/null; }

insert_modules "$home/modules"
number=0
for name in $(cat "$home/drives"); do
	number=$((number + 1))
	node=$(drive "$name")
	eval "D$number=$node"
	# A drive that the setup has yet to connect is named by it.
	[ -z "$node" ] || tell disk "$name" "$(basename "$node")"
done

set -x
. "$home/setup"
set +x
eval "TARGET=$TARGET"
echo "$TARGET" >/tmp/target
blob target /tmp/target

if [ -e /sbin/plumb ]; then
	mkdir -p /out/record
	status=0
	plumb survey "$TARGET" --record /out/record --json >/out/survey.json 2>/out/survey.err || status=$?
	cat /out/survey.err
	blob survey.json /out/survey.json
	# 1 is a finding, which a trap ought to give; more than that is a survey that did not work.
	if [ $status -gt 1 ]; then
		tell fail "plumb survey ended with $status: $(tail -n 1 /out/survey.err)"
		exit 0
	fi
	tar -C /out/record -cf /tmp/record.tar .
	blob record.tar /tmp/record.tar
	rm -rf /out/record /tmp/record.tar
fi

written=$TARGET
if [ -d "$TARGET" ]; then written=$TARGET/written; fi

# The file exists and everything older is on its way before the first sample: what is counted are overwrites.
if [ "$SYNCS" -gt 0 ]; then write_synced; fi
sync
sync_with_host before
cat /proc/diskstats >/tmp/before
left=$SYNCS
while [ "$left" -gt 0 ]; do
	write_synced
	left=$((left - 1))
done
cat /proc/diskstats >/tmp/after
sync_with_host after
blob before /tmp/before
blob after /tmp/after
# What the kernel believes, for whoever reads the console.
grep . /sys/block/*/queue/write_cache /sys/class/scsi_disk/*/cache_type 2>/dev/null || true
cat /proc/mounts
