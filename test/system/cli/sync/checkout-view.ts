/**
 * Everything visible of a checkout, on either side: what git reports, and each file that it does not ignore. A program
 * of its own reads it, so that nothing of the tested code takes part.
 */
export type CheckoutView = {
  head: string;
  commit: string;
  status: string;
  index: string;
  files: Record<string, string>;
};

export function parseView(output: string): CheckoutView {
  return JSON.parse(output) as CheckoutView;
}

/** Output of git that is not UTF-8 is written in hex. */
export const inspectScript = `
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
