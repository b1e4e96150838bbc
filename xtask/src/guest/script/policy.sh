# One scenario that checks by itself. $1 is its name, $2 the how-manieth start of the machine this is; D1, D2, … are the
# device files of its drives. Three witnesses: what plumb says, what /sys says, and what the drives say to the host.
. /lab/library.sh
home=/lab/scenarios/$1
LIFE=$2
SCENARIO=$1
# How many writes are synced when flushes are counted.
SYNCS=5

# A note is one line.
note() {
	echo "$*"
	tell note "$(echo "$*" | tr '\n' ' ')"
} >&2

info() { note "info $*"; }
ok() { note "ok $*"; }
bad() { note "FAIL $*"; }

# Ends the scenario: what it stands on could not be built.
give_up() {
	tell fail "$*"
	exit 0
}

# A step of building; without it there is nothing to check: must COMMAND...
must() {
	"$@" >/tmp/must 2>&1 || {
		status=$?
		cat /tmp/must
		give_up "$* ended with $status: $(tail -n 1 /tmp/must)"
	}
}

# same WHAT EXPECTED FOUND
same() {
	if [ "$2" = "$3" ]; then ok "$1: $3"; else bad "$1: expected $2, found $3"; fi
}

# Whether two of these are different: differ WHAT ONE OTHER
differ() {
	if [ "$2" != "$3" ]; then ok "$1: $3"; else bad "$1: both are $2"; fi
}

# Runs plumb and checks its exit code: policy CODE ARGUMENTS... Its output is in /tmp/out, its messages in /tmp/err.
policy() {
	expected=$1
	shift
	plumb policy "$@" >/tmp/out 2>/tmp/err </dev/null
	ended=$?
	if [ $ended = "$expected" ]; then
		ok "plumb policy $*: exit code $ended"
	else
		bad "plumb policy $*: expected exit code $expected, found $ended: $(tail -n 3 /tmp/err | tr '\n' ' ') | $(head -c 600 /tmp/out | tr '\n' ' ')"
		cat /tmp/err /tmp/out
	fi
	[ $ended = "$expected" ]
}

# Runs the module of Ansible for hosts without Python as Ansible does: module NAME=VALUE... What it returns is in /tmp/out.
module() {
	echo "_ansible_check_mode=False journals=/tmp/journals $*" >/tmp/arguments
	sh /lab/policy_shell.sh /tmp/arguments >/tmp/out 2>/tmp/err
}

# Checks the JSON in /tmp/out: is WHAT FILTER, which must give true.
is() {
	if jq -e "$2" /tmp/out >/tmp/jq 2>&1; then
		ok "$1"
	else
		bad "$1: not so: $2 ($(head -c 200 /tmp/jq | tr '\n' ' '))"
		cat /tmp/out
	fi
}

# Checks that plumb's output or messages hold a text: says WHAT TEXT
says() {
	if cat /tmp/out /tmp/err | tr '\n' ' ' | tr -s ' ' | grep -q -- "$2"; then ok "$1"; else
		bad "$1: nothing says \"$2\": $(cat /tmp/err /tmp/out | tr '\n' ' ' | head -c 500)"
		cat /tmp/err /tmp/out
	fi
}

# What is refused: exit code 4, with a reason that holds a text, and something to do: refused TEXT ARGUMENTS...
refused() {
	text=$1
	shift
	policy 4 "$@" && says "plumb policy $1 $2 says why" "$text"
}

# What a drive has received, and whether its cache is on, from the host: ask DRIVE sets FLUSHES, WRITES and CACHE.
ask() {
	if by_hand; then
		FLUSHES=0 WRITES=0 CACHE=unknown
		return 0
	fi
	tell count "$1"
	read -r FLUSHES WRITES CACHE <&3
}

# Whether a drive's cache is on, from another mouth than plumb's: drive_cache WHAT on|off DRIVE [DISK]. The host says it of
# most; of NVMe, where QEMU keeps the feature apart, and of scsi_debug, which it does not know, Debian's own tools do.
drive_cache() {
	disk=${4:-$(drive "$3")}
	case $disk in
	/dev/nvme*) CACHE=$(nvme get-feature "$disk" --feature-id=6 --human-readable | grep -qi "enabled.*true\|:.*Enabled" && echo on || echo off) ;;
	*)
		if [ "$3" = - ]; then
			CACHE=$(sdparm --quiet --get=WCE "$disk" | grep -q "WCE *1" && echo on || echo off)
		else
			ask "$3"
		fi
		;;
	esac
	same "$1: the cache of the drive $3" "$2" "$CACHE"
}

# The flushes that arrive at a drive for synced writes into a file or device: flushes DRIVE FILE
flushes() {
	ask "$1"
	before=$FLUSHES
	left=$SYNCS
	while [ $left -gt 0 ]; do
		dd if=/dev/urandom of="$2" bs=4k count=1 conv=fsync,notrunc 2>/dev/null || bad "a write to $2 failed"
		left=$((left - 1))
	done
	ask "$1"
	echo $((FLUSHES - before))
}

# The kernel's two views of a disk: view NODE
view() {
	node=${1#/dev/}
	kind=$(cat "/sys/block/$node/device/scsi_disk/"*/cache_type "/sys/block/$node/cache_type" 2>/dev/null)
	echo "$(cat "/sys/block/$node/queue/write_cache")/${kind:-none}"
}

# The file cache_type of a SCSI disk: cache_type NODE
cache_type() { echo "/sys/block/${1#/dev/}/device/scsi_disk/"*/cache_type; }

queue() { echo "/sys/block/${1#/dev/}/queue/write_cache"; }

# Sends a SCSI disk away, and lets its host look for it again.
detach() { echo 1 >"/sys/block/${1#/dev/}/device/delete"; }

# The host pulls a drive out, which takes the kernel a moment to notice: unplug DRIVE
unplug() {
	by_hand && return 0
	tell unplug "$1"
	read -r answer <&3
	[ "$answer" = go ]
}

# (cut(1) is a program that scenarios use.)
# The simulated drive $DISK loses its power when this says, in words of plumb drive cut: cut_power WHEN
cut_power() {
	by_hand && return 0
	tell cut "$DISK" "$1"
	read -r answer <&3
	[ "$answer" = go ]
}

# The last that was acknowledged on the drive $DISK before its power went: sets ACKED
acked() {
	ACKED=0
	by_hand && return 0
	tell acked "$DISK"
	read -r ACKED <&3
}

# Waits until a command succeeds: wait_for WHAT COMMAND...
wait_for() {
	waited_for=$1
	shift
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		if [ $tries -gt 6000 ]; then
			bad "waited in vain for $waited_for"
			return 1
		fi
		usleep 100000
	done
}

# Whether a process has ended: has_ended PID. Of one that nobody has waited for there is no program any more.
has_ended() { [ ! -e "/proc/$1/exe" ]; }

# What the threads of a process wait for in the kernel: tasks_of PID
tasks_of() {
	for task in "/proc/$1/task"/*; do
		info "thread $(cat "$task/comm"): $(cut -d ' ' -f 3 "$task/stat") $(cat "$task/wchan") $(tr '\n' ' ' <"$task/stack")"
	done
}

# Waits until the comparison that runs as $controller has switched a drive off: switched_off DISK
switched_off() {
	while [ "$(view "$1")" = "write back/write back" ]; do
		if has_ended $controller; then
			bad "the comparison ended before it switched $1 off: $(tr '\n' ' ' </tmp/err)"
			return
		fi
		usleep 100000
	done
}

# The disks of scsi_debug, one a line.
debug_disks() {
	for found in /sys/block/sd*; do
		[ "$(tr -d ' ' <"$found/device/model")" = scsi_debug ] && echo "/dev/${found##*/}"
	done
	return 0
}

# The size of a device in sectors.
sectors() { blockdev --getsz "$1"; }

# A dm device, /dev/mapper/NAME: dm NAME TABLE [UUID]. No udev makes the device file here, so it is asked for.
dm() {
	must dmsetup create "$1" --table "$2" --uuid "${3:-TEST-$1}" --noudevsync
	must dmsetup mknodes "$1"
}

# An ext4 on a device, mounted: ext4_on DEVICE [DIRECTORY]. It has no journal, so that an fsync is one flush, always.
ext4_on() {
	must mkfs.ext4 -q -F -N 256 -O ^has_journal -E lazy_itable_init=0,nodiscard "$1"
	mkdir -p "${2:-/mnt/t}"
	must mount -t ext4 "$1" "${2:-/mnt/t}"
}

# An array that rests marks itself clean, with flushes of its own: not this one, from now on, until it is stopped.
steady() {
	echo 0 >"/sys/block/${1#/dev/}/md/safe_mode_delay"
	must dd if=/dev/zero of="$1" bs=4k count=1 conv=fsync,notrunc
}

# The kernel's name of a device: kname /dev/mapper/x is dm-0
kname() { basename "$(readlink -f "/sys/dev/block/$(($(stat -L -c 0x%t "$1"))):$(($(stat -L -c 0x%T "$1")))")"; }

# Whether plumb finds a trap at a disk and names the layer: trapped FINDING DISK [LAYER]
trapped() {
	layer=${3:-$(kname "$2")}
	policy 1 show "$2" --json
	is "$1 is found, and $layer is named" \
		".devices[0].findings | any(.id == \"$1\" and (.sentence | test(\"(^|[^a-z0-9-])$layer([^a-z0-9-]|\$)\")))"
}

# Whether plumb finds no trap at a disk, and its state: sound DISK STATE
sound() {
	policy 0 show "$1" --json
	is "nothing is wrong with $1 any more, it is $2" ".devices[0].state == \"$2\""
}

# A trap from its making to its end: flushes are counted before it, in it and after the heal.
# trap_at DRIVE DISK FILE FINDING LAYER, with a function `spring` that makes the trap.
trap_at() {
	baseline=$(flushes "$1" "$3")
	same "flushes of $SYNCS synced writes before the trap" $SYNCS "$baseline"
	spring
	info "in the trap the kernel says $(view "$2")"
	same "flushes in the trap" 0 "$(flushes "$1" "$3")"
	trapped "$4" "$2" "$5"
	policy 1 heal "$2" --dry-run
	policy 0 heal "$2" --journal /tmp/journals
	info "after the heal the kernel says $(view "$2")"
	same "flushes after the heal" "$baseline" "$(flushes "$1" "$3")"
	drive_cache "the heal leaves the cache on" on "$1"
	sound "$2" on
}

# Applies a new plan: brought STATE DISK; its journal is the only one in /tmp/journals.
brought() {
	rm -rf /tmp/journals
	policy 0 plan "$1" "$2" --out /tmp/plan --json
	is "the plan has one change" '(.changes | length) == 1 and (.refused | length) == 0'
	policy 0 apply /tmp/plan --journal /tmp/journals --json
	is "apply has read it back" '.ended == "complete" and (.disks | all(.result == "verified"))'
}

# A drive is as it should be: is_now WHAT on|off DRIVE DISK; the kernel's view too.
is_now() {
	drive_cache "$1" "$2" "$3" "$4"
	expected="write back"
	[ "$2" = on ] || expected="write through"
	case $4 in
	# The kernel never learns of it (H7).
	/dev/nvme*) expected="write back/none" ;;
	*) expected="$expected/$expected" ;;
	esac
	same "$1: the kernel's views" "$expected" "$(view "$4")"
}

# Off, read back and rolled back, so that it is on in the end: switched DRIVE DISK [FLUSHES-WHEN-OFF]; the drive is - where the host
# knows none.
switched() {
	is_now "in the beginning" on "$1" "$2"
	brought off "$2"
	is_now "after apply" off "$1" "$2"
	policy 0 verify /tmp/plan
	[ "$1" = - ] || same "flushes with the cache off" "${3:-0}" "$(flushes "$1" "$2")"
	policy 0 rollback /tmp/journals/*-* --json
	is "rollback has read it back" '.ended == "complete"'
	is_now "after rollback" on "$1" "$2"
	policy 1 verify /tmp/plan
	[ "$1" = - ] || same "flushes after rollback" $SYNCS "$(flushes "$1" "$2")"
}

# As switched, and then on from off, which is rolled back, so that it is off in the end.
switched_both_ways() {
	switched "$@"
	brought off "$2"
	brought on "$2"
	is_now "after apply" on "$1" "$2"
	policy 0 plan on "$2" --json
	is "nothing is left to change" '(.changes | length) == 0 and (.unchanged | length) == 1'
	policy 0 rollback /tmp/journals/*-* --json
	is_now "after rollback" off "$1" "$2"
}

# Switches the machine off and on again; the scenario goes on at the next start.
power_cycle() {
	sync
	tell power-cycle $((LIFE + 1))
	while :; do sleep 10; done
}

insert_modules "$home/modules"
number=0
for name in $(cat "$home/drives"); do
	number=$((number + 1))
	eval "D$number=$(drive "$name")"
done
export PATH=/sbin:/bin
rm -rf /tmp/journals
mkdir -p /mnt/t
. "$home/program"
