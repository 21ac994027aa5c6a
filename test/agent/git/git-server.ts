/** Runs a real git server over HTTP for tests: git's own backend behind basic authentication, with repositories. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type GitServer = {
  origin: string;
  /** The authorization headers of all requests, in order. */
  authorizations: (string | undefined)[];
  /** Continues the requests that `hold` holds back, from the second one on. */
  release: () => void;
  hold: () => void;
  /** How many requests are held back now. */
  held: () => number;
  redirectTo: (origin: string | undefined) => void;
  close: () => Promise<void>;
};

const env = {
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b" },
  ...{ GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b" },
};

export function git(cwd: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd, env });
  if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  return String(stdout).trim();
}

/** A folder that holds `repo.git`: three commits on main, a branch `side`, a tag `v1`. */
export function makeRepository(): string {
  const root = mkdtempSync(join(tmpdir(), "berth-git-"));
  spawnSync("chmod", ["755", root]);
  const work = join(root, "work");
  git(root, "init", "-q", "-b", "main", "work");
  for (const n of [1, 2, 3]) {
    writeFileSync(join(work, "file"), `version ${n}\n`);
    writeFileSync(join(work, `only${n}`), `${n}\n`);
    git(work, "add", ".");
    git(work, "commit", "-q", "-m", `commit ${n}`);
    if (n === 1) git(work, "tag", "v1");
    if (n === 2) git(work, "branch", "side");
  }
  git(root, "clone", "-q", "--bare", "work", "repo.git");
  rmSync(work, { recursive: true });
  return root;
}

export async function serveGit(
  root: string,
  needed?: { username: string; password: string },
): Promise<GitServer> {
  const authorizations: (string | undefined)[] = [];
  let waiting: (() => void)[] = [];
  let holds = false;
  let elsewhere: string | undefined;
  const right =
    needed === undefined
      ? undefined
      : `Basic ${Buffer.from(`${needed.username}:${needed.password}`).toString("base64")}`;
  const server = createServer(async (request, response) => {
    const { authorization } = request.headers;
    authorizations.push(authorization);
    if (elsewhere !== undefined) {
      response.writeHead(302, { location: `${elsewhere}${request.url}` }).end();
      return;
    }
    if (right !== undefined && authorization !== right) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end("no");
      return;
    }
    if (holds) await new Promise<void>((go) => waiting.push(go));
    backend(root, request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorizations,
    hold: () => {
      holds = true;
    },
    release: () => {
      holds = false;
      for (const go of waiting) go();
      waiting = [];
    },
    held: () => waiting.length,
    redirectTo: (origin) => {
      elsewhere = origin;
    },
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

function backend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? "/", "http://server");
  const child = spawn("git", ["http-backend"], {
    env: {
      ...env,
      ...{ GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: "1", REQUEST_METHOD: request.method ?? "" },
      ...{ PATH_INFO: pathname, QUERY_STRING: search.slice(1), REMOTE_USER: "tester" },
      ...{ CONTENT_TYPE: request.headers["content-type"] ?? "", GIT_CONFIG_COUNT: "1" },
      ...{ GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" },
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(child.stdin);
  child.stdin.on("error", () => {});
  let head = Buffer.alloc(0);
  let isBody = false;
  child.stdout.on("data", (bytes: Buffer) => {
    if (isBody) {
      response.write(bytes);
      return;
    }
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    isBody = true;
    const lines = head.toString("latin1", 0, end).split("\r\n");
    const headers = Object.fromEntries(lines.map((line) => line.split(/: */, 2)));
    response.writeHead(Number.parseInt(headers.Status ?? "200", 10), headers);
    response.write(head.subarray(end + 4));
  });
  child.stdout.on("end", () => response.end());
}
