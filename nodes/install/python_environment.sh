#!/bin/bash
# The Python environment of the training jobs, on the file system that all nodes share. Sourced by the head node.
#
# An environment is made once, in a directory of its own, and never changed: jobs run from it. A link names it by release
# and system; other requirements make another one, and the link moves to it. A link of each cluster leads to that of its
# release: shells and new jobs start from there.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

# GiB that an environment takes, about 7 for PyTorch and what it brings, 3 for the compiler, and as much to spare.
readonly ENVIRONMENT_GIB=20

# make_python_environment: makes the environment named $environment, of $sdk, $pytorch and the other versions, unless it
# is there, and lets the link $current of the cluster lead to it.
make_python_environment() {
    local link=${current%/*}/$environment wanted
    wanted=$({ echo "$python $pytorch $torch_xla $torch_neuronx $compiler $libneuronxla"
        cat "$here/requirements-training.txt" "$here/requirements-pytorch-$pytorch.txt"; } | sha256sum)
    if ! is_complete "$link" "$wanted"; then
        tell_state building
        lock_environments "${link%/*}/.lock"
        # Another cluster may have made it in the meantime, or another run of this one may have failed.
        tell_state building
        is_complete "$link" "$wanted" || build_environment "$link" "$wanted"
    fi
    set_link "${link##*/}" "$current"
    log "the Python environment is $link"
    tell_old_environments "$link"
}

is_complete() {
    [[ -f $1/.complete && $(<"$1/.complete") == "$2" ]]
}

# lock_environments FILE: waits for the lock, which holds until this script and all that it started have ended.
#
# flock: ParallelCluster mounts Lustre with -o flock, which makes it hold between nodes, and the lock of a process or
# node that dies is released by the kernel or the server. Nothing has to guess from clocks whether a holder still lives.
lock_environments() {
    local lock status=0
    exec {lock}>>"$1"
    limited flock "$lock" || status=$?
    case $status in
        0) echo "$(uname -n), process $$, since $(date --utc +%FT%TZ)" >"$1" ;;
        124) fail "$LOCKED" "$(<"$1") holds $1" "wait until it is done, or end it, then run $PROGRAM again" ;;
        *) fail "$LOCKED" "$1 cannot be locked" "see whether the file system is mounted with -o flock" ;;
    esac
}

# build_environment LINK WANTED: makes an environment and lets the link lead to it.
build_environment() {
    local link=$1 directory
    remove_unfinished "$link"
    check_space "${link%/*}" "$ENVIRONMENT_GIB"
    install_python
    directory=$(mktemp --directory "$link.build-XXXXXX")
    chmod 755 "$directory"
    "python$python" -m venv "$directory" ||
        fail "$BAD_PYTHON" "python$python makes no environment" "see the lines above"
    log "installing packages into $directory"
    download "$directory/bin/python" -m pip install --quiet --no-input --no-cache-dir --timeout 30 --retries 2 \
        --disable-pip-version-check --require-hashes --no-deps --requirement "$here/requirements-uv.txt"
    # First what training needs and PyTorch, of known content; then Neuron's packages and what they need, which have the last
    # word on versions. AWS's list of those has no hashes. Neuron's index comes first: a package that it has comes from
    # nowhere else, whatever version somebody gives the public index under that name.
    uv_install "$directory" --require-hashes --no-deps --requirement "$here/requirements-training.txt" \
        --requirement "$here/requirements-pytorch-$pytorch.txt"
    uv_install "$directory" --index https://pip.repos.neuron.amazonaws.com "torch==$pytorch" \
        "torch-xla==$torch_xla" "torch-neuronx==$torch_neuronx" "neuronx-cc==$compiler" "libneuronxla==$libneuronxla"
    check_environment "$directory"
    echo "$2" >"$directory/.complete"
    set_link "${directory##*/}" "$link"
    rm --recursive --force "${link%/*}/.cache"
}

# remove_unfinished LINK: removes what killed runs left. Nobody uses it: no link ever led to it.
remove_unfinished() {
    local directory
    for directory in "$1".build-*; do
        if [[ -d $directory && ! -f $directory/.complete ]]; then
            log "removing $directory, which was never finished"
            rm --recursive "$directory"
        fi
    done
}

# uv_install ENVIRONMENT ARGUMENT...: installs packages. What was downloaded stays in a cache on the same file system, for
# the next attempt or the next run; the environment gets links to it, so it takes no space twice. Unlike with pip, a
# package comes from the first index that has one of its name, the default one last
# (https://docs.astral.sh/uv/concepts/indexes/#searching-across-multiple-indexes). It is compiled now: users cannot write
# here.
uv_install() {
    download env UV_CACHE_DIR="${1%/*}/.cache" UV_HTTP_TIMEOUT=30 UV_PYTHON_DOWNLOADS=never "$1/bin/uv" pip install \
        --quiet --python "$1" --compile-bytecode --index-strategy first-index "${@:2}"
}

# download COMMAND...: runs what downloads packages, until the mirrors give them.
download() {
    retry "$NO_NETWORK" "the Python packages cannot be downloaded" \
        "see whether this subnet reaches the package indexes, by NAT or proxy" try_download "$@"
}

try_download() {
    local output
    output=$(limited "$@" 2>&1) && return
    echo "$output"
    ! is_over || return 1
    if [[ $output == *"No space left"* ]]; then
        remove_unfinished "${current%/*}/$environment"
        rm --recursive --force "${current%/*}/.cache"
        fail "$NO_SPACE" "${current%/*} or /tmp is full" "make room, then run $PROGRAM again"
    fi
    # pip has other words than uv, and quietly takes a page that it cannot read for none, and a cut body for another one.
    [[ ! $output =~ "Hash mismatch"|"No solution found" &&
        $output =~ "Failed to fetch"|"Failed to download"|[Cc]"onnection"|"timed out"|"No matching dist"|"MATCH THE HASHES" ]] ||
        fail "$BAD_PYTHON" "the Python packages cannot be installed" "see the lines above; then fix the versions or the hashes"
    return 1
}

# check_environment DIRECTORY: the versions are right, and what needs no Neuron device can be imported.
check_environment() {
    "$1/bin/python" -m pip freeze --quiet >"$1/installed.txt"
    "$1/bin/python" -m pip check || log "pip finds these packages at odds; Neuron's own requirements have been met"
    "$1/bin/python" "$here/lib/check_environment.py" "torch-neuronx==$torch_neuronx" "neuronx-cc==$compiler" \
        "libneuronxla==$libneuronxla" || fail "$BAD_PYTHON" "the environment in $1 does not work" "see the lines above"
}

# tell_old_environments LINK: names environments that no new job starts from.
tell_old_environments() {
    local current directory
    current=$(readlink --canonicalize "$1")
    for directory in "${1%/*}"/*.build-*; do
        [[ $directory == "$current" ]] ||
            log "$directory is another environment; once no job uses it: sudo rm -r $directory"
    done
}
