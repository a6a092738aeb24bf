#!/usr/bin/env bash
# Installs the servers of Debian that the tests use, if we may; else says what is missing.
# Quick when all is there. Tests of a server that is missing are not run. None is started here, nor
# when the machine starts: the tests start servers of their own.
set -euo pipefail

missing=()
compgen -G '/usr/lib/postgresql/*/bin/postgres' > /dev/null || missing+=(postgresql)
PATH="$PATH:/usr/sbin" command -v mariadbd > /dev/null || missing+=(mariadb-server-core mariadb-client-core)
PATH="$PATH:/usr/sbin" command -v sshd > /dev/null || missing+=(openssh-server openssh-client)
command -v dbus-daemon > /dev/null || missing+=(dbus-daemon)
command -v gnome-keyring-daemon > /dev/null || missing+=(gnome-keyring)
command -v chromium-headless-shell > /dev/null || missing+=(chromium-headless-shell)
command -v strace > /dev/null || missing+=(strace)
PATH="$PATH:/usr/sbin" command -v rsyslogd > /dev/null || missing+=(rsyslog rsyslog-openssl)
command -v javac > /dev/null || missing+=(default-jdk-headless)
for server in docker-registry etcd prometheus; do
    command -v "$server" > /dev/null || missing+=("${server/%etcd/etcd-server}")
done
for proxy in nginx haproxy caddy; do
    PATH="$PATH:/usr/sbin" command -v "$proxy" > /dev/null || missing+=("$proxy")
done
compgen -G '/usr/lib/*/odbc/psqlodbcw.so' > /dev/null || missing+=(odbc-postgresql unixodbc)
jar() { [ -e "/usr/share/java/$1" ] || missing+=("${@:2}"); }
jar h2.jar libh2-java
jar hsqldb.jar libhsqldb-java
jar derby.jar libderby-java
jar postgresql.jar libpostgresql-jdbc-java
jar mariadb-java-client.jar libmariadb-java
jar sqlite-jdbc.jar libxerial-sqlite-jdbc-java libxerial-sqlite-jdbc-jni

[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common
        echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
    fi
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    if apt-get update -qq && apt-get install -qq --no-install-recommends "${missing[@]}" > /dev/null
    then
        for unit in openssh-server:ssh docker-registry:docker-registry etcd-server:etcd \
            prometheus:prometheus nginx:nginx haproxy:haproxy caddy:caddy rsyslog:rsyslog; do
            if [[ " ${missing[*]} " = *" ${unit%:*} "* ]] && command -v systemctl > /dev/null; then
                systemctl disable -q "${unit#*:}" 2> /dev/null || true
            fi
        done
        exit 0
    fi
fi
printf 'tests: not installed here: %s (apt-get install %s); their tests are left out\n' \
    "${missing[*]}" "${missing[*]}" >&2
