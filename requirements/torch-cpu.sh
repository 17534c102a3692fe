#!/bin/sh
# Put the CPU build of torch into the environment whose commands are in the folder $1: what is there, what pip finds, or what
# uv fetches, which knows where these builds are. PyPI's own build is for CUDA and can't be imported without CUDA's libraries.
set -eu
bin=$1
version=$(sed -n 's/^torch==//p' "$(dirname "$0")/cpu.txt")
log=$(dirname "$bin")/torch.log

if "$bin/python" -c "import sys, torch; sys.exit(torch.__version__.split('+')[0] != '$version')" 2>/dev/null; then exit; fi
if "$bin/pip" install -q --no-deps "torch==$version+cpu" >"$log" 2>&1; then exit; fi
echo "pip finds no CPU build of torch $version: uv is asked for it"
if uv=$(command -v uv) || { "$bin/pip" install -q uv >>"$log" 2>&1 && uv=$bin/uv; }; then
  if "$uv" pip install -q --python "$bin/python" --no-deps --torch-backend cpu "torch==$version+cpu" >>"$log" 2>&1; then exit; fi
fi
echo "No CPU build of torch $version was found ($log says why): put its wheel, torch-$version+cpu-cp311-….whl, into a folder" \
  "and say PIP_FIND_LINKS=FOLDER make setup" >&2
exit 1
