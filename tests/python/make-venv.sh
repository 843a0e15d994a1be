#!/usr/bin/env bash
# Makes a Python environment in the directory $1 with unmodified Mesos clients from PyPI, for the end-to-end tests.
# pymesos needs http-parser, whose C file was generated for a Python of 2020. It is regenerated here from its source.
set -euo pipefail

directory=$1
rm -rf "$directory"
mkdir -p "$(dirname "$directory")"
python3 -m venv "$directory"
pip="$directory/bin/pip --quiet --disable-pip-version-check"
$pip install cython setuptools wheel

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# Python 3.12 has no module `imp`. The package's setup.py needs one function of it.
cat > "$build/imp.py" <<'PYTHON'
import importlib.util


def load_source(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
PYTHON
export PYTHONPATH=$build

$pip download --no-deps --no-build-isolation --no-binary :all: --dest "$build" http-parser==0.9.0
tar -xzf "$build/http-parser-0.9.0.tar.gz" -C "$build"
rm "$build/http-parser-0.9.0/http_parser/parser.c"
"$directory/bin/cython" -2 "$build/http-parser-0.9.0/http_parser/parser.pyx" 2> "$build/cython.log" || { cat "$build/cython.log" >&2; exit 1; }
$pip install --no-build-isolation "$build/http-parser-0.9.0"
$pip install --no-build-isolation pymesos==0.3.15
$pip install marathon==0.13.0
unset PYTHONPATH
# Editable: after a change of the package the environment stays valid.
$pip install --editable "$(dirname "$0")/../../python[test]"
"$directory/bin/python" -W ignore -c 'import http_parser.parser, pymesos, marathon, tepui.lab'
