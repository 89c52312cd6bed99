#!/bin/bash
# The service ultracluster-team: users.py once a minute. Arguments: KIND DOCUMENT.
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
while true; do
    python3 -B "$here/users.py" "$1" "$2" --if-changed
    sleep 60
done
