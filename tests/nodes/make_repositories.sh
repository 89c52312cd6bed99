#!/bin/bash
# Makes package repositories for apt and dnf, signed with a key of our own, and an environment of Python, in a root
# directory that has the tools.
#
# Of /build: debs/HOST (a directory for each package), rpms (*.spec, and files), hosts (names for the certificate).
# Comes out: keys, certificate.pem, sites/HOST, and venv.
set -euo pipefail
cd /build
export GNUPGHOME=/build/gnupg
umask 022

make_keys() {
    local name
    mkdir --mode=700 "$GNUPGHOME"
    mkdir keys
    for name in neuron other; do
        gpg --batch --quiet --passphrase '' --quick-generate-key "$name@example.com" rsa2048 sign never
        gpg --armor --export "$name@example.com" >"keys/$name.asc"
    done
    gpg --with-colons --list-keys neuron@example.com | awk -F : '$1 == "fpr" { print $10; exit }' >keys/fingerprint
}

make_certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext "subjectAltName=$(<hosts)" \
        -addext basicConstraints=critical,CA:FALSE \
        -keyout key.pem -out certificate.pem 2>/dev/null
    cat certificate.pem >>/etc/ssl/certs/ca-certificates.crt
    cat key.pem >>certificate.pem
}

# make_apt_repository HOST SUITE...: the same packages in each suite.
make_apt_repository() {
    local directory suite
    mkdir --parents "sites/$1/pool"
    for directory in "debs/$1"/*; do
        dpkg-deb -Znone --build "$directory" "sites/$1/pool/${directory##*/}.deb" >/dev/null
    done
    cd "sites/$1"
    apt-ftparchive packages pool >Packages
    for suite in "${@:2}"; do
        mkdir --parents "dists/$suite/main/binary-amd64"
        cp Packages "dists/$suite/main/binary-amd64"
        apt-ftparchive -o APT::FTPArchive::Release::Codename="$suite" release "dists/$suite" >Release
        for key in neuron other; do
            gpg --batch --quiet --local-user "$key@example.com" --clearsign --output "dists/$suite/InRelease.$key" Release
        done
        cp "dists/$suite/InRelease.neuron" "dists/$suite/InRelease"
    done
    cd /build
}

# make_dnf_repository DIRECTORY KEY PATTERN: the packages whose files are named so.
make_dnf_repository() {
    mkdir --parents "$1"
    find rpms/built -name "$3" -exec cp {} "$1" \;
    rpmsign --addsign --define "__gpg /usr/bin/gpg" --define "_gpg_name $2@example.com" "$1"/*.rpm 2>/dev/null >&2
    createrepo_c --quiet "$1"
}

make_keys
make_certificate
make_apt_repository apt.repos.neuron.amazonaws.com noble jammy
make_apt_repository archive.test test
for spec in rpms/*.spec; do
    rpmbuild -bb --quiet --define "_topdir /build/rpms" --define "_rpmdir /build/rpms/built" "$spec" 2>/dev/null
done
make_dnf_repository sites/yum.repos.neuron.amazonaws.com neuron 'aws-*.rpm'
for host in apt yum; do
    cp keys/neuron.asc "sites/$host.repos.neuron.amazonaws.com/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB"
done
make_dnf_repository otherwise-signed other 'aws-*.rpm'
make_dnf_repository sites/archive.test/amazon neuron '[!a]*.rpm'
python3 -m venv venv
