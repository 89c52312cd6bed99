#!/bin/sh
# Runs a command as the owner of a directory, in a login shell, called by root:
#
#   as_owner.sh DIRECTORY COMMAND
#
# What is in the directory may be a program: it gets no rights that its owner has not got.
set -eu
owner=$(stat --dereference --format=%U -- "$1") || exit 2
case $owner in
    root | UNKNOWN)
        echo "got $1, which belongs to $owner; allowed: the directory of a user's run" >&2
        exit 2
        ;;
esac
# In the session of the agent, which ends a command by SIGKILL to the process group of its shell.
exec runuser --login --session-command "$2" -- "$owner"
