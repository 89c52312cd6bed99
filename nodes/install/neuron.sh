#!/bin/bash
# Neuron's driver, runtime, collectives and tools, at the versions asked for. Sourced.
#
# Steps: https://awsdocs-neuron.readthedocs-hosted.com/en/v2.28.1/setup/pytorch/manual.html, with the key checked and
# bound to its repository, and exact versions: those of one release are tested with each other only.
# shellcheck disable=SC2154 # the entry scripts have these variables from their arguments

readonly NEURON_PACKAGES=(aws-neuronx-dkms aws-neuronx-runtime-lib aws-neuronx-collectives aws-neuronx-tools)

# is_version WANTED FOUND: whether a package's version is the wanted one. Repositories add a build to most of them:
# 2.30.51.0-faafe26f0 of 2.30.51.0.
is_version() {
    [[ $2 == "$1" || $2 == "$1"[-_]* ]]
}

# check_kernel: compares the kernel that runs with what is known of the release: fails from $broken_kernel on, warns where it
# is none of $kernels. It may work: AWS says only what it tested.
check_kernel() {
    local running first
    running=$(uname -r)
    first=$(cut --delimiter=. --fields=1-2 <<<"$running")
    [[ ",$kernels," != *",$first,"* ]] || return 0
    if [[ -n $broken_kernel ]] && printf '%s\n' "$broken_kernel" "$first" | sort --version-sort --check=quiet; then
        fail "$BAD_DRIVER" "the kernel is $running, and the driver $driver of Neuron SDK $sdk fails from $broken_kernel on" \
            "choose a newer neuron_sdk, or an image with a kernel that it was tested with: ${kernels//,/, } (docs/explanation/nodes.md)"
    fi
    log "warning: the kernel is $running, and Neuron SDK $sdk was tested with ${kernels//,/ and } (docs/explanation/nodes.md)"
}

# install_neuron: installs the versions in $driver, $runtime, $collectives and $tools, if the kernel is not known to be
# none for that driver.
install_neuron() {
    local -A wanted=([aws-neuronx-dkms]=$driver [aws-neuronx-runtime-lib]=$runtime
        [aws-neuronx-collectives]=$collectives [aws-neuronx-tools]=$tools)
    local name listing offered exact=() missing=()
    check_kernel
    for name in "${NEURON_PACKAGES[@]}"; do
        is_version "${wanted[$name]}" "$(installed_version "$name")" || missing+=("$name")
    done
    if ((${#missing[@]})); then
        check_space / 4
        install_headers
        add_neuron_repository
        listing=$(offered_versions "${missing[@]}")
        mapfile -t offered <<<"$listing"
        for name in "${missing[@]}"; do
            find_version "$name" "${wanted[$name]}"
            exact+=("$(exactly "$name" "$version")")
        done
        install_packages "${exact[@]}"
        log "installed ${exact[*]}"
    fi
    hold "${NEURON_PACKAGES[@]}"
}

add_neuron_repository() {
    local directory fingerprint
    directory=$(mktemp --directory)
    retry "$NO_NETWORK" "the key of Neuron's repository cannot be read" \
        "see whether this subnet reaches $REPOSITORY, by NAT or proxy" \
        limited curl --silent --show-error --fail --max-time 60 --output "$directory/key" \
        "$REPOSITORY/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB"
    fingerprint=$(gpg --homedir "$directory" --with-colons --show-keys "$directory/key" 2>/dev/null |
        awk -F : '$1 == "pub" { key = 1 } $1 == "fpr" && key { print $10; key = 0 }') || true
    [[ $fingerprint == "$NEURON_KEY" ]] ||
        fail "$BAD_KEY" "the key of Neuron's repository has the fingerprint '${fingerprint//$'\n'/ }', not $NEURON_KEY" \
            "ask AWS whether the key has changed; until then trust no package of it"
    add_repository "$directory/key"
    rm -r "$directory"
}

# find_version NAME WANTED: sets `version` to what the repository, in `offered`, has of a version.
find_version() {
    local package others=()
    for package in "${offered[@]}"; do
        [[ ${package% *} == "$1" ]] || continue
        version=${package#* }
        ! is_version "$2" "$version" || return 0
        others+=("$version")
    done
    no_package "$1 $2 (there are: ${others[*]:-none})"
}

# load_driver: loads the driver of version $driver, in place of another one.
load_driver() {
    local loaded
    loaded=$(loaded_driver)
    [[ $loaded != "$driver" ]] || return 0
    build_driver
    [[ -z $loaded ]] || limited modprobe --remove neuron ||
        fail "$BAD_DRIVER" "the driver $loaded is in use and cannot make room for $driver" \
            "end what uses it (fuser --verbose /dev/neuron*), then run $PROGRAM again"
    limited modprobe neuron || fail "$BAD_DRIVER" "the driver $driver cannot be loaded" "see dmesg"
    log "loaded the driver $(loaded_driver)"
}

loaded_driver() {
    cat /sys/module/neuron/version 2>/dev/null || true
}

# build_driver: builds the driver for the kernel that runs, unless it is there. The package skips that in silence where
# headers are missing, and a node may have started with another kernel than its image was made with
# (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html).
build_driver() {
    ! is_built || return 0
    install_headers
    limited dkms autoinstall --kernelver "$(uname -r)" || true
    is_built ||
        fail "$BAD_DRIVER" "there is no driver $driver for the kernel $(uname -r)" \
            "see dkms status and /var/lib/dkms/*/*/build/make.log, and the kernels of this release in docs/explanation/nodes.md"
}

is_built() {
    [[ $(modinfo --field=version neuron 2>/dev/null) == "$driver" ]]
}
