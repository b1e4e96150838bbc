#!/bin/sh
# plumb.storage.policy for hosts without Python: it needs plumb and a POSIX shell, with sed, grep and mktemp.
# Ansible hands an old-style module its arguments as one line of name='value', quoted for the shell, in the file $1.
# shellcheck disable=SC1090,SC2016
set -u
export LC_ALL=C
plumb=plumb state='' devices='' all='' where='' refused=fail save=False persist=False
claims=/etc/plumb/claims.toml journals=/var/lib/plumb/policy/journals _ansible_check_mode=False
names() { set | sed -n 's/^\([a-z][a-z_0-9]*\)=.*/\1/p'; }
known='' unknown='' name=''
known=" $(names | tr '\n' ' ')"
. "$1"
for name in $(names); do
	case $known in *" $name "*) ;; *) unknown="$unknown $name" ;; esac
done

# A text as JSON: quotes and backslashes escaped, lines joined, other control characters left out.
quoted() { printf '"%s"' "$(printf '%s' "$1" | tr '\n\t' '  ' | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

# What plumb said last, without its name and the progress before.
said() { sed -n 'H;/^plumb: /h;${x;s/^plumb: //;s/^\n//;p;}' "$directory/said"; }

# The document of plumb in a file, or null: document FILE
document() { if [ -s "$directory/$1" ]; then cat "$directory/$1"; else echo null; fi; }

# Ends the task: finish CHANGED [MESSAGE]
finish() {
	printf '{"changed": %s, "plan": ' "$1"
	document plan
	printf ', "report": '
	document report
	if [ $# -gt 1 ]; then
		printf ', "failed": true, "msg": '
		quoted "$2"
	fi
	echo '}'
	exit 0
}

is_true() { case $1 in True | true | yes | on | 1) return 0 ;; *) return 1 ;; esac }

# A list of the document in a file is empty: is_empty NAME FILE
is_empty() { grep -q "^  \"$1\": \[\]" "$directory/$2"; }

# One key of a list's entries, a line each: each LIST KEY FILE
each() {
	sed -n "/^  \"$1\": \[\$/,/^  \]/s/^      \"$2\": \"\(.*\)\",\{0,1\}\$/\1/p" "$directory/$3"
}

directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' HUP INT TERM
: >"$directory/said"

[ -z "$unknown" ] ||
	finish false "no such parameter:$unknown. Expected state, devices, all, where, refused, save, persist, claims, journals, plumb"

# YAML takes off and on for booleans.
case $state in
False | false) state=off ;;
True | true) state=on ;;
off | on | protected) ;;
*) finish false "state is '$state': expected off, on or protected" ;;
esac
case $refused in fail | leave) ;; *) finish false "refused is '$refused': expected fail or leave" ;; esac
case $devices in
'['*) finish false "devices is a list: without Python it is one string, of names with blanks between them" ;;
esac
command -v "$plumb" >/dev/null ||
	finish false "there is no program $plumb on this host: push the static binary with plumb.storage.push, or name its path with plumb"

set -f
set -- --json --claims "$claims"
[ -z "$where" ] || set -- "$@" "--where=$where"
if is_true "$all"; then set -- "$@" --all; fi
if is_true "$save"; then set -- "$@" --save; fi
# shellcheck disable=SC2086 # names of disks have no blanks
[ -z "$devices" ] || set -- "$@" -- $devices
"$plumb" policy plan "$state" --out "$directory/file" "$@" >"$directory/plan" 2>"$directory/said"
code=$?
if [ ! -s "$directory/plan" ]; then finish false "plumb policy plan ended with $code: $(said)"; fi
if [ "$refused" = fail ] && ! is_empty refused plan; then
	finish false "no write cache was changed: $(each refused name plan | tr '\n' ' ')refused: $(each refused reason plan | tr '\n' ';') $(each refused remedy plan | tr '\n' ';')"
fi

changed=false
is_empty changes plan || changed=true
if [ $changed = true ] && ! is_true "$_ansible_check_mode"; then
	"$plumb" policy apply "$directory/file" --json --journal "$journals" --claims "$claims" >"$directory/report" 2>"$directory/said"
	code=$?
	if [ $code != 0 ]; then
		# Without a report nothing was begun.
		[ -s "$directory/report" ] || changed=false
		finish $changed "plumb policy apply ended with $code: $(each disks found report | tr '\n' ';') $(said)"
	fi
fi
if is_true "$persist"; then
	"$plumb" policy persist --json >"$directory/kept" 2>"$directory/said"
	for disk in $(each changes name plan) $(each unchanged name plan); do
		identity=$("$plumb" policy show --json -- "$disk" 2>/dev/null | sed -n 's/^      "identity": "\(.*\)",$/\1/p')
		# Its state stands in the line behind its identity.
		if grep -A 1 -F "\"identity\": \"$identity\"" "$directory/kept" | grep -q "\"state\": \"$state\""; then continue; fi
		is_true "$_ansible_check_mode" ||
			"$plumb" policy persist --json --claims "$claims" -- "$disk" >"$directory/now-kept" 2>"$directory/said" ||
			finish $changed "plumb policy persist $disk ended with $?: $(said)"
		changed=true
	done
fi
finish $changed
