/**
 * Shell functions that find out with three processes that nothing has changed in the sandbox since the last check-out.
 * Without them an unchanged checkout costs some thirty processes on each side of a command.
 */
export const cleanFunctions = `
# Whether HEAD, index, settings and files are those that the last check-out left.
is_clean() {
  if [ ! -f "$ours/clean" ] || [ ! -e "$ours/pulled" ]; then return 1; fi
  for name in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
    if [ -e "$real/$name" ]; then return 1; fi
  done
  sha1sum -c "$ours/clean" >/dev/null 2>&1 && raw diff-files --quiet 2>/dev/null &&
    ! GIT_INDEX_FILE=$ours/index plain ls-files --others --exclude-standard | read -r _
}
# Records what is_clean compares. Not where a check-out does more than these functions look at.
mark_clean() {
  for list in absent folders nested; do
    if [ -s "$ours/m/$list" ]; then return 0; fi
  done
  if [ -d "$ours/refs/berth/kept" ] || [ -z "$commit" ]; then return 0; fi
  printf '%s %s %s\\n' "$state" "$(raw rev-parse -q --verify "$state:w")" "$commit" > "$ours/clean.of"
  set -- .git/HEAD .git/index .git/config .git/info/exclude .git/info/attributes .git/objects/info/alternates \\
    .git/berth/settings .git/berth/m.state .git/berth/clean.of
  # A packed reference has no file, and then nothing is recorded.
  if [ -n "$head" ]; then set -- "$@" ".git/$head"; fi
  if [ -e "$real/shallow" ]; then set -- "$@" .git/shallow; fi
  sha1sum "$@" > "$ours/clean.new" 2>/dev/null && mv "$ours/clean.new" "$ours/clean"
}
`;

/** At the beginning of the check-out of a state. */
export const skipCheckOut = `
if [ "$pack$reset$released" = --0 ] && is_clean && read -r of tree sent < "$ours/clean.of" && [ "$of" = "$state" ] &&
  [ -d "./$caller" ] && { [ "$restored" = - ] || [ "$(cat "$ours/restored" 2>/dev/null || :)" = "$restored" ]; }
then
  echo done
  exit 0
fi
rm -f -- "$ours/clean"
`;

/** At the beginning of the search for changes. */
export const skipSearch = `
if is_clean && read -r of tree commit < "$ours/clean.of" && [ "$tree $commit" = "$base $sent" ]; then
  echo 0 again =
  echo same
  exit 0
fi
`;
