#!/bin/sh
# Looks at the document after a power cut: 0 intact, 1 what was acknowledged is lost, 2 corrupt.
required=${PLUMB_REQUIRED:-0}         # empty if nothing was acknowledged before the cut
if [ ! -e document ]; then
    [ "$required" -eq 0 ] && exit 0
    echo "version $required was saved, and there is no document"
    exit 1
fi
found=$(cat document)
case $found in
    "version "[1-5]) version=${found#version } ;;
    *) echo "the document says: $found"; exit 2 ;;
esac
if [ "$version" -lt "$required" ]; then
    echo "version $required was saved, and the document is version $version"
    exit 1
fi
