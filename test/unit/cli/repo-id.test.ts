import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { normaliseRemote, readOrCreateId } from "../../../src/cli/checkout/repo-id.ts";

describe("the repository of a checkout", () => {
  it.each([
    ["https://github.com/owner/name"],
    ["https://github.com/owner/name.git"],
    ["https://github.com/owner/name.git/"],
    ["https://user@github.com/owner/name"],
    ["https://user:secret@GitHub.com:443/owner/name.git"],
    ["http://github.com:80/owner/name"],
    ["ssh://git@github.com/owner/name.git"],
    ["ssh://git@github.com:22//owner/name"],
    ["git+ssh://git@github.com/owner/name.git"],
    ["git://github.com/owner/name"],
    ["git@github.com:owner/name.git"],
    ["git@GITHUB.com:/owner/name"],
    ["github.com:owner/name.git"],
    [" git@github.com:owner/name.git\n"],
  ])("[CL9] %j is github.com/owner/name", (written) => {
    expect(normaliseRemote(written)).toBe("github.com/owner/name");
  });

  it.each([
    ["https://github.com/owner/Name", "github.com/owner/Name"],
    ["https://git.example.com:8443/a/b", "git.example.com:8443/a/b"],
    ["ssh://git@git.example.com:7999/a/b.git", "git.example.com:7999/a/b"],
    ["https://example.com/~me/a%20b.git", "example.com/~me/a b"],
    ["git@[::1]:a/b.git", "[::1]/a/b"],
    ["https://example.com/a/git.git", "example.com/a/git"],
  ])("[CL9] %j is %j", (written, repo) => {
    expect(normaliseRemote(written)).toBe(repo);
  });

  it.each([
    ["/srv/git/name.git"],
    ["../name"],
    ["./a:b"],
    ["file:///srv/git/name.git"],
    ["C:\\src\\name"],
    ["https://example.com/"],
    [""],
  ])("[CL9] %j names a place on one machine: no other machine means the same by it", (written) => {
    expect(normaliseRemote(written)).toBeUndefined();
  });

  it("[CL9] all forms of one address are equal, and two addresses differ", () => {
    const part = fc
      .stringMatching(/^[a-z0-9][a-z0-9._-]{0,12}[a-z0-9]$/)
      .filter((text) => !text.endsWith(".git"));
    const host = fc.stringMatching(/^[a-z]{2,10}\.(com|org)$/);
    const forms = (hostName: string, path: string) => [
      `https://${hostName}/${path}`,
      `https://me:word@${hostName.toUpperCase()}/${path}.git`,
      `ssh://git@${hostName}/${path}.git`,
      `git@${hostName}:${path}`,
    ];
    fc.assert(
      fc.property(host, part, part, host, part, part, (h1, a1, b1, h2, a2, b2) => {
        const ids = new Set(forms(h1, `${a1}/${b1}`).map(normaliseRemote));
        expect([...ids]).toEqual([`${h1}/${a1}/${b1}`]);
        const isSame = h1 === h2 && a1 === a2 && b1 === b2;
        const [other] = forms(h2, `${a2}/${b2}`);
        expect(ids.has(normaliseRemote(other ?? ""))).toBe(isSame);
      }),
    );
  });
});

describe("a repository without a remote", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-id-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("[CL9] has an id that is generated once and stored in its git folder", () => {
    const id = readOrCreateId(folder);
    expect(id).toMatch(/^id\/[0-9a-f]{24}$/);
    expect(readOrCreateId(folder)).toBe(id);
    expect(`id/${readFileSync(join(folder, "berth/id"), "utf8").trim()}`).toBe(id);
    const other = mkdtempSync(join(tmpdir(), "berth-id-"));
    expect(readOrCreateId(other)).not.toBe(id);
    rmSync(other, { recursive: true });
  });

  it("[CL9] generates another if the stored text is not an id", () => {
    readOrCreateId(folder);
    writeFileSync(join(folder, "berth/id"), "half an");
    const id = readOrCreateId(folder);
    expect(id).toMatch(/^id\/[0-9a-f]{24}$/);
    expect(readOrCreateId(folder)).toBe(id);
  });
});
