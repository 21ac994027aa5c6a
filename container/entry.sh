#!/bin/sh
# Owns the start of a container: one life each, emptied folders, an environment of its own, a boot document on descriptor 3.
# Does not own what the document says. Variables of the image or of the platform (BUN_OPTIONS and the like)
# would otherwise steer the agent's runtime; and a secret in the environment could be read where it stays.

# Only where the image has put it: anywhere else what it removes would be the machine's own.
if [ "$0" = /usr/local/lib/berth/entry.sh ]; then
  # Docker starts a crashed container again, with the same document and as its files stood. That life is over: whoever
  # wants another asks for it with a new document. Left alone, it would run unseen beside that one.
  life=/run/berth-life-$(printf %s "$BERTH_BOOT" | cksum | tr ' ' -)
  [ -e "$life" ] && exit 0
  # A saved tree brings along what lay there. What the platform itself has mounted stays.
  rm -rf /run/* /run/.[!.]* /tmp/* /tmp/.[!.]* 2>/dev/null
  : >"$life"
fi

exec 3<<document
$BERTH_BOOT
document
# Threads that its sandbox could refuse it (engine/room/runtime.ts says why).
exec env -i BUN_JSC_numberOfGCMarkers=1 BUN_JSC_useConcurrentGC=0 BUN_JSC_useConcurrentJIT=0 BUN_JSC_useFTLJIT=0 \
  BUN_JSC_useWarmUpMarkedBlocks=0 "${0%/*}/berth-agent" serve
