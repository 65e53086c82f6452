#!/bin/sh
# The page is tested in a real browser: install Chromium and its driver where that is possible, else say so loudly.
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing chromium and chromium-driver for the tests of the page."
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1 && exit 0
    apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1 && exit 0
fi
cat >&2 <<'LOUD'
***********************************************************************************
*  NO BROWSER: chromium and chromedriver are missing and cannot be installed here. *
*  The tests of the page in a browser will be SKIPPED. Install them to run all:    *
*      apt-get install chromium chromium-driver                                    *
***********************************************************************************
LOUD
exit 0
