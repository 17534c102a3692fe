#!/bin/sh
# Install the lock $2 into the environment whose commands are in the folder $1: with uv, which takes a third of pip's time; with
# pip where uv reaches no index. --no-deps: the lock is complete, less what excluded.txt lists.
# --compile-bytecode, as pip does: without it each start of an engine takes seconds longer.
set -eu
bin=$1 lock=$2
log=$(dirname "$bin")/install.log

"$(dirname "$0")/torch-cpu.sh" "$bin"
if uv=$(command -v uv) || { "$bin/pip" install -q uv >"$log" 2>&1 && uv=$bin/uv; }; then
  if "$uv" pip install -q --compile-bytecode --python "$bin/python" --no-deps -r "$lock" >"$log" 2>&1; then exit; fi
fi
echo "uv can't install $lock ($log says why): pip does"
"$bin/pip" install -q --no-deps -r "$lock"
