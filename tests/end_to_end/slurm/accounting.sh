#!/bin/bash
# Starts the database and slurmdbd on a head node, before its controller. They are on the machine's own /home, which can
# be copied to another cluster's: as a database that outlives clusters.
set -euo pipefail
data=/home/mysql
install --directory --owner=slurm --group=slurm /run/mysqld "$data" "$data/slurm_acct_db"
# Without tables of the system, and so without users of the database: slurmdbd makes its own database and tables. What it
# needs of the server is what the project's parameter group sets; MariaDB 11.8 needs the last option beside, or slurmdbd
# ends at the first conflict of two writers (SchedMD/slurm, accounting_storage_mysql.c), and the directory of its database:
# where it makes one itself, it ends at MariaDB's error 5027, once.
setpriv --reuid=slurm --regid=slurm --clear-groups mariadbd --no-defaults --datadir="$data" --skip-grant-tables \
    --socket=/run/mysqld/mysqld.sock --skip-networking --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
    --max-allowed-packet=16M --innodb-flush-log-at-trx-commit=0 --innodb-snapshot-isolation=OFF \
    </dev/null &>/var/log/slurm/mariadbd.log &
until grep --quiet 'ready for connections' /var/log/slurm/mariadbd.log; do
    sleep 0.05
done
slurmdbd
until sacctmgr --noheader --parsable2 list cluster >/dev/null 2>&1; do
    sleep 0.05
done
