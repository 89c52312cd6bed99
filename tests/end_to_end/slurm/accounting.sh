#!/bin/bash
# Starts the database and slurmdbd on a head node, before its controller, or again. They are on the machine's own /home, which can
# be copied to another cluster's: as a database that outlives clusters.
set -euo pipefail
data=/home/mysql
# With slurmdbd's database, which is a directory: where it makes one itself, it ends at MariaDB's error 5027, once.
install --directory --owner=slurm --group=slurm /run/mysqld "$data" "$data/slurm_acct_db"
# run_server OPTION...: what slurmdbd needs of it is what the project's parameter group sets; MariaDB 11.8 needs the last
# option beside, or slurmdbd ends at the first conflict of two writers (SchedMD/slurm, accounting_storage_mysql.c).
run_server() {
    setpriv --reuid=slurm --regid=slurm --clear-groups mariadbd --no-defaults --datadir="$data" \
        --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 --max-allowed-packet=16M \
        --innodb-flush-log-at-trx-commit=2 --innodb-snapshot-isolation=OFF "$@" &>>/var/log/slurm/mariadbd.log
}
if [[ ! -e $data/mysql ]]; then # slurmdbd's procedures need the tables of the system
    { printf '%s;\n' 'CREATE DATABASE mysql' 'USE mysql' && cat /usr/share/mariadb/mariadb_system_tables.sql; } |
        run_server --bootstrap
fi
rm --force /var/log/slurm/mariadbd.log # of an earlier start
# Nobody is asked for a password.
run_server --skip-grant-tables --socket=/run/mysqld/mysqld.sock --skip-networking </dev/null &>/dev/null &
until grep --quiet 'ready for connections' /var/log/slurm/mariadbd.log; do
    sleep 0.05
done
slurmdbd
until sacctmgr --noheader --parsable2 list cluster >/dev/null 2>&1; do
    sleep 0.05
done
