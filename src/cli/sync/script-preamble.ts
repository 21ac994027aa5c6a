/** What every script of a sync begins with, in the sandbox: its settings, and the two repositories. */

/** $1 is the repository's folder; each script describes its further arguments. */
export const preamble = `
set -eu
umask 022
export LC_ALL=C GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_TERMINAL_PROMPT=0 GIT_LITERAL_PATHSPECS=1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES \\
  GIT_COMMON_DIR GIT_NAMESPACE GIT_ATTR_SOURCE GIT_CONFIG GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS
command -v git >/dev/null 2>&1 || exit 127
root=$1
real=$root/.git
ours=$real/berth
quiet='-c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.logAllRefUpdates=false -c gc.auto=0'
plain() { git $quiet --git-dir="$real" --work-tree="$root" "$@"; }
raw() { git $quiet --git-dir="$ours" --work-tree="$root" "$@"; }
# Tracked files that were missing when the state was sent and exist by now; not behind a link, where it is another file.
returned() {
  if [ ! -s "$ours/m/absent" ]; then return; fi
  xargs -0 sh -c 'for name; do
    part=$name here=yes
    while [ "$part" != "\${part%/*}" ]; do
      part=\${part%/*}
      if [ -L "./$part" ]; then here=; fi
    done
    if [ -n "$here" ] && { [ -L "./$name" ] || [ -f "./$name" ]; }; then printf "%s\\0" "$name"; fi
  done' sh < "$ours/m/absent"
}
`;
