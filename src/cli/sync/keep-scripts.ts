/**
 * Shell functions that keep what only the sandbox has, before a sync replaces it: as a commit below refs/berth/kept.
 * Only the sandbox has a file whose content was neither sent nor fetched at that path, and is not being sent now.
 */

/**
 * For nested repositories; used by scripts of `xargs` too, so without single quotes. `has_own_work`: whether it was
 * made in the sandbox, contains one that was, or has changes or commits that were not fetched. `move_aside`: takes it out
 * of the way of what is sent.
 */
export const nestedFunctions = `
has_own_work() {
  if [ ! -e "$1/.git" ]; then return 1; fi
  if [ ! -f "$1/.git/berth/index" ]; then return 0; fi
  if find "$1" -mindepth 2 -name .git -prune ! -exec test -f "{}/berth/index" \\; -print | grep -q .; then return 0; fi
  if [ "$(git --git-dir="$1/.git" rev-parse -q --verify HEAD)" != "$(git --git-dir="$1/.git/berth" rev-parse -q --verify refs/berth/state^1)" ] &&
    git --git-dir="$1/.git" rev-parse -q --verify HEAD >/dev/null; then return 0; fi
  ( cd "$1" && store=$PWD/.git/berth && cp -p "$store/index" "$store/kept.index" && export GIT_INDEX_FILE="$store/kept.index" &&
    { git --git-dir="$store" --work-tree=. diff-files -z --name-only --no-renames
      git --git-dir=.git --work-tree=. ls-files -z --others --exclude-standard | grep -zv "/$" || :
    } | git --git-dir="$store" --work-tree=. update-index --add --remove --replace -z --stdin &&
    [ "$(git --git-dir="$store" write-tree)" != "$(git --git-dir="$store" rev-parse -q --verify refs/berth/home)" ] )
}
move_aside() {
  aside=.git/berth/aside/$(date +%s)
  mkdir -p "$aside"
  mv -- "./$1" "$aside/"
  printf "aside %s/%s\\n" "$aside" "$(printf %s "$(basename "$1")" | tr "\\n" "?")" >> .git/berth/kept.lines
}
`;

/** Everything is written to the object store, with a ref, before the first file is replaced or removed. */
export const keepFunctions = `
mine() { GIT_INDEX_FILE=$ours/kept.index raw "$@"; }
# Of the names on standard input those that are readable files or links.
filter_files() {
  xargs -0 sh -c 'for name; do
    if [ -L "./$name" ] || { [ -f "./$name" ] && [ -r "./$name" ]; }; then printf "%s\\0" "$name"; fi
  done' sh
}
# What is at the names on standard input, or is a file where they need a folder. A repository there is moved aside.
filter_blockers() {
  xargs -0 sh -c '${nestedFunctions} for name; do
    part=$name
    while [ "$part" != "\${part%/*}" ]; do
      part=\${part%/*}
      if [ -L "./$part" ] || [ -f "./$part" ]; then printf "%s\\0" "$part"; continue 2; fi
    done
    if [ -d "./$name" ] && [ ! -L "./$name" ]; then
      if find "./$name" -name .git -prune -print | grep -q .; then move_aside "$name"; fi
    else printf "%s\\0" "$name"; fi
  done' sh | filter_files
}
# Adds what git shows as untracked to $ours/kept.names, and the repositories among it to $ours/kept.inner.
list_others() {
  GIT_INDEX_FILE=$ours/index plain ls-files -z --others --exclude-standard >> "$ours/kept.names"
  grep -z '/$' "$ours/kept.names" >> "$ours/kept.inner" || :
}
# Adds the files that $ours/kept.names lists.
keep_names() {
  filter_files < "$ours/kept.names" > "$ours/kept.files"
  if [ ! -s "$ours/kept.files" ]; then return; fi
  if [ -z "$keeping" ]; then
    if [ -f "$ours/index" ]; then cp -p "$ours/index" "$ours/kept.index"; fi
    keeping=yes
  fi
  mine update-index --add --remove --replace -z --stdin < "$ours/kept.files"
}
# How many commits of the sandbox these commits have.
count_ahead() {
  sent=$(raw rev-parse -q --verify refs/berth/state^1 || :)
  plain rev-list --count "$@" \${sent:+^$sent} \${commit:+^$commit} 2>/dev/null || echo 0
}
# Looks for work before anything is replaced, and keeps it.
keep_work() {
  keeping= restoring= seen=
  rm -f -- "$ours/kept.index" "$ours/kept.lines" "$ours/kept.inner"
  if [ "$restored" != - ] && [ "$(cat "$ours/restored" 2>/dev/null || :)" != "$restored" ]; then restoring=yes; fi
  : > "$ours/kept.names"
  if [ ! -f "$ours/index" ]; then
    # The first sync: nothing was sent yet, and only what is in its way will be replaced.
    if [ -n "$(ls -A . | grep -vx .git | head -n 1)" ]; then
      mine read-tree "$state:w"
      keeping=yes
      raw ls-tree -r -z --name-only "$state:w" | filter_blockers > "$ours/kept.names"
    fi
  else
    if [ -n "$restoring" ] || ! raw diff-files --quiet 2>/dev/null; then
      keeping=yes
      cp -p "$ours/index" "$ours/kept.index"
      mine diff-files --name-only --no-renames --diff-filter=D -z > "$ours/kept.differ"
      mine diff-files --name-only --no-renames --diff-filter=MT -z > "$ours/kept.names"
      if [ -s "$ours/kept.differ" ]; then mine update-index --force-remove -z --stdin < "$ours/kept.differ"; fi
    fi
    if [ -e "$ours/pulled" ]; then list_others; fi
    returned >> "$ours/kept.names"
    if [ -z "$known" ]; then
      raw diff-index --cached --name-only --no-renames --diff-filter=D -z "$state:w" | filter_blockers >> "$ours/kept.names"
    fi
  fi
  keep_names
  ahead=0 tips=
  # HEAD may be elsewhere while the branch is replaced: after a checkout, or in a rebase.
  branch=$(raw cat-file blob "$state:m/head")
  if [ -n "$branch" ]; then branch=$(plain rev-parse -q --verify "$branch^{commit}" || :); fi
  if [ "$branch" = "$there" ]; then branch=; fi
  for tip in $there $branch; do
    if [ "$tip" != "$commit" ] && [ "$(count_ahead "$tip")" != 0 ]; then tips="$tips $tip"; fi
  done
  if [ -n "$tips" ]; then ahead=$(count_ahead $tips); fi
  keep_commit
  if [ "$restored" != - ]; then printf '%s' "$restored" > "$ours/restored"; fi
}
# Looks again after the files were replaced: other lists ignore other files than before.
keep_unignored() {
  if [ -n "$known" ] || [ ! -e "$ours/pulled" ]; then return 0; fi
  keeping= restoring= ahead=0
  rm -f -- "$ours/kept.index"
  : > "$ours/kept.names"
  list_others
  keep_names
  keep_commit
}
commit_tree() {
  GIT_AUTHOR_NAME=berth GIT_AUTHOR_EMAIL=berth@localhost GIT_COMMITTER_NAME=berth GIT_COMMITTER_EMAIL=berth@localhost \\
    raw commit-tree -m "$files $ahead" "$@"
}
# Keeps what the index and the commits have that was neither sent nor fetched.
keep_commit() {
  files=0
  home=$seen
  if [ -n "$keeping" ]; then
    tree=$(mine write-tree)
    seen=$tree
    if [ -n "$restoring" ]; then home=$state:w; fi
    if [ -z "$home" ]; then
      home=$(raw rev-parse -q --verify refs/berth/home || raw rev-parse -q --verify refs/berth/state:w || echo "$state:w")
    fi
    raw diff-tree -r -z --name-only --no-renames "$state:w" "$tree" > "$ours/kept.differ"
    : > "$ours/kept.lost"
    if [ -s "$ours/kept.differ" ]; then
      xargs -0 git $quiet --git-dir="$ours" diff-tree -r -z --name-only --no-renames "$home" "$tree" -- < "$ours/kept.differ" > "$ours/kept.lost"
    fi
    files=$(($(tr -dc '\\0' < "$ours/kept.lost" | wc -c)))
  fi
  if [ "$files" = 0 ] && [ "$ahead" = 0 ]; then return 0; fi
  if [ "$files" = 0 ]; then home=$state:w; fi
  home=$(raw rev-parse "$home")
  kept=$home
  if [ "$files" != 0 ]; then
    mine read-tree "$home"
    mine update-index --force-remove -z --stdin < "$ours/kept.lost"
    xargs -0 git $quiet --git-dir="$ours" ls-tree -r -z "$tree" -- < "$ours/kept.lost" | mine update-index -z --index-info
    kept=$(mine write-tree)
  fi
  set -- -p "$(commit_tree "$home")"
  if [ "$ahead" != 0 ]; then for tip in $tips; do set -- "$@" -p "$tip"; done; fi
  kept=$(commit_tree "$kept" "$@")
  raw update-ref "refs/berth/kept/$kept" "$kept"
}
print_kept() {
  if [ -s "$ours/kept.lines" ]; then cat "$ours/kept.lines"; fi
  if [ -d "$ours/refs/berth/kept" ]; then raw for-each-ref --format='kept %(objectname) %(subject)' refs/berth/kept; fi
}
`;
