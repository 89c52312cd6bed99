#!/bin/bash
# What training needs of the operating system. Sourced.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

# set_limits: open files and locked memory of those who submit and run jobs.
#
# Slurm hands jobs the soft limits of the shell that submits. The last file wins (man pam_limits): ParallelCluster's
# 00_all_limits.conf gives 10,000 open files, the EFA installer's 01_efa.conf its own number. 131,072 is the hard limit
# of slurmd (aws-parallelcluster-cookbook, slurmd.service.erb), and large jobs need 65,535 to 131,071
# (https://github.com/aws-neuron/neuronx-nemo-megatron, train_setup.sh; https://github.com/awslabs/HLAT). The stack
# stays as it is: slurmd does not limit it.
set_limits() {
    write_file /etc/security/limits.d/99_ultracluster.conf 644 <<'LIMITS'
* soft nofile 131072
* hard nofile 131072
* soft memlock unlimited
* hard memlock unlimited
LIMITS
}

# allow_real_time: jobs of all users may ask for the policy SCHED_FIFO (run_node.sh). They inherit the limit from slurmd: it
# is none of those that Slurm hands on from the shell that submits
# (https://github.com/SchedMD/slurm, src/common/slurm_rlimits_info.c). ParallelCluster starts slurmd after this script
# (aws-parallelcluster-cookbook, finalize_compute.rb).
allow_real_time() {
    write_file /etc/systemd/system/slurmd.service.d/50-ultracluster.conf 644 <<'UNIT'
[Service]
LimitRTPRIO=99
UNIT
    systemctl --quiet daemon-reload
}

# set_kernel_settings: ports that no outgoing connection may take, and the length of the queue of incoming ones.
#
# The file holds all ports at once, because a setting replaces the one before: 48620 of Neuron's collectives, 41000,
# 44000 and 23456 of the launchers of NeMo, NeuronX Distributed and HLAT, 2022 and 2023 of AWS's BERT scripts
# (https://github.com/aws-neuron/aws-neuron-samples, dp_bert_hf_pretrain). Queue of 65,535: HLAT.
set_kernel_settings() {
    write_file /etc/sysctl.d/99-ultracluster.conf 644 <<'SETTINGS'
net.ipv4.ip_local_reserved_ports = 2022-2023,23456,41000,44000,48620
net.core.somaxconn = 65535
SETTINGS
    sysctl --quiet --load=/etc/sysctl.d/99-ultracluster.conf
}

# protect_files: in directories like /tmp, no program of root writes to a file that a user has put there under a name that it
# meant to create (https://docs.kernel.org/admin-guide/sysctl/fs.html#protected-regular). ParallelCluster 3.16.1 switches
# that off on Ubuntu, before this script (aws-parallelcluster-cookbook, sticky_bits_ubuntu20+.rb, of recipes/config.rb
# alone; gone in 3.16.3: https://github.com/aws/aws-parallelcluster/releases/tag/v3.16.3). 2 is the value of Ubuntu. At a
# start of the node the last file has the last word: ours comes after Chef's 99-chef-fs.protected_regular.conf.
protect_files() {
    [[ $os == ubuntu* ]] || return 0
    write_file /etc/sysctl.d/99-ultracluster-files.conf 644 <<<'fs.protected_regular = 2'
    sysctl --quiet --load=/etc/sysctl.d/99-ultracluster-files.conf
}

# set_host_name: makes the name of the node lead to its primary address. On nodes with several interfaces the first boot
# may leave another one in /etc/hosts, and collectives then wait for each other
# (https://github.com/aws-neuron/aws-neuron-parallelcluster-samples, examples/cluster-configs).
set_host_name() {
    local full
    full=$(uname -n)
    get_metadata local-ipv4
    awk -v address="$metadata" -v name="${full%%.*}" '
        NF == 0 || /^[ \t]*#/ { print; next }
        $1 == address { for (i = 2; i <= NF; i++) known = known || $i == name; print; next }
        {
            rest = ""
            for (i = 2; i <= NF; i++) if ($i != name && index($i, name ".") != 1) rest = rest " " $i
            if (split(rest, kept) == NF - 1) print
            else if (rest != "") print $1 rest
        }
        END { if (!known) print address, name }
    ' /etc/hosts | write_file /etc/hosts 644
}

# check_scratch: node-local storage is there for everybody. ParallelCluster makes it of the NVMe disks of the instance.
check_scratch() {
    if ! mountpoint --quiet "$scratch_dir"; then
        ((disks == 0)) || fail "$NO_SCRATCH" "nothing is mounted on $scratch_dir, but $instance_type has local disks" \
            "see lsblk and systemctl status setup-ephemeral; $(how_to_replace)"
        log "nothing is mounted on $scratch_dir: $instance_type has no local disks"
        return
    fi
    [[ -w $scratch_dir/. ]] || fail "$NO_SCRATCH" "$scratch_dir is read-only" "see dmesg; $(how_to_replace)"
    [[ $(stat --format=%a "$scratch_dir") == 1777 ]] || chmod 1777 "$scratch_dir"
}

# install_python: installs the Python of the system that the training environment starts, and what its compiler needs.
# Amazon Linux comes with an older one.
install_python() {
    local packages
    read -ra packages <<<"$(python_packages "$python")"
    install_from_system "${packages[@]}"
}

# write_profile: what shells know of Neuron's tools, the training environment and the programs of the training jobs. It
# names no release: nodes and shells that are there when another one comes, and jobs that wait, need not be told.
write_profile() {
    write_file /etc/profile.d/ultracluster.sh 644 <<PROFILE
case ":\$PATH:" in
    *:/opt/aws/neuron/bin:*) ;;
    *) export PATH="/opt/aws/neuron/bin:\$PATH" ;;
esac
export ULTRACLUSTER_PYTHON=$mount_dir/ultracluster/python/current-$cluster
export ULTRACLUSTER_JOBS=$mount_dir/ultracluster/jobs/current
PROFILE
}

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
