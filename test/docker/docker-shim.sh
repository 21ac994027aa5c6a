#!/bin/sh
# Replaces the docker command for wrangler where no image registry can be reached: it pulls nothing and leaves out two
# flags of newer commands. BERTH_TEST_DOCKER_COMMAND is the real command.
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
