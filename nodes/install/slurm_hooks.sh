#!/bin/bash
# Health checks around each job. Sourced by the head node, whose /opt/slurm the compute nodes mount.

# add_slurm_hooks: ParallelCluster runs what is in these directories before and after each job
# (https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-prolog-epilog-v3.html).
add_slurm_hooks() {
    local when
    for when in prolog epilog; do
        write_file "/opt/slurm/etc/scripts/$when.d/50_ultracluster" 755 <<HOOK
#!/bin/bash
check=/opt/ultracluster/current/health/check.sh
[[ ! -f \$check ]] || exec bash "\$check" $when
HOOK
    done
}
