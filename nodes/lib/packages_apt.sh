#!/bin/bash
# Packages of Ubuntu. Sourced; lib/packages_dnf.sh has the same functions for Amazon Linux.

# needrestart would restart services in the middle of ParallelCluster's set-up.
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C.UTF-8
readonly REPOSITORY=https://apt.repos.neuron.amazonaws.com

apt_get() {
    limited apt-get --yes --quiet=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 -o Dpkg::Use-Pty=0 "$@"
}

# installed_version NAME: prints the version of a package that is installed, else nothing.
installed_version() {
    { dpkg-query --show --showformat='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null || true; } |
        sed -n 's/^installed //p'
}

# offered_versions NAME...: prints names and versions of these packages in Neuron's repository.
offered_versions() {
    apt-cache madison "$@" | awk -F ' *[|] *' '{ print $1, $2 }'
}

# add_repository KEY_FILE: makes Neuron's repository, by the name that AWS's instructions give it, known to apt.
add_repository() {
    local codename
    # shellcheck source=/dev/null
    codename=$(source /etc/os-release && echo "$VERSION_CODENAME")
    write_file /etc/apt/keyrings/aws-neuron.asc 644 <"$1"
    write_file /etc/apt/sources.list.d/neuron.list 644 \
        <<<"deb [arch=amd64 signed-by=/etc/apt/keyrings/aws-neuron.asc] $REPOSITORY $codename main"
    retry "$NO_NETWORK" "apt-get cannot read Neuron's repository" \
        "see whether this subnet reaches $REPOSITORY, by NAT or proxy" update_from_neuron
}

update_from_neuron() {
    local output
    output=$(read_lists -o Dir::Etc::SourceList=sources.list.d/neuron.list -o Dir::Etc::SourceParts=- \
        -o APT::Get::List-Cleanup=0 2>&1) && return
    if [[ $output =~ NO_PUBKEY|EXPKEYSIG|BADSIG|"is not signed" ]]; then
        echo "$output"
        bad_signature
    fi
    explain "$output" "the index of Neuron's repository"
    return 1
}

# read_lists OPTION...: learns which packages there are; tells of each repository that does not say it.
read_lists() {
    apt_get update -o APT::Update::Error-Mode=any "$@"
}

# explain OUTPUT WHAT: fails for what apt-get says, but returns if it may pass: trouble with the network or a lock. That
# comes first: a package may be unknown for it.
explain() {
    echo "$1"
    ! is_over || return 0
    if [[ $1 =~ "No space left"|"enough free space" ]] || ! has_room; then no_space "$2"; fi
    [[ ! $1 =~ "Failed to fetch"|"Unable to fetch"|"Could not get lock"|"Unable to lock" ]] || return 0
    [[ ! $1 =~ "Unable to locate"|"no installation candidate"|"was not found"|"unmet dependencies" ]] || no_package "$2"
    not_installed "$2"
}

# install_packages PACKAGE...: installs packages. NAME=VERSION asks for a version.
install_packages() {
    retry "$NO_NETWORK" "apt-get cannot install $*" \
        "see above whether this subnet does not reach a repository, or what holds a lock" try_install "$@"
}

# try_install PACKAGE...: installs, after what a killed run left, with new lists: what old ones name may be gone. A list
# that cannot be read does not matter if the packages come from elsewhere.
try_install() {
    local output
    output=$({
        [[ -z $(dpkg --audit)$(ls /var/lib/dpkg/updates) ]] || limited dpkg --configure --pending || true
        read_lists || true
        apt_get install --allow-downgrades --allow-change-held-packages "$@"
    } 2>&1) && return
    explain "$output" "$*"
    return 1
}

# exactly NAME VERSION: prints how apt asks for a version of a package.
exactly() {
    echo "$1=$2"
}

# install_from_system NAME...: installs packages of Ubuntu, if one is missing.
install_from_system() {
    local name
    for name in "$@"; do
        if [[ -z $(installed_version "$name") ]]; then
            install_packages "$@"
            return
        fi
    done
}

# python_packages VERSION: prints the packages that the training environment needs
# (https://awsdocs-neuron.readthedocs-hosted.com/en/v2.28.1/setup/pytorch/manual.html).
python_packages() {
    echo "python$1-venv" g++
}

# headers: prints the package with the headers of the kernel that runs.
headers() {
    echo "linux-headers-$(uname -r)"
}

# hold NAME...: keeps packages, and the kernel, from being upgraded.
hold() {
    local held name names
    held=$(dpkg --get-selections | awk '$2 == "hold" { print $1 }')
    mapfile -t names < <(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' \
        'linux-aws*' 'linux-image-aws*' 'linux-headers-aws*' 2>/dev/null | sed -n 's/^installed //p' || true)
    for name in "$@" "${names[@]}"; do
        grep --quiet --line-regexp --fixed-strings "$name" <<<"$held" ||
            retry "$LOCKED" "apt-mark cannot hold $name" "see above what holds the lock" limited apt-mark hold "$name"
    done
}
