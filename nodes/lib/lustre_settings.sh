#!/bin/bash
# Sets what a Lustre client forgets when it restarts. Argument: where the file system is mounted.
#
# Sources: https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance-tips.html; max_dirty_mb as AWS's training
# scripts set it (https://github.com/aws-neuron/neuronx-nemo-megatron, train_setup.sh).
set -euo pipefail
exec 2>&1

mount_dir=${1:?where the file system is mounted}
cpus=$(nproc)
memory_gib=$(awk '$1 == "MemTotal:" { print int($2 / 1024 ^ 2) }' /proc/meminfo)

settings=('osc.*.max_dirty_mb=64' 'llite.*.statahead_max=512' 'llite.*.statahead_agl=1' 'llite.*.statahead_xattr=1')
if ((memory_gib > 64)); then
    settings+=('ldlm.namespaces.*.lru_max_age=600000' "ldlm.namespaces.*.lru_size=$((100 * cpus))")
fi
if ((cpus > 64)); then
    settings+=('osc.*OST*.max_rpcs_in_flight=32' 'mdc.*.max_rpcs_in_flight=64' 'mdc.*.max_mod_rpcs_in_flight=50')
fi

ls "$mount_dir/" >/dev/null # it may be mounted at the first access only
for setting in "${settings[@]}"; do
    lctl set_param "$setting" || echo "lustre_settings.sh: this client does not know $setting; it runs without"
done
