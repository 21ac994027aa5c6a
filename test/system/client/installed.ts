/**
 * Owns the package as somebody has it who installed it: packed from a copy of the sources, in an empty project.
 * Does not own what is done with it there.
 */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root, tools } from "../../../container/launch/paths.js";
import { copyOfSources } from "../server/checkout.ts";
import { cleanEnvironment } from "../server.ts";

const withinMs = 60_000;

export type Ran = { code: number; stdout: string; stderr: string };

export class Installed {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async fromSources(): Promise<Installed> {
    const copy = copyOfSources();
    const folder = mkdtempSync(join(tmpdir(), "berth-consumer-"));
    try {
      symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
      const packed = await ran("npm", ["pack", "--pack-destination", folder], copy);
      if (packed.code !== 0) throw new Error(`npm pack ended: ${packed.stderr}`);
      const [tarball = ""] = readdirSync(folder);
      const project = join(folder, "project");
      mkdirSync(project);
      writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
      const args = ["install", "--offline", "--no-audit", "--no-fund", join(folder, tarball)];
      const installed = await ran("npm", args, project);
      if (installed.code !== 0) throw new Error(`npm install ended: ${installed.stderr}`);
      return new Installed(folder);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }

  get project(): string {
    return join(this.folder, "project");
  }

  get package(): string {
    return join(this.project, "node_modules/berth");
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.project, name), text);
  }

  /** By the machine's own programs, not by those of the checkout. */
  run(program: string, args: string[], env: Record<string, string> = {}): Promise<Ran> {
    return ran(program, args, this.project, env);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The SDK alone, as one file. */
export function bundledSdk(sources: string, folder: string): string {
  const file = join(folder, "client.js");
  const how = ["build", "--format=esm", "--target=browser", "--outfile", file];
  execFileSync(tools.bun, [...how, join(sources, "src/client/index.ts")], { timeout: withinMs });
  return file;
}

async function ran(
  program: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<Ran> {
  const options = { cwd, env: cleanEnvironment(env), timeout: withinMs, maxBuffer: 2 ** 26 };
  try {
    return { code: 0, ...(await promisify(execFile)(program, args, options)) };
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as Partial<Ran>;
    return { code: typeof code === "number" ? code : -1, stdout, stderr: stderr || String(error) };
  }
}
