/**
 * The scripts that run in the sandbox for a sync: plain sh and git, nothing that must be installed first.
 * A repository of ours inside the sandbox's own holds what was sent, and an index in which files are as they are on
 * disk; the sandbox's own one borrows its objects. Names go through pipes, separated by NUL, because they may contain
 * anything.
 */
import { rawAttributes } from "./repository.ts";

/** $1 is the repository's folder; each script describes its further arguments. */
const preamble = `
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

/**
 * Checks a state out. Arguments: folder, state, object format, pack (\`-\`: none, \`=\`: standard input, else a file),
 * how to keep it (\`one\` pack or \`many\` objects), \`reset\` or \`-\`, the bytes of released names at the beginning of
 * standard input, the caller's folder (which git may not know: empty or ignored).
 * Prints \`done\`, or \`need\` and the objects that it has; none of them if its history is incomplete.
 */
export const checkOutScript = `${preamble}
state=$2 format=$3 pack=$4 keep=$5 reset=$6 released=$7 caller=$8
if [ -L "$root" ] || { [ -e "$root" ] && [ ! -d "$root" ]; }; then rm -f -- "$root"; fi
mkdir -p -- "$root"
cd -- "$root"
if [ "$reset" = reset ] || [ ! -d "$real" ] || [ ! -f "$real/HEAD" ]; then
  rm -rf -- "$real"
fi
[ -d "$real" ] || git $quiet init -q --template= --object-format="$format" "$root"
if [ ! -f "$ours/HEAD" ]; then
  rm -rf -- "$ours.new"
  git $quiet init -q --bare --template= --object-format="$format" "$ours.new"
  mkdir -p "$ours.new/info" "$ours.new/m"
  printf '%s' '${rawAttributes}' > "$ours.new/info/attributes"
  echo ../../objects > "$ours.new/objects/info/alternates"
  mkdir -p "$ours"
  mv "$ours.new"/* "$ours"
  rmdir "$ours.new"
fi
mkdir -p "$real/info" "$real/objects/info"
grep -qxF ../berth/objects "$real/objects/info/alternates" 2>/dev/null ||
  echo ../berth/objects >> "$real/objects/info/alternates"
rm -f -- "$real/index.lock" "$real/HEAD.lock" "$real/packed-refs.lock" "$real/config.lock" \\
  "$ours/index.lock" "$ours/m.index.lock" "$ours/next.lock"
head -c "$released" > "$ours/released"
keep_it() {
  if [ "$keep" = one ]; then raw index-pack --stdin --fix-thin; else raw unpack-objects -q; fi
}
case $pack in
  -) rm -f -- "$ours"/in.*.pack ;;
  =) keep_it ;;
  *) keep_it < "$pack"; rm -f -- "$pack" ;;
esac >/dev/null
if ! raw cat-file -e "$state^{commit}" 2>/dev/null; then
  echo need
  raw for-each-ref --format='%(objectname)' refs/berth
  plain for-each-ref --count=200 --sort=-committerdate --format='%(objectname)' refs/heads refs/remotes
  exit 0
fi
# Whether history is complete up to where it ends in the checkout too. What was complete before is not walked again.
has_history() {
  end=$(raw rev-parse -q --verify "$state:m/shallow") && raw cat-file blob "$end" > "$ours/ends" || return 1
  before=
  if [ "$(raw rev-parse -q --verify refs/berth/state:m/shallow)" = "$end" ]; then before=^refs/berth/state; fi
  GIT_SHALLOW_FILE=$ours/ends git $quiet --git-dir="$ours" rev-list --quiet "$state" $before 2>/dev/null
}
known=
if [ "$(cat "$ours/m.state" 2>/dev/null)" = "$state" ]; then known=yes
elif ! has_history; then
  echo need
  exit 0
fi

# Metadata for git. m.state names the state only while all of its metadata is in place.
if [ -z "$known" ]; then
  rm -f "$ours/m.state"
  rm -rf -- "$ours/m" "$ours/m.before" "$ours/m.left"
  if before=$(raw rev-parse -q --verify refs/berth/state); then
    raw cat-file blob "$before:m/nested" > "$ours/m.before" || :
  fi
  mkdir -p "$ours/m"
  (cd "$ours/m" && rm -f ../m.index && export GIT_INDEX_FILE="$ours/m.index" &&
    git --git-dir="$ours" --work-tree="$ours/m" read-tree "$state:m" &&
    git --git-dir="$ours" --work-tree="$ours/m" checkout-index -qfa)
  raw config --file "$ours/m/config" core.attributesFile "$ours/m/usual"
  if [ -s "$ours/m.before" ]; then
    # Removes nested repositories that are gone; if nothing replaces one, \`clean\` below decides whether it is ignored.
    xargs -0 sh -c 'for name; do
      if grep -zqxF -e "$name" "$0/m/nested"; then continue; fi
      if git --git-dir="$0" cat-file -e "$1:w/$name" 2>/dev/null; then rm -rf -- "./$name"
      else printf "%s\\0" "$name"
      fi
    done' "$ours" "$state" < "$ours/m.before" > "$ours/m.left"
  fi
fi
m=$ours/m
cp "$m/exclude" "$real/info/exclude"
cp "$m/attributes" "$real/info/attributes"
cp "$m/config" "$ours/settings"
if [ -s "$m/shallow" ]; then cp "$m/shallow" "$real/shallow"; cp "$m/shallow" "$ours/shallow"
else rm -f "$real/shallow" "$ours/shallow"; fi
grep -qxF '	path = berth/settings' "$real/config" 2>/dev/null ||
  printf '[include]\\n\\tpath = berth/settings\\n' >> "$real/config"

# Files: exactly those of the state; ignored ones stay.
if [ -s "$ours/released" ]; then
  raw update-index --force-remove -z --stdin < "$ours/released"
fi
if [ -z "$known" ] || ! raw diff-files --quiet 2>/dev/null; then
  raw update-index -q --refresh >/dev/null || :
  raw read-tree --reset -u "$state:w" || { rm -f "$ours/index"; raw read-tree --reset -u "$state:w"; }
fi
# A file that appeared during the scan was sent and stays.
returned | xargs -0 sh -c 'for name; do
  git --git-dir=.git/berth cat-file -e "$0/$name" 2>/dev/null || rm -f -- "./$name"
done' "$state:w"
if [ -e "$ours/pulled" ]; then
  # Nested repositories of the state stay for their own sync, whatever the ignore lists say.
  tr '\\0' '\\n' < "$m/nested" | sed 's/[] \\*?[]/\\\\&/g; s/^/\\//' > "$ours/m.kept"
  set --
  while IFS= read -r nested; do set -- "$@" -e "$nested"; done < "$ours/m.kept"
  GIT_INDEX_FILE=$ours/index plain clean -ffdq "$@" || :
elif [ -z "$known" ] && [ -s "$ours/m.left" ]; then
  GIT_INDEX_FILE=$ours/index xargs -0 git $quiet --git-dir="$real" --work-tree="$root" clean -ffdq -- < "$ours/m.left" || :
fi
if [ -s "$m/folders" ]; then xargs -0 mkdir -p -- < "$m/folders" 2>/dev/null || :; fi
if [ -n "$caller" ]; then mkdir -p -- "./$caller" 2>/dev/null || :; fi

# HEAD and branch.
head=$(cat "$m/head")
commit=$(raw rev-parse -q --verify "$state^1" || :)
rm -rf -- "$real/MERGE_HEAD" "$real/CHERRY_PICK_HEAD" "$real/REVERT_HEAD" "$real/rebase-merge" "$real/rebase-apply"
if [ -z "$head" ]; then
  plain update-ref --no-deref HEAD "$commit"
else
  plain symbolic-ref HEAD "$head"
  if [ -z "$commit" ]; then plain update-ref -d "$head"
  elif [ "$(plain rev-parse -q --verify HEAD || :)" != "$commit" ]; then
    # A branch may have the name of a former folder of branches.
    plain update-ref "$head" "$commit" 2>/dev/null || {
      plain for-each-ref --format='delete %(refname)' refs/heads | plain update-ref --stdin
      find "$real/refs" -name '*.lock' -exec rm -f {} +
      plain update-ref "$head" "$commit"
    }
  fi
fi

# The index: our own one knows the files, which saves reading them again.
staged() { GIT_INDEX_FILE=$ours/next plain "$@"; }
# Restores intent-to-add entries with the mode they had.
add_intended() {
  rm -rf -- "$ours/n" "$ours/n.index"
  mkdir "$ours/n"
  (cd "$ours/n" && export GIT_INDEX_FILE="$ours/n.index" &&
    git $quiet --git-dir="$ours" --work-tree="$ours/n" read-tree "$state:n" &&
    git $quiet --git-dir="$ours" --work-tree="$ours/n" checkout-index -qfa)
  (cd "$ours/n" && export GIT_INDEX_FILE="$ours/next" &&
    git $quiet --git-dir="$real" --work-tree="$ours/n" add -f -N --pathspec-from-file="$m/intended" --pathspec-file-nul)
  rm -rf -- "$ours/n" "$ours/n.index"
}
if [ -z "$known" ] || ! cmp -s "$ours/given" "$real/index"; then
  cp -p "$ours/index" "$ours/next"
  staged read-tree --reset "$state:i"
  if [ -s "$m/unmerged" ]; then staged update-index -z --index-info < "$m/unmerged"; fi
  if [ -s "$m/intended" ]; then add_intended; fi
  staged update-index -q --refresh >/dev/null || :
  if [ -s "$m/skipped" ]; then staged update-index --skip-worktree -z --stdin < "$m/skipped"; fi
  if [ -s "$m/assumed" ]; then staged update-index --assume-unchanged -z --stdin < "$m/assumed"; fi
  cp -p "$ours/next" "$ours/given"
  mv "$ours/next" "$real/index"
  raw update-ref refs/berth/state "$state"
  printf '%s' "$state" > "$ours/m.state"
fi
packs=$(find "$ours/objects/pack" -name '*.pack' | wc -l)
if [ "$packs" -gt 40 ]; then raw repack -adkq || :; fi
echo done
`;

/**
 * Packs what a command has changed. Arguments: folder, the tree that was sent, the size up to which the pack is printed,
 * the commit that was sent or -. Prints a line with the bytes of names that could not be read, \`first\` or \`again\`, and
 * how many commits HEAD has that were not sent (= if it has not moved); then \`same\` or \`<tree> <bytes>\`; then those
 * names; then the pack, if it is small.
 */
export const packChangesScript = `${preamble}
base=$2 inline=$3 sent=$4
cd -- "$root"
if [ ! -f "$ours/index" ]; then exit 66; fi
index=$ours/leave.index
rm -f -- "$index" "$index.lock" "$ours/leave.pack"
cp -p "$ours/index" "$index"
mine() { GIT_INDEX_FILE=$index raw "$@"; }
mine diff-files --name-only --no-renames --diff-filter=D -z > "$ours/leave.gone"
mine diff-files --name-only --no-renames --diff-filter=MT -z > "$ours/leave.names"
GIT_INDEX_FILE=$index plain ls-files -z --others --exclude-standard >> "$ours/leave.names"
returned >> "$ours/leave.names"
: > "$ours/leave.unread"
xargs -0 sh -c 'for name; do
  if [ -L "./$name" ] || { [ -f "./$name" ] && [ -r "./$name" ]; }; then printf "%s\\0" "$name"
  elif [ -f "./$name" ]; then printf "%s\\0" "$name" >> "$0"
  fi
done' "$ours/leave.unread" < "$ours/leave.names" > "$ours/leave.changed"
if [ -s "$ours/leave.gone" ]; then
  mine update-index --force-remove -z --stdin < "$ours/leave.gone"
fi
if [ -s "$ours/leave.changed" ]; then
  mine update-index --add --remove --replace -z --stdin < "$ours/leave.changed"
fi
tree=$(mine write-tree)
if [ -e "$ours/pulled" ]; then flag=again; else flag=first; fi
head=$(plain rev-parse -q --verify 'HEAD^{commit}' || echo -)
if [ "$head" = "$sent" ]; then ahead==
elif [ "$head" = - ]; then ahead=0
else
  beyond=
  if [ "$sent" != - ]; then beyond=^$sent; fi
  # Commits without their parents cannot be counted; the files are fetched anyway.
  ahead=$(plain rev-list --count "$head" $beyond 2>/dev/null || echo 0)
fi
echo $(wc -c < "$ours/leave.unread") $flag $ahead
if [ "$tree" = "$base" ]; then
  echo same
  cat "$ours/leave.unread"
else
  printf '%s\\n^%s\\n' "$tree" "$base" | raw pack-objects --revs --thin --stdout -q --delta-base-offset > "$ours/leave.pack"
  raw update-ref refs/berth/left "$tree"
  bytes=$(wc -c < "$ours/leave.pack")
  echo "$tree" $bytes
  cat "$ours/leave.unread"
  if [ "$bytes" -le "$inline" ]; then cat "$ours/leave.pack"; rm -f "$ours/leave.pack"; fi
fi
`;

/** Marks that changes have been fetched: from now on a sync removes files that were not sent. */
export const markPulledScript = `${preamble}
: > "$ours/pulled"
rm -f -- "$ours/leave.pack"
`;
