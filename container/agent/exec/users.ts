/** Finds the users of the sandbox in its /etc/passwd and /etc/group, which root inside may have written. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { idsMapped, outside } from "../../engine/jail/id-range.ts";
import { withUserRights } from "../kernel/libc.ts";
import { refuse } from "../server/fields.ts";
import { defaultUser, type Identity, type SandboxEnv } from "./sandbox-env.ts";

const fileBytesMax = 1024 * 1024;
const groupsMax = 256;
const root = { name: "root", uid: 0, gid: 0, home: "/root" };

type Entry = { name: string; uid: number; gid: number; home: string };

/** The sandbox as a user sees it. `user`: a name, `uid` or `uid:gid`; undefined: the default user. */
export function asUser(sandboxEnv: SandboxEnv, user: string | undefined): SandboxEnv {
  const { ids } = sandboxEnv;
  if (user === undefined || user === sandboxEnv.name) return sandboxEnv;
  if (ids === undefined) {
    throw new BerthError("unsupported", `user: Commands run as ${defaultUser} on this machine.`, {
      hint: "Leave `user` out, or run Berth as root on a machine that can give sandboxes ids of their own.",
      facts: { field: "user" },
    });
  }
  const entry = findUser(sandboxEnv, user);
  const identity: Identity = {
    ...{ name: entry.name, home: entry.home },
    user: { uid: outside(ids, entry.uid), gid: outside(ids, entry.gid) },
    groups: groupsOf(sandboxEnv, entry).map((gid) => outside(ids, gid)),
    lookup: undefined,
  };
  if (entry.uid !== 0) identity.lookup = identity.user;
  return { ...sandboxEnv, ...identity };
}

function findUser(sandboxEnv: SandboxEnv, user: string): Entry {
  const [first = "", group] = user.split(":");
  const isNumber = /^\d+$/.test(first);
  const found = readEntries(sandboxEnv, "/etc/passwd")
    .map(([name = "", , uid, gid, , home]) => {
      return { name, uid: Number(uid), gid: Number(gid), home: home || "/" };
    })
    .find((entry) => (isNumber ? entry.uid === Number(first) : entry.name === first));
  const entry = found ?? (first === "root" || first === "0" ? root : undefined);
  if (entry === undefined && !isNumber) {
    refuse("user", `${user} is not in the sandbox's /etc/passwd; use one of its names, or uid:gid`);
  }
  const uid = entry?.uid ?? Number(first);
  const gid = group === undefined ? (entry?.gid ?? uid) : Number(group);
  for (const id of [uid, gid]) {
    if (!Number.isInteger(id) || id < 0 || id >= idsMapped)
      refuse("user", `has the id ${id}; a sandbox has ids up to ${idsMapped - 1}`);
  }
  return { name: entry?.name ?? first, uid, gid, home: entry?.home ?? "/" };
}

function groupsOf(sandboxEnv: SandboxEnv, { name }: Entry): number[] {
  return readEntries(sandboxEnv, "/etc/group")
    .filter(([, , , members = ""]) => members.split(",").includes(name))
    .map(([, , gid]) => Number(gid))
    .filter((gid) => Number.isInteger(gid) && gid >= 0 && gid < idsMapped)
    .slice(0, groupsMax);
}

/** The fields of each line; none where the default user cannot read a regular file of that name. */
function readEntries({ user }: SandboxEnv, path: string): string[][] {
  try {
    const text = withUserRights(user, () => readRegularFile(path));
    return text.split("\n").map((line) => line.split(":"));
  } catch {
    return [];
  }
}

function readRegularFile(path: string): string {
  // A pipe of this name would otherwise stop the agent.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!fstatSync(fd).isFile()) throw new Error(`${path} is not a regular file`);
    const bytes = Buffer.alloc(fileBytesMax);
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}
