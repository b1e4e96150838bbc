#!/bin/sh
# Saves a document five times. The directory is synced, too, before anybody is told.
set -e
for version in 1 2 3 4 5; do
    echo "version $version" > document.new
    sync document.new                 # fsync of the file
    mv document.new document
    sync .                            # fsync of the directory
    echo "$version" > "$PLUMB_ACK"    # "saved"
done
