/**
 * The package as its users have it: packed from a copy of the sources and installed in an empty project.
 */
import { execFile, execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root, tools } from "../../../container/launch/paths.js";
import { copyOfSources } from "../server/checkout.ts";
import { cleanEnvironment } from "../server.ts";

/** A limit for a hang: packing compiles the types of the whole protocol twice. */
const timeoutMs = 240_000;

export type ProgramResult = { code: number; stdout: string; stderr: string };

export class InstalledPackage {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async fromSources(): Promise<InstalledPackage> {
    const copy = copyOfSources();
    const folder = mkdtempSync(join(tmpdir(), "berth-consumer-"));
    try {
      symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
      // What this tier has built of the same sources is not built again.
      for (const name of ["berth-agent", "agent.stamp", "worker", "worker.stamp"]) {
        cpSync(join(root, "dist", name), join(copy, "dist", name), { recursive: true });
      }
      const packed = await runProgram("npm", ["pack", "--pack-destination", folder], copy);
      if (packed.code !== 0) throw new Error(`npm pack ended: ${packed.stderr}`);
      const [tarball = ""] = readdirSync(folder);
      const project = join(folder, "project");
      mkdirSync(project);
      writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
      const args = ["install", "--offline", "--omit=optional", "--no-audit", "--no-fund"];
      const installed = await runProgram("npm", [...args, join(folder, tarball)], project);
      if (installed.code !== 0) throw new Error(`npm install ended: ${installed.stderr}`);
      return new InstalledPackage(folder);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }

  /** As npm would have installed them, from what the checkout has. */
  addOptionalPackages(): void {
    for (const name of ["bun", "workerd", "@oven", "@cloudflare"]) {
      symlinkSync(join(root, "node_modules", name), join(this.project, "node_modules", name));
    }
  }

  get project(): string {
    return join(this.folder, "project");
  }

  get package(): string {
    return join(this.project, "node_modules/@berth-sandbox/berth");
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.project, name), text);
  }

  /** With the machine's own programs, not those of the checkout. */
  run(program: string, args: string[], env: Record<string, string> = {}): Promise<ProgramResult> {
    return runProgram(program, args, this.project, env);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The SDK as one file. */
export function bundledSdk(sources: string, folder: string): string {
  const file = join(folder, "client.js");
  const args = ["build", "--format=esm", "--target=browser", "--outfile", file];
  execFileSync(tools.bun, [...args, join(sources, "src/client/index.ts")], { timeout: timeoutMs });
  return file;
}

async function runProgram(
  program: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<ProgramResult> {
  const options = { cwd, env: cleanEnvironment(env), timeout: timeoutMs, maxBuffer: 2 ** 26 };
  try {
    return { code: 0, ...(await promisify(execFile)(program, args, options)) };
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as Partial<ProgramResult>;
    return { code: typeof code === "number" ? code : -1, stdout, stderr: stderr || String(error) };
  }
}
