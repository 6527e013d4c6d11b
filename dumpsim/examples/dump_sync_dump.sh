#!/bin/bash
# Synchronous dump of AlexNet, as MindSpore's dump page offers it.
#
#     bash dump_sync_dump.sh [DIRECTORY [ARGUMENTS OF alexnet.py]]
#
# DIRECTORY takes the dump (default: ./dump_sync_dump; letters, digits, - and _ only), e.g.
#
#     bash dump_sync_dump.sh /tmp/alexnet --narrow 16

set -e

here=$(cd "$(dirname "$0")" && pwd)
directory=${1:-dump_sync_dump}
shift || true
mkdir -p "$directory"

MS_DIAGNOSTIC_DATA_PATH=$(cd "$directory" && pwd)
export MS_DIAGNOSTIC_DATA_PATH # alexnet.json leaves `path` empty
export MINDSPORE_DUMP_CONFIG=$here/alexnet.json

dumpsim run "$here/alexnet.py" "$@"
find "$MS_DIAGNOSTIC_DATA_PATH/debug_dump" -maxdepth 4 -type d | sort
