/**
 * Random edits of a checkout, applied by the same program on either side. There are few names, so that edits collide.
 * An edit that is not possible is skipped.
 */
import fc from "fast-check";

export type RandomEdit = [what: string, ...details: (string | number)[]];

const name = fc.constantFrom(
  ...["a", "b", "c d", "-x", "d/e", "d/f", "d/g/h", "b/i", "ü\n", "q'\"", "ignored", "d/ignored"],
);
const folder = fc.constantFrom("d", "d/g", "b", "a");
const content = fc.constantFrom(
  "",
  "1\n",
  "2\n",
  "one\r\ntwo\r\n",
  "\0\xff",
  "long\n".repeat(3000),
);

export const edit: fc.Arbitrary<RandomEdit> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant("write"), name, content) },
  { weight: 3, arbitrary: fc.tuple(fc.constant("remove"), fc.oneof(name, folder)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("mode"), name, fc.constantFrom(0o644, 0o755)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("link"), name, fc.oneof(name, folder)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("move"), fc.oneof(name, folder), name) },
);

/** Only the owner makes these edits: a command's changes of the repository are not fetched. */
export const ownEdit: fc.Arbitrary<RandomEdit> = fc.oneof(
  { weight: 6, arbitrary: edit },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constant("git"), fc.constant("add"), fc.oneof(name, folder)),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant("git"), fc.constant("add"), fc.constant("-A")) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constant("git"), fc.constant("add"), fc.constant("-f"), name),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constant("git"), fc.constant("add"), fc.constant("-N"), name),
  },
  { weight: 1, arbitrary: gitEdit("rm", "-q", "--cached", "-r", ".") },
  { weight: 1, arbitrary: gitEdit("reset", "-q", "HEAD~1") },
  { weight: 2, arbitrary: gitEdit("commit", "-q", "-m", "more") },
  { weight: 1, arbitrary: gitEdit("checkout", "-q", "-f", "-B", "other", "HEAD~1") },
  { weight: 1, arbitrary: gitEdit("checkout", "-q", "--detach") },
  { weight: 1, arbitrary: gitEdit("merge", "-q", "other") },
  { weight: 1, arbitrary: gitEdit("checkout", "-q", "-f", "main") },
  // Removes unreachable objects, and makes history shallow.
  { weight: 1, arbitrary: gitEdit("gc", "-q", "--prune=now") },
  { weight: 1, arbitrary: gitEdit("fetch", "-q", "--depth=1", ".", "HEAD") },
);

function gitEdit(...args: string[]): fc.Arbitrary<RandomEdit> {
  return fc.constant(["git", ...args]);
}

/** Reads edits as JSON from its input; prints how many were applied. */
export const applyScript = `
import json, os, shutil, subprocess, sys
os.chdir(sys.argv[1])
done = 0
for what, at, *more in json.load(sys.stdin):
    try:
        if what == "git": subprocess.run(["git", at, *more], check=True, capture_output=True)
        elif what == "write":
            if os.path.dirname(at): os.makedirs(os.path.dirname(at), exist_ok=True)
            if os.path.islink(at): os.unlink(at)
            with open(at, "wb") as f: f.write(more[0].encode("latin1"))
        elif what == "remove":
            if os.path.isdir(at) and not os.path.islink(at): shutil.rmtree(at)
            else: os.unlink(at)
        elif what == "mode":
            if os.path.isfile(at) and not os.path.islink(at): os.chmod(at, more[0])
        elif what == "link":
            if os.path.lexists(at) and not os.path.isdir(at): os.unlink(at)
            os.symlink(more[0], at)
        elif what == "move": os.rename(at, more[0])
        done += 1
    except (OSError, subprocess.CalledProcessError): pass
print(done)
`;
