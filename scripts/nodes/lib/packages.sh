#!/bin/bash
# How packages fail to be installed, with either package manager. Sourced.

# Fingerprint of the key that signs Neuron's repositories and packages, as Bottlerocket, another system of AWS, knows it
# (gpgkey-00FA....asc in https://github.com/bottlerocket-os/bottlerocket-kernel-kit, packages/kmod-6.1-neuron).
readonly NEURON_KEY=00FA2C1079260870A76D2C285749CAD8646D9185

no_headers() {
    fail "$NO_HEADERS" "no repository has $1, the headers of the kernel that runs" \
        "use an image whose kernel is in the repositories, or put its headers into the image"
}

no_package() {
    fail "$NO_PACKAGE" "no repository has $1" \
        "choose another neuron_sdk or os in the settings; constructs/ultracluster/domain/neuron.py has the versions"
}

not_installed() {
    fail "$NOT_INSTALLED" "$1 cannot be installed" "see the lines above, and /var/log/apt/term.log or /var/log/dnf.log"
}

bad_signature() {
    fail "$BAD_KEY" "Neuron's repository is not signed with the key $NEURON_KEY" \
        "run $PROGRAM again later; if that does not help, ask AWS whether the key has changed"
}
