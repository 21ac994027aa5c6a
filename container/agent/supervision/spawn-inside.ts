/**
 * Spawns one process inside the namespaces of commands, through the program of call-list.ts, which enters them, becomes
 * the user and then the command.
 */
import { closeSync, readSync } from "node:fs";
import { constants } from "node:os";
import {
  type CallList,
  encodeCallList,
  readFailure,
  type SystemCall,
} from "../../engine/jail/call-list.ts";
import { createMemoryFile, openPipe } from "../../engine/jail/descriptors.ts";
import type { CommandNamespaces } from "../../engine/jail/enter.ts";
import { ownerOf } from "../../engine/jail/id-range.ts";
import { refusedCapabilities } from "../../engine/jail/refused-capabilities.ts";
import type { Launch } from "./process-tree.ts";

/** Descriptors of the program; 0, 1 and 2 belong to the command, and 3 is its list. */
const fd = { user: 4, mounts: 5, failure: 6, program: 7, first: 3 } as const;
const namespace = { user: 0x10000000, mounts: 0x20000 } as const;
const [dropFromBoundingSet, setNoNewPrivileges] = [24, 38];
const [lastFd, closeOnExec] = [0xffffffff, 4];

/** Waits for the execve, whose error it throws. */
export function spawnInside(launch: Launch, namespaces: CommandNamespaces) {
  const list: CallList = {
    calls: callsFor(launch, namespaces),
    path: launch.program,
    errorFd: fd.failure,
  };
  const encoded = encodeCallList(list);
  const [failureRead, failureWrite] = openPipe();
  const opened = [failureWrite];
  try {
    const listFile = createMemoryFile(encoded);
    opened.push(listFile);
    const { user, mounts, program } = namespaces;
    const owner = ownerOf(namespaces);
    const child = Bun.spawn([`/proc/self/fd/${fd.program}`, ...launch.argv.slice(1)], {
      argv0: launch.argv[0] ?? launch.program,
      cwd: "/",
      env: launch.env,
      // biome-ignore format: in the order of `fd`
      stdio: [launch.stdin, launch.stdout, launch.stderr, listFile, user, mounts, failureWrite, program],
      // The owner of the namespace may enter it, and has no other right.
      ...{ uid: owner, gid: owner },
    });
    // The last other writer is the child, which closes its end by becoming the command.
    for (const own of opened.splice(0)) closeSync(own);
    const written = Buffer.alloc(16);
    const failure = readFailure(list, written.subarray(0, readSync(failureRead, written)));
    if (failure !== undefined) throw errorOf(failure, launch);
    return child;
  } finally {
    for (const own of [failureRead, ...opened]) closeSync(own);
  }
}

function callsFor({ cwd, user, groups = [] }: Launch, namespaces: CommandNamespaces): SystemCall[] {
  const { first, sudo } = namespaces;
  const inside = (id: number | undefined) => (id ?? first) - first;
  const [uid, gid] = [inside(user?.uid), inside(user?.gid)];
  const groupIds = new Uint8Array(Uint32Array.from(groups.map(inside)).buffer);
  return [
    ["setns", fd.user, namespace.user],
    ["setns", fd.mounts, namespace.mounts],
    ["setgroups", groups.length, groupIds],
    ["setresgid", gid, gid, gid],
    // Root first: the kernel takes the capabilities from who was root and is another user.
    ["setresuid", 0, 0, 0],
    ...refusedCapabilities.map((number): SystemCall => ["prctl", dropFromBoundingSet, number]),
    ...(uid === 0 ? [] : [["setresuid", uid, uid, uid] as const]),
    ...(sudo || uid === 0 ? [] : [["prctl", setNoNewPrivileges, 1] as const]),
    ["chdir", cwd],
    ["close_range", fd.first, lastFd, closeOnExec],
  ];
}

/** Looks like the error of a spawn without namespaces. */
function errorOf({ call, errno }: { call: SystemCall | undefined; errno: number }, launch: Launch) {
  const code = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0];
  const step = call === undefined ? launch.program : call.slice(0, 2).join(" ");
  return Object.assign(new Error(`${step}: ${code ?? errno}`), { code, errno });
}
