#!/usr/bin/env bash
# Everything about the proofs that needs a prover. Exit 0: all holds. 1: something is violated. 3: not tested (no prover).
set -euo pipefail
cd "$(dirname "$0")/.."

# Python runs what was compiled before without reading the text: from an archive, it may be of another one.
find . -name site-packages -prune -o -name __pycache__ -prune -exec rm -rf {} +
# What the others import says what was read: before any of it is imported.
python3 -I -S proofs/gate/first.py
# What is proved of the rules is proved of the text that runs.
python3 -m proofs.translate
# Every file compiles; what it rests on is read three times, and every cheat of proofs/cheats is refused.
python3 -m proofs.gate
# The laws on record, which refengine.exact and refengine.engine are held to, are those of these definitions.
python3 -m proofs.bridge
# Every theorem with hypotheses is applied somewhere, and none can be taken away unnoticed: the record, and a sample.
python3 -m proofs.hypotheses --sample 6
echo "proved"
