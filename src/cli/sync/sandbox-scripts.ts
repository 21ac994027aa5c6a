/**
 * The scripts that run in the sandbox for a sync: plain sh and git, nothing that must be installed first.
 * A repository of ours inside the sandbox's own holds what was sent, and an index in which files are as they are on
 * disk; the sandbox's own one borrows its objects. Names go through pipes, separated by NUL, because they may contain
 * anything.
 */
import { cleanFunctions, skipCheckOut, skipSearch } from "./clean-script.ts";
import { keepFunctions, nestedFunctions } from "./keep-scripts.ts";
import { rawAttributes } from "./repository.ts";
import { preamble } from "./script-preamble.ts";

/**
 * Checks a state out. Arguments: folder, state, object format, pack (\`-\`: none, \`=\`: standard input, else a file),
 * how to keep it (\`one\` pack or \`many\` objects), \`reset\` or \`-\`, the bytes of released names at the beginning of
 * standard input, the caller's folder (which git may not know: empty or ignored), when a checkpoint was restored or -.
 * Prints \`done\`, or \`need\` and the objects that it has; none of them if its history is incomplete.
 * After \`done\` it names what only the sandbox had: \`kept <commit> <files> <commits>\`, and \`aside <folder>\` for a
 * nested repository that had to make room, or for the repository itself if git could not use it any more.
 */
export const checkOutScript = `${preamble}${keepFunctions}${cleanFunctions}
state=$2 format=$3 pack=$4 keep=$5 reset=$6 released=$7 caller=$8 restored=$9
if [ -L "$root" ] || { [ -e "$root" ] && [ ! -d "$root" ]; }; then rm -f -- "$root"; fi
[ -d "$root" ] || mkdir -p -- "$root"
cd -- "$root"
${skipCheckOut}
if [ "$reset" = reset ] || [ ! -d "$real" ] || [ ! -f "$real/HEAD" ]; then
  # Commits may be in a repository that git cannot read any more.
  if [ -d "$real" ]; then rm -rf -- "$root/.git.broken"; mv -- "$real" "$root/.git.broken"
  else rm -f -- "$real"; fi
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
if [ -d "$root/.git.broken" ]; then
  rm -rf -- "$ours/broken"
  mv -- "$root/.git.broken" "$ours/broken"
  : > "$ours/broken.new"
fi
mkdir -p "$real/info" "$real/objects/info"
grep -qxF ../berth/objects "$real/objects/info/alternates" 2>/dev/null ||
  echo ../berth/objects >> "$real/objects/info/alternates"
rm -f -- "$real/index.lock" "$real/HEAD.lock" "$real/packed-refs.lock" "$real/config.lock" \\
  "$ours/index.lock" "$ours/m.index.lock" "$ours/next.lock" "$ours/kept.index.lock"
find "$real/refs" "$ours/refs" -name '*.lock' -type f -exec rm -f {} + 2>/dev/null || :
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

commit=$(raw rev-parse -q --verify "$state^1" || :)
there=$(plain rev-parse -q --verify 'HEAD^{commit}' || :)
keep_work

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
    xargs -0 sh -c '${nestedFunctions} state=$1; shift; for name; do
      if grep -zqxF -e "$name" "$0/m/nested"; then continue; fi
      if has_own_work "./$name"; then
        if git --git-dir="$0" cat-file -e "$state:w/$name" 2>/dev/null; then move_aside "$name"
        else printf "left %s\\n" "$(printf %s "$name" | tr "\\n" "?")" >> "$0/kept.lines"; fi
      elif git --git-dir="$0" cat-file -e "$state:w/$name" 2>/dev/null; then rm -rf -- "./$name"
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
  if [ -n "$known" ]; then raw update-ref refs/berth/home "$state:w"; fi
fi
keep_unignored
# A file that appeared during the scan was sent and stays.
returned | xargs -0 sh -c 'for name; do
  git --git-dir=.git/berth cat-file -e "$0/$name" 2>/dev/null || rm -f -- "./$name"
done' "$state:w"
if [ -e "$ours/pulled" ]; then
  # Nested repositories of the state stay for their own sync, whatever the ignore lists say.
  tr '\\0' '\\n' < "$m/nested" | sed 's/[] \\*?[]/\\\\&/g; s/^/\\//' > "$ours/m.kept"
  set --
  while IFS= read -r nested; do set -- "$@" -e "$nested"; done < "$ours/m.kept"
  # Not with -ff, which would remove the repositories that a command has made.
  GIT_INDEX_FILE=$ours/index plain clean -fdq "$@" || :
  # Those that were sent once and are gone from the checkout.
  if [ -s "$ours/kept.inner" ]; then
    xargs -0 sh -c '${nestedFunctions} for name; do
      name=\${name%/}
      if [ -f "./$name/.git/berth/index" ] && ! grep -zqxF -e "$name" "$0/m/nested" && ! has_own_work "./$name"; then
        rm -rf -- "./$name"
      fi
    done' "$ours" < "$ours/kept.inner"
  fi
fi
if [ -z "$known" ] && [ -s "$ours/m.left" ]; then
  GIT_INDEX_FILE=$ours/index xargs -0 git $quiet --git-dir="$real" --work-tree="$root" clean -ffdq -- < "$ours/m.left" || :
fi
if [ -s "$m/folders" ]; then xargs -0 mkdir -p -- < "$m/folders" 2>/dev/null || :; fi
if [ -n "$caller" ]; then mkdir -p -- "./$caller" 2>/dev/null || :; fi

# HEAD and branch.
head=$(cat "$m/head")
rm -rf -- "$real/MERGE_HEAD" "$real/CHERRY_PICK_HEAD" "$real/REVERT_HEAD" "$real/rebase-merge" "$real/rebase-apply"
if [ -z "$head" ]; then
  plain update-ref --no-deref HEAD "$commit"
else
  plain symbolic-ref HEAD "$head"
  if [ -z "$commit" ]; then plain update-ref -d "$head"
  elif [ "$(plain rev-parse -q --verify HEAD || :)" != "$commit" ]; then
    # A branch may have the name of a former folder of branches.
    plain update-ref "$head" "$commit" 2>/dev/null || {
      plain for-each-ref --format='create refs/berth/heads/%(objectname) %(objectname)' refs/heads | plain update-ref --stdin 2>/dev/null || :
      plain for-each-ref --format='delete %(refname)' refs/heads | plain update-ref --stdin
      find "$real/refs" -name '*.lock' -exec rm -f {} +
      plain update-ref "$head" "$commit"
    }
  fi
fi

if [ -n "$commit" ] && ! grep -qxF "$commit" "$ours/sent" 2>/dev/null; then echo "$commit" >> "$ours/sent"; fi

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
  printf 'update refs/berth/state %s\\nupdate refs/berth/home %s:w\\n' "$state" "$state" | raw update-ref --stdin
  printf '%s' "$state" > "$ours/m.state"
fi
packs=$(find "$ours/objects/pack" -name '*.pack' | wc -l)
if [ "$packs" -gt 40 ]; then raw repack -adkq || :; fi
mark_clean || :
echo done
if [ -e "$ours/broken.new" ]; then echo aside .git/berth/broken; rm -f -- "$ours/broken.new"; fi
print_kept
`;

/**
 * Packs what a command has changed. Arguments: folder, the tree that was sent, the size up to which the pack is printed,
 * the commit that was sent or -. Prints a line with the bytes of names that could not be read, \`first\` or \`again\`, and
 * how many commits HEAD has that were not sent (= if it has not moved); then \`same\` or \`<tree> <bytes>\`; then those
 * names; then the pack, if it is small.
 */
export const packChangesScript = `${preamble}${cleanFunctions}
base=$2 inline=$3 sent=$4
cd -- "$root"
${skipSearch}
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
  # After a restore the sandbox may not have what was sent later.
  if raw cat-file -e "$base" 2>/dev/null; then has=^$base; else has=; fi
  printf '%s\\n' "$tree" $has | raw pack-objects --revs --thin --stdout -q --delta-base-offset > "$ours/leave.pack"
  raw update-ref refs/berth/left "$tree"
  bytes=$(wc -c < "$ours/leave.pack")
  echo "$tree" $bytes
  cat "$ours/leave.unread"
  if [ "$bytes" -le "$inline" ]; then cat "$ours/leave.pack"; rm -f "$ours/leave.pack"; fi
fi
`;

/**
 * Marks that changes have been fetched: from now on a sync removes files that were not sent. Arguments: folder, the tree
 * that has come back completely, or -, and when the checkpoint was restored that came back, or -.
 */
export const markPulledScript = `${preamble}
: > "$ours/pulled"
rm -f -- "$ours/leave.pack"
if [ "$2" != - ]; then
  raw update-ref refs/berth/home "$2"
  if [ "$3" != - ]; then printf '%s' "$3" > "$ours/restored"; fi
fi
`;

/** Prints what was kept and has not been fetched, as the check-out does. Arguments: folder. */
export const listKeptScript = `${preamble}${keepFunctions}
print_kept
`;

/**
 * Packs what was kept. Arguments: folder, the kept commit, the size up to which the pack is printed, a commit or tree
 * that the checkout has, or -. Prints a line with the bytes of the pack; then the pack, if it is small.
 */
export const packKeptScript = `${preamble}
kept=$2 inline=$3 known=$4
{ echo "$kept"; if raw cat-file -e "$known" 2>/dev/null; then echo "^$known"; fi; } |
  raw pack-objects --revs --thin --stdout -q --delta-base-offset > "$ours/leave.pack"
bytes=$(wc -c < "$ours/leave.pack")
echo $bytes
if [ "$bytes" -le "$inline" ]; then cat "$ours/leave.pack"; rm -f "$ours/leave.pack"; fi
`;

/**
 * Prints what sandbox and checkout agreed on: the tree of the files, the commit and the state that was sent, each or -;
 * then `restored` if the files are those of a checkpoint that no sync has seen. Arguments: folder, when a checkpoint was
 * restored or -.
 */
export const readAgreedScript = `${preamble}
if [ ! -f "$ours/index" ]; then exit 66; fi
raw rev-parse -q --verify refs/berth/home || raw rev-parse -q --verify refs/berth/state:w || echo -
raw rev-parse -q --verify refs/berth/state^1 || echo -
raw rev-parse -q --verify refs/berth/state || echo -
if [ "$2" != - ] && [ "$(cat "$ours/restored" 2>/dev/null || :)" != "$2" ]; then echo restored; fi
`;

/** Forgets what was kept, because the checkout has it. Arguments: folder, the kept commit. */
export const forgetKeptScript = `${preamble}
raw update-ref -d "refs/berth/kept/$2"
rm -f -- "$ours/leave.pack"
`;
