#!/bin/sh
# Starts the agent of a container: one incarnation per container, empty /run and /tmp, a clean environment, and the boot
# document on descriptor 3. Variables of the image or the platform (such as BUN_OPTIONS) would otherwise change the agent's
# runtime, and a secret in the environment could be read by others.

# Only in the image: anywhere else these would be the machine's own folders.
if [ "$0" = /usr/local/lib/berth/entry.sh ]; then
  # Docker restarts a crashed container with the same document and its old files. That incarnation has ended: the object
  # starts another one with a new document, and the restarted one would run unnoticed next to it.
  marker=/run/berth-incarnation-$(printf %s "$BERTH_BOOT" | cksum | tr ' ' -)
  [ -e "$marker" ] && exit 0
  # A saved tree includes the files of these folders. What the platform itself has mounted stays.
  rm -rf /run/* /run/.[!.]* /tmp/* /tmp/.[!.]* 2>/dev/null
  : >"$marker"
  # The platform's host name has 64 characters and no address, so servers that look it up would end at their start.
  if [ "$(hostname 2>/dev/null | wc -c)" -gt 60 ] && hostname sandbox 2>/dev/null; then
    printf '127.0.0.1 sandbox\n' >>/etc/hosts
  fi
fi

exec 3<<document
$BERTH_BOOT
document
# Options that avoid threads, which a sandbox at its process limit could not create; see engine/jail/bun-options.ts.
exec env -i BUN_JSC_numberOfGCMarkers=1 BUN_JSC_useConcurrentGC=0 BUN_JSC_useConcurrentJIT=0 BUN_JSC_useFTLJIT=0 \
  BUN_JSC_useWarmUpMarkedBlocks=0 "${0%/*}/berth-agent" serve
