#!/bin/bash
# What is the same with either package manager: how the headers come, and how packages fail to be installed. Sourced.

# Fingerprint of the key that signs Neuron's repositories and packages, as Bottlerocket, another system of AWS, knows it
# (gpgkey-00FA....asc in https://github.com/bottlerocket-os/bottlerocket-kernel-kit, packages/kmod-6.1-neuron).
readonly NEURON_KEY=00FA2C1079260870A76D2C285749CAD8646D9185

# install_headers: installs the headers of the kernel that runs, from which DKMS builds the driver.
install_headers() {
    [[ -d /lib/modules/$(uname -r)/build ]] || install_packages "$(headers)"
}

no_package() {
    [[ $1 != "$(headers)" ]] || fail "$NO_HEADERS" "no repository has $1, the headers of the kernel that runs" \
        "use an image whose kernel is in the repositories, or put its headers into the image"
    fail "$NO_PACKAGE" "no repository has $1" \
        "choose another neuron_sdk or os in the settings; constructs/ultracluster/domain/neuron.py has the versions"
}

not_installed() {
    fail "$NOT_INSTALLED" "$1 cannot be installed" "see the lines above, and /var/log/apt/term.log or /var/log/dnf.log"
}

# has_room: whether the system's disk has some MiB left. dnf does not always say so when it has not.
has_room() {
    (($(limited df --output=avail --block-size=1M / | tail -n 1) > 10))
}

no_space() {
    fail "$NO_SPACE" "the disk is too full to install $1" "make room, or give nodes a larger root_volume_gib"
}

bad_signature() {
    fail "$BAD_KEY" "Neuron's repository is not signed with the key $NEURON_KEY" \
        "run $PROGRAM again later; if that does not help, ask AWS whether the key has changed"
}
