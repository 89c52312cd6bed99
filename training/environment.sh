#!/bin/bash
# The environment of a training program on Trainium nodes, whichever program it is. A step of a job sources it on each
# of its nodes, then starts the workers (docs/guides/own-program.md has an example):
#
#   source /fsx/ultracluster/jobs/current/environment.sh
#
# It takes $ULTRACLUSTER_PYTHON, the environment directory, from the shell that submitted, or else from the node
# (sbatch --export=NONE). What else is set already stays; what one program alone needs, it sets before, as
# program.toml does. Not here, on purpose: XLA_USE_BF16 and XLA_DOWNCAST_BF16
# (torch-xla 2.6 deprecated them), BUCKET_CAP_MB (its new name is ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB),
# NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS (gone with Neuron 2.32), and FI_EFA_FORK_SAFE, which kernels before 5.15
# need: no supported operating system has one.
: "${SLURM_JOB_NODELIST:?environment.sh: this is for steps of Slurm jobs}"
if [[ -z ${ULTRACLUSTER_PYTHON:-} && -f /etc/profile.d/ultracluster.sh ]]; then
    # shellcheck source=/dev/null
    source /etc/profile.d/ultracluster.sh
fi
: "${ULTRACLUSTER_PYTHON:?environment.sh: log in again, or set it to the directory of the Python environment}"

# node_fact NAME: prints what the node was told, empty where it was told nothing.
node_fact() {
    sed -n "s/^$1=//p" /var/lib/ultracluster/node.env 2>/dev/null || true
}

# first_node_address: prints the IPv4 address of the job's first node. The runtime resolves no names of more than 63
# characters (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html).
first_node_address() {
    local first address
    read -r first < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
    read -r address _ < <(getent ahostsv4 "$first") && echo "$address"
}

# default_interface: prints the interface of the default route. Nodes have up to 16, whose names differ by system.
default_interface() {
    ip -4 -oneline route show default | sed -nE '1s/.* dev (\S+).*/\1/p'
}

# find_environment: sets `release` to the one of $ULTRACLUSTER_PYTHON; whether it is there, and for this node: the packages
# of one release are not tested with driver and runtime of another. One of `env create --alone` has another kind of name.
find_environment() {
    release=$(cd -P "$ULTRACLUSTER_PYTHON" 2>/dev/null && pwd) || return
    release=${release##*/}
    release=${release%.build-*}
    [[ -z $sdk || $release != *-pytorch* || $release == "$sdk"-* ]]
}

# environment_fact NAME: prints what the head node says of the environment that it builds.
environment_fact() {
    sed -n "s/^$1=//p" "$ULTRACLUSTER_PYTHON.state" 2>/dev/null || true
}

# --- One Python environment from now on, even if the link moves on. The head node builds it beside the cluster's creation
# and updates (nodes/software.sh): a job that is there before waits for it, up to $ULTRACLUSTER_WAIT seconds.
sdk=$(node_fact sdk)
waited=0
until find_environment; do
    if [[ $(environment_fact state) != building ]] || ((waited >= ${ULTRACLUSTER_WAIT:-1200})); then
        if [[ -z $release ]]; then
            echo "environment.sh: there is no $ULTRACLUSTER_PYTHON on $(uname -n): see whether the head node has made it"
        else
            echo "environment.sh: $(uname -n) has Neuron SDK $sdk, the Python environment is $release: submit again from a" \
                "new login shell; while an update is in progress, once it has replaced the nodes"
        fi
        [[ ! -f $ULTRACLUSTER_PYTHON.state ]] ||
            echo "environment.sh: $(environment_fact environment) is $(environment_fact state) since" \
                "$(environment_fact since) $(environment_fact reason)"
        return 1
    fi
    ((waited)) || echo "environment.sh: waiting for $ULTRACLUSTER_PYTHON, which the head node is building"
    sleep 10
    waited=$((waited + 10))
done
ULTRACLUSTER_PYTHON=$(cd -P "$ULTRACLUSTER_PYTHON" && pwd)
export ULTRACLUSTER_PYTHON

# --- Network: EFA with access to the memory of devices
# (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/setup-trn1-multi-node-execution.html).
export FI_PROVIDER=${FI_PROVIDER:-efa}
export FI_EFA_USE_DEVICE_RDMA=${FI_EFA_USE_DEVICE_RDMA:-1}

# --- Where nodes meet: ports that nodes/install/system.sh keeps free; 48620 is the collectives' own
# (https://github.com/aws-neuron/aws-neuron-samples, dp_bert_hf_pretrain). The interfaces: of Neuron's collectives
# (https://github.com/aws-neuron/neuronx-nemo-megatron, train_setup.sh), and of gloo
# (https://docs.pytorch.org/docs/stable/distributed.html).
MASTER_ADDR=$(first_node_address) || {
    echo "environment.sh: the first of the nodes $SLURM_JOB_NODELIST has no address: see /etc/hosts and DNS"
    return 1
}
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-41000}
export NEURON_RT_ROOT_COMM_ID=$MASTER_ADDR:48620
CCOM_SOCKET_IFNAME=${CCOM_SOCKET_IFNAME:-$(default_interface)}
export CCOM_SOCKET_IFNAME
export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-$CCOM_SOCKET_IFNAME}

# --- Runtime: seconds that an execution may take. 30, the default, is too short where one node waits for another
# (600 in AWS's scripts for BERT).
export NEURON_RT_EXEC_TIMEOUT=${NEURON_RT_EXEC_TIMEOUT:-600}

# --- Compiler. It is found on PATH. A failure is in the cache, too, unless it is tried again
# (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-features/neuron-caching.html).
export PATH=$ULTRACLUSTER_PYTHON/bin:/opt/aws/neuron/bin:$PATH
export NEURON_CC_FLAGS=${NEURON_CC_FLAGS:---retry_failed_compilation}
# A cache that several nodes write at once can break where file locks are limited, as on Lustre
# (https://awsdocs-neuron.readthedocs-hosted.com, training-troubleshooting). So each node has its own on local disks, of
# one user and one release; compile_cache.sh carries what is compiled from and to the one on the shared file system.
scratch=$(node_fact scratch_dir)
export NEURON_COMPILE_CACHE_URL=${NEURON_COMPILE_CACHE_URL:-${scratch:-/scratch}/compile-cache-$UID/$release}
shared=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export ULTRACLUSTER_COMPILE_CACHE=${ULTRACLUSTER_COMPILE_CACHE:-$shared/compile-cache/$release}
unset release sdk scratch shared waited

# --- Limits: as many open files as slurmd allows, 131,072, where Slurm hands on the submitter's soft limit; and the
# arenas of glibc, which take host memory by the number of threads (https://github.com/awslabs/HLAT: 64).
ulimit -S -n "$(ulimit -H -n)"
export MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-64}
