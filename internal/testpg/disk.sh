# disk.sh DIRECTORY OPTIONS: mounts a disk in DIRECTORY until standard input ends, and removes
# DIRECTORY. Says "ready" once it is there.
dir=$1 options=$2
trap '' HUP INT TERM

if mount -t tmpfs -o "$options" testpg "$dir"; then
	echo ready
	cat >/dev/null
	umount -l "$dir"
fi
rmdir "$dir"
