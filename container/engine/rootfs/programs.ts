/** Writes programs that Berth brings along: one that enters the namespaces of a sandbox, and its `sudo`. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { callListProgram, sudoProgram } from "../jail/call-list.ts";
import type { DataFolders } from "./folders.ts";
import { sudoScript } from "./sudo-script.ts";

export function callListPath({ programs }: DataFolders): string {
  return `${programs}/call-list`;
}

/** A layer over /usr. A `sudo` that is installed inside replaces it. */
export function sudoLayer({ programs }: DataFolders): string {
  return `${programs}/usr`;
}

const sudoScriptPath = "libexec/berth-sudo";
const [executable, setUserId] = [0o755, 0o4755];

export function writePrograms(folders: DataFolders): void {
  const layer = sudoLayer(folders);
  const write = (path: string, contents: string | Uint8Array, mode: number) => {
    writeFileSync(path, contents);
    chmodSync(path, mode);
  };
  for (const folder of ["bin", "libexec"]) mkdirSync(`${layer}/${folder}`, { recursive: true });
  write(callListPath(folders), callListProgram(), executable);
  write(`${layer}/${sudoScriptPath}`, sudoScript, executable);
  write(`${layer}/bin/sudo`, sudoProgram(`/usr/${sudoScriptPath}`), setUserId);
}
