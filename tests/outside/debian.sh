#!/usr/bin/env bash
# Installs the database servers of Debian that the tests use, if we may; else says what is missing.
# Quick when all is there. Tests of a server that is missing are not run.
set -euo pipefail

missing=()
compgen -G '/usr/lib/postgresql/*/bin/postgres' > /dev/null || missing+=(postgresql)
PATH="$PATH:/usr/sbin" command -v mariadbd > /dev/null || missing+=(mariadb-server-core mariadb-client-core)

[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common  # the tests start servers of their own
        echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
    fi
    apt-get update -qq && apt-get install -qq --no-install-recommends "${missing[@]}" > /dev/null \
        && exit 0
fi
printf 'tests: not installed here: %s (apt-get install %s); their tests are left out\n' \
    "${missing[*]}" "${missing[*]}" >&2
