#!/bin/sh
# Owns standing in for the docker command that wrangler runs, where no image registry can be reached: nothing is pulled,
# and two flags of newer commands are left out. BERTH_TEST_DOCKER_COMMAND is the real one.
case "$1" in
  pull) exec "$BERTH_TEST_DOCKER_COMMAND" image inspect --format '{{.Id}}' "$2" ;;
  build)
    for argument; do
      shift
      case "$argument" in --load | --provenance=false) ;; *) set -- "$@" "$argument" ;; esac
    done
    DOCKER_BUILDKIT=1 exec "$BERTH_TEST_DOCKER_COMMAND" "$@"
    ;;
  *) exec "$BERTH_TEST_DOCKER_COMMAND" "$@" ;;
esac
