/** Reads the steps of a template: what runs in its build, and what its sandboxes have by default. */
import type { TemplateStep } from "../../protocol/template.ts";

export type TemplateDefaults = {
  env: Record<string, string>;
  cwd?: string | undefined;
  user?: string | undefined;
};

/** One program of a build, with all that earlier steps set for it. */
export type BuildAction = TemplateDefaults & {
  /** Stands before its output in the log. */
  label: string;
  command?: string;
  argv?: string[];
};

const workspace = "/workspace";
const labelCharsMax = 200;

/** `inherited`: what the origin of the build gives its sandboxes. */
export function readSteps(
  steps: readonly TemplateStep[],
  inherited: TemplateDefaults,
): { actions: BuildAction[]; defaults: TemplateDefaults } {
  const actions: BuildAction[] = [];
  let defaults = inherited;
  for (const { run, env, user, cwd } of steps) {
    if (env !== undefined) defaults = { ...defaults, env: { ...defaults.env, ...env } };
    if (user !== undefined) defaults = { ...defaults, user };
    if (cwd !== undefined) {
      const folder = joinPath(defaults.cwd ?? workspace, cwd);
      // Runs elsewhere: the folder before it may be one that is missing.
      const makeFolder = { argv: ["mkdir", "-p", "--", folder], cwd: "/" };
      actions.push({ ...defaults, ...makeFolder, label: `cwd ${folder}` });
      defaults = { ...defaults, cwd: folder };
    }
    if (run !== undefined) {
      const program = typeof run === "string" ? { command: run } : { argv: run };
      const label = cut(`run ${typeof run === "string" ? run : run.join(" ")}`);
      actions.push({ ...defaults, ...program, label });
    }
  }
  return { actions, defaults };
}

function joinPath(base: string, path: string): string {
  if (path.startsWith("/")) return path;
  return `${base.replace(/\/+$/, "")}/${path}`;
}

function cut(text: string): string {
  const line = text.trim().replaceAll(/\s*\n\s*/g, "; ");
  return line.length > labelCharsMax ? `${line.slice(0, labelCharsMax)}…` : line;
}
