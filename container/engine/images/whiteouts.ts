/** Turns the marks by which an image layer deletes files of lower layers into those of overlayfs. */
import { dlopen, FFIType } from "bun:ffi";
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const prefix = ".wh.";
const opaqueMark = ".wh..wh..opq";
const characterDevice = 0o020000;

let libc: ReturnType<typeof openLibc> | undefined;

/** Walks without following links. `.wh.name` deletes a name, `.wh..wh..opq` all that lower layers have in its folder. */
export function markDeletions(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name === opaqueMark) {
      rmSync(path, { recursive: true });
      makeOpaque(folder);
    } else if (entry.name.startsWith(prefix)) {
      rmSync(path, { recursive: true });
      deleteName(folder, entry.name.slice(prefix.length));
    } else if (entry.isDirectory()) {
      markDeletions(path);
    }
  }
}

/** A folder of the same layer replaces the one below it; any other file hides it already. */
function deleteName(folder: string, name: string): void {
  // Names with a slash cannot be in an archive's entry; these two would be the folder itself or its parent.
  if (name === "" || name === "." || name === "..") return;
  const path = join(folder, name);
  const present = lstatSync(path, { throwIfNoEntry: false });
  if (present?.isDirectory()) makeOpaque(path);
  if (present !== undefined) return;
  libc ??= openLibc();
  if (libc.mknod(cString(path), characterDevice, 0n) !== 0) throw new Error(`mknod ${path} failed`);
}

function makeOpaque(path: string): void {
  libc ??= openLibc();
  const [name, value] = [cString("trusted.overlay.opaque"), Buffer.from("y")];
  if (libc.lsetxattr(cString(path), name, value, 1n, 0) !== 0)
    throw new Error(`lsetxattr ${path} failed`);
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

function openLibc() {
  return dlopen("libc.so.6", {
    mknod: { args: [FFIType.ptr, FFIType.u32, FFIType.u64], returns: FFIType.i32 },
    lsetxattr: {
      args: [FFIType.ptr, FFIType.ptr, FFIType.ptr, FFIType.u64, FFIType.i32],
      returns: FFIType.i32,
    },
  }).symbols;
}
