#!/bin/sh
# Owns the start of a container: the agent gets an empty environment and its boot document on descriptor 3.
# Does not own what the document says. Variables of the image or of the platform (BUN_OPTIONS and the like)
# would otherwise steer the agent's runtime; and a secret in the environment could be read where it stays.
exec 3<<document
$BERTH_BOOT
document
exec env -i "${0%/*}/berth-agent" serve
