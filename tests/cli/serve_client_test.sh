#!/usr/bin/env bash
# Runs a real client against the program; the client is installed first where that is possible (scripts/setup-sdk).
#   serve_client_test.sh python|node|lm-eval SOURCE KVASIR MODEL [CHOICE_SCORES]      exit 77: skipped
set -euo pipefail
kind=$1 source=$2 kvasir=$3 model=$4
[ -f "$model" ] || { echo "skipped: no model at $model"; exit 77; }
client=$(timeout 500 "$source/scripts/setup-sdk" "$kind" 2>/dev/null) || { echo "skipped: the client cannot be installed"; exit 77; }
case "$kind" in
  python) exec "$client" "$source/tests/cli/serve_openai_test.py" "$kvasir" "$model" ;;
  node) exec node "$source/tests/cli/serve_node_test.mjs" "$kvasir" "$model" "$client" ;;
  lm-eval) exec "$client" "$source/tests/cli/serve_lm_eval_test.py" "$kvasir" "$5" "$model" "$source/tests/data/choice" ;;
esac
