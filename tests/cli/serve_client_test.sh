#!/usr/bin/env bash
# Runs serve_sdk_test.py by the Python that has the client library, which is installed first where that is possible.
#   serve_client_test.sh SOURCE KVASIR MODEL      exit 77: skipped
set -euo pipefail
python=$(timeout 300 "$1/scripts/setup-sdk" 2>/dev/null) || { echo "skipped: the client library cannot be installed"; exit 77; }
exec "$python" "$1/tests/cli/serve_sdk_test.py" "$2" "$3"
