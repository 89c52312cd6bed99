#!/bin/bash
# People on nodes: who they are, and what keeps them the same on all nodes. Sourced by the scripts of all nodes.
#
# The head node shares a document with all nodes by /opt/slurm, which compute and login nodes mount before they run these
# scripts (aws-parallelcluster-cookbook, mount_slurm_dir.rb). A change of it is theirs within a minute, and before each
# job; it changes nothing that ParallelCluster would replace a node for.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

readonly TEAM_DOCUMENT=/opt/slurm/etc/ultracluster/team.json

# set_team: fetches the document that $team names, an s3:// address, applies it to this node, the head node, and shares it
# with the others; last, Slurm's accounts. Without $team, nobody is left of those that were there.
set_team() {
    local new
    [[ -n $team || -e $TEAM_DOCUMENT ]] || return 0
    new=$(mktemp)
    if [[ -n $team ]]; then
        retry "$NO_NETWORK" "$team cannot be fetched" \
            "see whether this node reaches S3 and its role may read that object" fetch_object "$team" "$new"
    else
        echo '{}' >"$new"
    fi
    # What this node cannot take, no node gets.
    limited python3 -B "$here/team/users.py" head "$new" ||
        fail "$BAD_TEAM" "this node cannot have the users that the settings give" \
            "change the settings as the lines above say, and deploy again"
    write_file "$TEAM_DOCUMENT" 644 <"$new"
    rm "$new"
    add_team_hook
    start_team_service head /dev/null
    set_accounts "$TEAM_DOCUMENT"
}

# add_team_hook: each job finds its user, and the metadata service closed. Another failure drains no node.
add_team_hook() {
    write_file /opt/slurm/etc/scripts/prolog.d/40_ultracluster_team 755 <<HOOK
#!/bin/bash
program=/opt/ultracluster/current/team/users.py
[[ -f \$program ]] || exit 0
timeout 60 python3 -B "\$program" compute $TEAM_DOCUMENT --if-changed
code=\$?
((code == 0 || code == 3))
HOOK
}

# set_accounts DOCUMENT: accounts and limits of Slurm's accounting, if the cluster has it.
set_accounts() {
    python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin).get("accounting"))' <"$1" || return 0
    limited python3 -B "$here/team/accounting.py" "$1" ||
        fail "$BAD_TEAM" "Slurm did not take the accounts that the settings give" "see the lines above, and deploy again"
}

# follow_team KIND: gives this node, compute or login, its users, now, at each start, and when the document changes.
follow_team() {
    [[ ! -e $TEAM_DOCUMENT ]] || limited python3 -B "$here/team/users.py" "$1" "$TEAM_DOCUMENT" ||
        fail "$BAD_TEAM" "this node cannot have the users of $TEAM_DOCUMENT" "see the lines above"
    start_team_service "$1" "$TEAM_DOCUMENT"
}

# start_team_service KIND DOCUMENT: keeps this node as a document says; an empty one: as the last one that it took says.
start_team_service() {
    local unit=/etc/systemd/system/ultracluster-team.service text action=start
    text=$(team_unit "$@")
    [[ ! -e $unit || $(<"$unit") == "$text" ]] || action=restart
    write_file "$unit" 644 <<<"$text"
    systemctl --quiet daemon-reload
    systemctl --quiet enable "${unit##*/}"
    systemctl --quiet "$action" "${unit##*/}"
}

# team_unit KIND DOCUMENT: prints the unit. A restart forgets the firewall's rules: they are there before anybody can log
# in or has a job, by what the node knows; the file system of the document may still be missing. ParallelCluster
# restores rules of its own in place of all others (aws-parallelcluster-cookbook, restore_tables.sh): ours come after
# that. Services of users (user@.service) start after systemd-user-sessions.service.
team_unit() {
    local programs
    programs=$(cd "$here" && pwd -P)/team
    cat <<UNIT
[Unit]
Description=Users of this node follow those of the head node
After=parallelcluster-iptables.service
Before=slurmd.service slurmctld.service ssh.service sshd.service cron.service crond.service
Before=systemd-user-sessions.service amazon-ssm-agent.service snap.amazon-ssm-agent.amazon-ssm-agent.service

[Service]
ExecStartPre=-/usr/bin/timeout 60 /usr/bin/python3 -B $programs/users.py $1 /dev/null --if-changed
ExecStart=/bin/bash $programs/follow.sh $1 $2
Restart=always
RestartSec=60
CPUWeight=20

[Install]
WantedBy=multi-user.target
UNIT
}
