/**
 * Makes the user namespace of one sandbox, whose ids are its own range of the machine's, and later the mount namespace
 * that belongs to it. Root inside has rights over these two and over files of its range, and over nothing else: the
 * agent, its process, network and host name namespaces belong to the machine's root.
 *
 * One process makes both and ends: the namespaces live on in descriptors.
 */
import { closeSync, openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { type CallList, encodeCallList, readFailure } from "./call-list.ts";
import { createMemoryFile, openPipe } from "./descriptors.ts";
import { type IdRange, idsMapped, ownerOf } from "./id-range.ts";
import { mount } from "./kernel.ts";

const newMounts = 0x20000;
const newUser = 0x10000000;
const [setSecureBits, keepCapabilities] = [28, 1 << 2];

export type UserNamespace = {
  /** A descriptor of the user namespace. */
  user: number;
  /** Copies the mounts of this process into a mount namespace of the user namespace; returns a descriptor. */
  copyMounts(): number;
  /** Resolves after `copyMounts`, when the process that made both has ended. */
  over: Promise<unknown>;
};

/** `program`: a descriptor of the program of call-list.ts. */
export function makeUserNamespace(range: IdRange, program: number): UserNamespace {
  // Shows this process namespace, whose ids the maker has; the root of the sandbox gets one of its own.
  mount("proc", "/proc", "proc", 0n);
  const owner = ownerOf(range);
  const [stepRead, stepWrite] = openPipe();
  const [goRead, goWrite] = openPipe();
  const list: CallList = {
    errorFd: 1,
    calls: [
      ["setgroups", 0, 0],
      ["setresgid", owner, owner, owner],
      // Some machines let only the capable make user namespaces.
      ["prctl", setSecureBits, keepCapabilities],
      // What the kernel counts for a namespace counts for who made it: each sandbox is another user.
      ["setresuid", owner, owner, owner],
      ["unshare", newUser],
      ["write", 1, "u", 1],
      ["read", 0, new Uint8Array(8), 1],
      ["unshare", newMounts],
      ["write", 1, "m", 1],
      ["read", 0, new Uint8Array(8), 1],
    ],
  };
  const listFile = createMemoryFile(encodeCallList(list));
  const maker = Bun.spawn([`/proc/self/fd/${program}`], {
    stdio: [goRead, stepWrite, "inherit", listFile],
    env: {},
  });
  for (const fd of [goRead, stepWrite, listFile]) closeSync(fd);
  const awaitStep = () => {
    const step = Buffer.alloc(16);
    const length = readSync(stepRead, step);
    if (length === 1) return;
    const failure = readFailure(list, step.subarray(0, length));
    throw new Error(
      `a user namespace cannot be made: ${failure?.call?.[0]}, errno ${failure?.errno}`,
    );
  };
  const open = (name: string) => openSync(`/proc/${maker.pid}/ns/${name}`, "r");
  awaitStep();
  // The kernel takes each map in one write.
  const map = `0 ${range.first} ${idsMapped}\n`;
  writeFileSync(`/proc/${maker.pid}/gid_map`, map);
  writeFileSync(`/proc/${maker.pid}/uid_map`, map);
  return {
    user: open("user"),
    over: maker.exited,
    copyMounts() {
      writeSync(goWrite, "m");
      awaitStep();
      const mounts = open("mnt");
      for (const fd of [goWrite, stepRead]) closeSync(fd);
      return mounts;
    },
  };
}
