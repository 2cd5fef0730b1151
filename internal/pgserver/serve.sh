# serve.sh BIN DIRECTORY PORT: makes a cluster in DIRECTORY, serves it until standard input ends,
# and removes DIRECTORY. Says "ready" once connections are accepted.
bin=$1 dir=$2 port=$3
trap '' HUP INT TERM

# The cluster is removed with everything in it, so making it need not wait for the disk.
"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$dir/log" 2>&1 &&
sed -i '1i host all sworn 127.0.0.1/32 scram-sha-256' "$dir/data/pg_hba.conf" &&
"$bin/pg_ctl" start -w -s -D "$dir/data" -l "$dir/log" -o "-h 127.0.0.1 -p $port -k '$dir' -c max_connections=300" >>"$dir/log" 2>&1
status=$?

if [ $status = 0 ]; then
	echo ready
	cat >/dev/null
else
	tail -n 20 "$dir/log"
fi

"$bin/pg_ctl" stop -w -s -m immediate -D "$dir/data" >/dev/null 2>&1
rm -rf "$dir"
exit $status
