#!/bin/sh
# A test of clustermesh runs this script.
#
# Writes the metrics of `clustermesh status` into the folder of the textfile collector of the node exporter. A timer runs it
# in the folder of the mesh:
#   prometheus-textfile.sh FOLDER [ARGUMENT OF STATUS...]
set -u
folder=$1
shift
file=$folder/clustermesh.prom
# `status` exits with 1 if something differs and with 2 if a cluster cannot be read. Both are in the metrics.
clustermesh status --output prometheus "$@" >"$file.$$"
code=$?
if [ -s "$file.$$" ]; then
    # The node exporter reads only *.prom, and never half a file.
    mv "$file.$$" "$file"
    exit 0
fi
# The old metrics stay, and ClustermeshStatusOutdated reports them.
rm -f "$file.$$"
exit "$code"
