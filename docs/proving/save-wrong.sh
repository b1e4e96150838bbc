#!/bin/sh
# Saves a document five times, as many programs do. The new contents are durable before the rename; the rename is not.
set -e
for version in 1 2 3 4 5; do
    echo "version $version" > document.new
    sync document.new                 # fsync of the file
    mv document.new document          # the directory has changed, in memory alone
    echo "$version" > "$PLUMB_ACK"    # "saved"
done
