/**
 * Owns what can be seen of a checkout, on either side: what git says of it, and each file that it does not ignore.
 * Looked at by a program of its own, so that nothing of what is tested takes part.
 */
export type Seen = {
  head: string;
  commit: string;
  status: string;
  index: string;
  files: Record<string, string>;
};

export function seenOf(output: string): Seen {
  return JSON.parse(output) as Seen;
}

/** Names and answers of git are written in hex where they are no UTF-8. */
export const looking = `
import hashlib, json, os, stat, subprocess, sys
top = os.fsencode(sys.argv[1])
os.chdir(top)
def git(*args):
    done = subprocess.run(["git", *args], capture_output=True)
    return done.stdout
def text(raw):
    return raw.decode("utf8", "backslashreplace").replace("\\0", "|")
def look(path):
    try: s = os.lstat(path)
    except OSError: return "gone"
    if stat.S_ISLNK(s.st_mode): return "link " + text(os.readlink(path))
    if stat.S_ISDIR(s.st_mode): return "folder"
    with open(path, "rb") as f:
        return ("run " if s.st_mode & 0o100 else "file ") + hashlib.sha256(f.read()).hexdigest()
names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\\0")
status = git("status", "--porcelain=v2", "-z", "--untracked-files=all")
print(json.dumps({
    "head": text(git("symbolic-ref", "-q", "HEAD")),
    "commit": text(git("rev-parse", "-q", "--verify", "HEAD")),
    "status": text(status),
    "index": text(git("ls-files", "--stage", "-t", "-z")),
    "files": {text(name): look(name) for name in sorted(set(names)) if name},
}))
`;
