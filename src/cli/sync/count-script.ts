/** The script that finds out what would be lost with a sandbox. */
import { nestedFunctions } from "./keep-scripts.ts";
import { preamble } from "./script-preamble.ts";

/** Prints how many files and commits only the sandbox has. Changes nothing. Arguments: folder. */
export const countWorkScript = `${preamble}
if [ ! -d "$root" ]; then echo 0 0; exit; fi
cd -- "$root"
if [ ! -f "$ours/index" ]; then
  echo $(find . -path ./.git -prune -o -type f -print | head -n 1000 | wc -l) 0
  exit
fi
index=$ours/count.index
rm -f -- "$index" "$index.lock"
cp -p "$ours/index" "$index"
mine() { GIT_INDEX_FILE=$index raw "$@"; }
{ mine diff-files --name-only --no-renames -z
  GIT_INDEX_FILE=$index plain ls-files -z --others --exclude-standard
} > "$ours/count.names"
# What no index can hold counts as one file each: repositories with work, and what cannot be read.
: > "$ours/count.more"
xargs -0 sh -c '${nestedFunctions} for name; do
  if [ "$name" != "\${name%/}" ]; then
    if has_own_work "./\${name%/}"; then echo >> "$0"; fi
  elif [ -r "./$name" ] || [ ! -e "./$name" ]; then printf "%s\\0" "$name"
  else echo >> "$0"; fi
done' "$ours/count.more" < "$ours/count.names" | mine update-index --add --remove --replace -z --stdin
home=$(raw rev-parse -q --verify refs/berth/home || raw rev-parse -q --verify refs/berth/state:w || raw hash-object -t tree /dev/null)
files=$(($(raw diff-tree -r -z --name-only --no-renames "$home" "$(mine write-tree)" | tr -dc '\\0' | wc -c)))
# What had to make room, and what was kept and not fetched, is in no index.
find "$ours/aside" -mindepth 2 -maxdepth 2 2>/dev/null | tr -c '\\n' . >> "$ours/count.more" || :
if [ -e "$ours/broken" ]; then echo >> "$ours/count.more"; fi
raw for-each-ref --format=kept refs/berth/kept >> "$ours/count.more"
files=$((files + $(wc -l < "$ours/count.more")))
rm -f -- "$index" "$ours/count.names" "$ours/count.more"
# Branches that were sent earlier are known; stashes are commits, too.
set -- $(plain rev-parse -q --verify HEAD || :) $(plain rev-parse -q --verify refs/stash || :)
ahead=$({ cat "$ours/sent" 2>/dev/null || :; raw rev-parse -q --verify refs/berth/state^1 || :; } | sed 's/^/^/' |
  plain rev-list --count --ignore-missing --stdin "$@" --branches 2>/dev/null || echo 0)
echo "$files" "$ahead"
`;
