#!/bin/bash
# Carries compiled graphs between the cache on a node's local disks, where Neuron reads and writes, and the one on the
# file system that all nodes share. Both are named by environment.sh, which must be sourced before.
#
#   compile_cache.sh fetch            shared to local, when a job starts, on each node
#   compile_cache.sh publish [NAME]   local to shared, when something was compiled; all of it gets a name
#   compile_cache.sh has NAME         exit code 0: all that got the name is in the local cache
#
# A cache has a directory for each graph, neuronxcc-VERSION/MODULE_HASH, with model.neff, and model.done once it is
# complete (https://huggingface.co/aws-neuron/optimum-neuron-cache). Nobody ever sees half of one in the shared cache: it
# is copied under another name, and renamed. Of several nodes that publish the same graph, the first wins.
set -euo pipefail

readonly LOCAL=$NEURON_COMPILE_CACHE_URL SHARED=$ULTRACLUSTER_COMPILE_CACHE

is_complete() {
    [[ -f $1/model.done && -s $1/model.neff ]]
}

# copy_module FROM TO: copies a graph's directory, unless it is there. Returns 1 if another copy came first.
copy_module() {
    temporary=$(mktemp --directory "${2%/*}/.${2##*/}.XXXXXX")
    cp --recursive "$1/." "$temporary"
    rm --force "$temporary"/*.lock
    chmod 755 "$temporary"
    # What is renamed must outlive a node that is lost the moment after.
    sync "$temporary"/* "$temporary"
    # A directory cannot take the place of one that is not empty (man 2 rename).
    mv --no-target-directory "$temporary" "$2" 2>/dev/null || is_complete "$2"
    [[ ! -d $temporary ]] || rm --recursive "$temporary"
}

# copy_modules FROM TO: copies what is complete and missing, and sets `modules` to all that FROM has.
copy_modules() {
    local module target copied=0 all=0
    modules=()
    for module in "$1"/neuronxcc-*/MODULE_*; do
        is_complete "$module" || continue
        target=$2${module#"$1"}
        all=$((all + 1))
        modules+=("${module#"$1/"}")
        is_complete "$target" && continue
        make_directory "${target%/*}"
        copy_module "$module" "$target"
        copied=$((copied + 1))
    done
    # One node speaks for all: there may be thousands.
    ((${SLURM_NODEID:-0})) || echo "compile_cache.sh: $action: $copied of $all graphs copied to $2, the others were there"
}

# make_directory PATH: makes a directory that all users may add to, and its parent, which may exist already.
make_directory() {
    local directory error
    for directory in "${1%/*}" "$1"; do
        mkdir --parents "${directory%/*}"
        error=$(mkdir --mode=1777 "$directory" 2>&1) || [[ -d $directory ]] || {
            echo "compile_cache.sh: $error"
            return 1
        }
    done
}

# name_modules NAME: keeps a list of what was copied. The first node speaks for all, which compile the same.
name_modules() {
    local new
    ((${SLURM_NODEID:-0} == 0 && ${#modules[@]})) || return 0
    make_directory "$SHARED/complete"
    new=$(mktemp "$SHARED/complete/.$1.XXXXXX")
    printf '%s\n' "${modules[@]}" >"$new"
    chmod 644 "$new"
    mv --no-target-directory "$new" "$SHARED/complete/$1" 2>/dev/null || rm --force "$new" # of another user, who was first
}

# has_modules NAME: whether the local cache has all that got a name.
has_modules() {
    local module
    [[ -s $SHARED/complete/$1 ]] || return 1
    while read -r module; do
        is_complete "$LOCAL/$module" || return 1
    done <"$SHARED/complete/$1"
}

# remove_unfinished_modules: removes what a killed run left in the local cache, where a job has the node for itself.
remove_unfinished_modules() {
    local module
    for module in "$LOCAL"/neuronxcc-*/MODULE_*; do
        [[ ! -d $module ]] || is_complete "$module" || rm --recursive "$module"
    done
}

# remove_old_copies: removes what killed runs left in the shared cache, after a day.
remove_old_copies() {
    [[ ! -d $SHARED ]] || find "$SHARED" -mindepth 2 -maxdepth 2 -name '.MODULE_*' -user "$UID" -mmin +1440 \
        -exec rm --recursive {} +
}

action=${1:-}
if [[ $LOCAL != /* ]]; then
    [[ $action != has ]] || exit 1
    ((${SLURM_NODEID:-0})) || echo "compile_cache.sh: nothing to carry: all nodes share $LOCAL"
    exit 0
fi
# timeout sends SIGTERM to this shell and then to its whole process group, which would end the removal, too.
trap 'exit 143' TERM
trap 'trap "" TERM; [[ ! -d ${temporary:-} ]] || rm --recursive "$temporary"' EXIT
case $action in
    fetch)
        remove_unfinished_modules
        copy_modules "$SHARED" "$LOCAL"
        ;;
    publish)
        remove_old_copies
        copy_modules "$LOCAL" "$SHARED"
        [[ -z ${2:-} ]] || name_modules "$2"
        ;;
    has)
        has_modules "$2" || exit 1
        ;;
    *)
        echo "compile_cache.sh: got '$action'; allowed: fetch, publish, has"
        exit 2
        ;;
esac
