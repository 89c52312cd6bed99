#!/bin/bash
# Packages of Amazon Linux 2023. Sourced; lib/packages_apt.sh has the same functions for Ubuntu.

export LC_ALL=C.UTF-8
readonly REPOSITORY=https://yum.repos.neuron.amazonaws.com

# dnf_ ARGUMENT...: runs dnf, which fails where it could pass over a repository or wait for a lock: retry does that.
dnf_() {
    limited dnf --assumeyes --quiet --setopt=timeout=30 --setopt=retries=2 --setopt=skip_if_unavailable=False \
        --setopt=exit_on_lock=True "$@"
}

# installed_version NAME: prints the version of a package that is installed, else nothing.
installed_version() {
    local version
    if version=$(rpm --query --queryformat '%{VERSION}-%{RELEASE}' "$1"); then
        echo "$version"
    fi
}

# offered_versions NAME...: prints names and versions of these packages in Neuron's repository.
offered_versions() {
    dnf_ repoquery --cacheonly --disablerepo='*' --enablerepo=neuron --queryformat '%{name} %{version}-%{release}' "$@"
}

# add_repository KEY_FILE: makes Neuron's repository, by the name that AWS's instructions give it, known to dnf.
#
# It is not enabled, so `dnf upgrade` leaves what comes from it alone.
add_repository() {
    write_file /etc/pki/rpm-gpg/RPM-GPG-KEY-aws-neuron 644 <"$1"
    write_file /etc/yum.repos.d/neuron.repo 644 <<FILE
[neuron]
name=AWS Neuron
baseurl=$REPOSITORY
enabled=0
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-aws-neuron
FILE
    retry "$NO_NETWORK" "dnf cannot read Neuron's repository" \
        "see whether this subnet reaches $REPOSITORY, by NAT or proxy" \
        dnf_ makecache --refresh --disablerepo='*' --enablerepo=neuron
}

# explain OUTPUT WHAT: fails for what dnf says, but returns if it may pass: trouble with the network or a lock.
explain() {
    echo "$1"
    ! is_over || return 0
    if [[ $1 =~ "No space left"|"more space " ]] || ! has_room; then no_space "$2"; fi
    [[ ! $1 =~ "GPG check FAILED" ]] || bad_signature
    [[ ! $1 =~ "Failed to download"|"Curl error"|"Cannot download"|"already locked by" ]] || return 0
    [[ ! $1 =~ "Unable to find a match"|"nothing provides" ]] || no_package "$2"
    not_installed "$2"
}

# install_packages PACKAGE...: installs packages. NAME-VERSION asks for a version.
install_packages() {
    retry "$NO_NETWORK" "dnf cannot install $*" \
        "see above whether this subnet does not reach a repository, or what holds a lock" try_install "$@"
}

# try_install PACKAGE...: installs from all repositories, with Neuron's if it has been added, and what they have now.
try_install() {
    local neuron=() output
    [[ ! -f /etc/yum.repos.d/neuron.repo ]] || neuron=(--enablerepo=neuron)
    output=$(dnf_ install --refresh "${neuron[@]}" "$@" 2>&1) && return
    explain "$output" "$*"
    return 1
}

# exactly NAME VERSION: prints how dnf asks for a version of a package.
exactly() {
    echo "$1-$2"
}

# install_from_system NAME...: installs packages of Amazon Linux, if one is missing.
install_from_system() {
    rpm --query --quiet "$@" || install_packages "$@"
}

# python_packages VERSION: prints the packages that the training environment needs
# (https://awsdocs-neuron.readthedocs-hosted.com/en/v2.28.1/setup/pytorch/manual.html).
python_packages() {
    echo "python$1" gcc-c++ libxcrypt-compat
}

# headers: prints how dnf asks for the headers of the kernel that runs.
headers() {
    echo "kernel-devel-uname-r = $(uname -r)"
}

# hold NAME...: nothing to do. Neuron's repository is not enabled, and Amazon Linux has no new kernel for a node
# before somebody names a newer release (https://docs.aws.amazon.com/linux/al2023/ug/deterministic-upgrades.html).
hold() {
    :
}
