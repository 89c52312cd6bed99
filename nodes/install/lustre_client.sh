#!/bin/bash
# Tunes the Lustre client, now and after each restart. Sourced.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

# tune_lustre_client: options of its modules for nodes with many cores, which hold from the next start on and in images
# (https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance-tips.html), and settings of the running client.
tune_lustre_client() {
    write_file /etc/modprobe.d/ultracluster-lustre.conf 644 <<'OPTIONS'
options ptlrpc ptlrpcd_per_cpt_max=32
options ksocklnd credits=2560
OPTIONS
    write_file /etc/systemd/system/ultracluster-lustre.service 644 <<UNIT
[Unit]
Description=Settings of the Lustre client, which a restart forgets
After=remote-fs.target

[Service]
Type=oneshot
TimeoutStartSec=300
ExecStart=/bin/bash /opt/ultracluster/current/lib/lustre_settings.sh $mount_dir

[Install]
WantedBy=multi-user.target
UNIT
    systemctl --quiet is-enabled ultracluster-lustre.service || systemctl --quiet enable ultracluster-lustre.service
    limited bash "$here/lib/lustre_settings.sh" "$mount_dir" || not_mounted "$mount_dir"
}
