#!/bin/sh
# Lets this head node cancel all jobs from a time on, twice a minute, whether or not who asked for it is still there.
# As root:
#
#   end_jobs.sh MINUTES [ROOT]
#
# 0: not any more. A restart of the node changes nothing: the time is in the file. ROOT is a directory instead of /.
set -eu
unit=ultracluster-prove
service=${2-}/etc/systemd/system/$unit.service
program=${2-}/usr/local/sbin/$unit
if [ "$1" -eq 0 ]; then
    systemctl stop "$unit" || true
    systemctl disable "$unit" || true
    rm -f "$service" "$program"
    exit 0
fi
end=$(($(date +%s) + 60 * $1))
cat >"$program" <<END
#!/bin/sh
PATH=/opt/slurm/bin:\$PATH
while :; do
    [ "\$(date +%s)" -lt $end ] || squeue --noheader --format=%A | xargs --no-run-if-empty scancel
    sleep 30
done
END
chmod 755 "$program"
cat >"$service" <<END
[Unit]
Description=Cancels all jobs when the time of a walk is over

[Service]
ExecStart=$program
Restart=always

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable "$unit"
systemctl restart "$unit"
systemctl is-active "$unit"
