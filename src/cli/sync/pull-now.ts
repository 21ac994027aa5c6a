/** Fetches what a sandbox has changed since checkout and sandbox last agreed, without sending anything first. */
import { join } from "node:path";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { Failure } from "../failure.ts";
import { readCheckoutState } from "./checkout-state.ts";
import { displayName } from "./git.ts";
import { type PullResult, pullRepository } from "./pull.ts";
import { openRepository, type Repository } from "./repository.ts";
import { runScript, type SyncCallOptions, type SyncTarget } from "./run-script.ts";
import { readAgreedScript } from "./sandbox-scripts.ts";
import { joinPulled } from "./sync.ts";

type PullNowOptions = SyncCallOptions & { restoredAt?: string | undefined };

export async function pullNow(
  sandbox: SandboxHandle,
  folder: string,
  { restoredAt, ...options }: PullNowOptions,
): Promise<PullResult> {
  const target = { sandbox, options };
  const outermost = await openRepository(folder, options.signal);
  const pulled = await pullTree(target, outermost, "/workspace", restoredAt, "");
  return joinPulled(pulled);
}

async function pullTree(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  restoredAt: string | undefined,
  below: string,
): Promise<{ below: string; pulled: PullResult }[]> {
  const { nested } = await readCheckoutState(repository);
  const sent = await findAgreed(target, repository, folder, restoredAt);
  if (sent === undefined) {
    // A nested repository that was never sent has nothing to fetch.
    if (below !== "") return [];
    throw new Failure(
      "This checkout was never sent to the sandbox, so there is nothing to compare.",
      {
        hint: "Run `berth push` first, or fetch single files with `berth cp`.",
        code: "sync_failed",
      },
    );
  }
  const all = [{ below, pulled: await pullRepository(target, repository, folder, sent) }];
  for (const name of nested.map(displayName)) {
    const inner = await openRepository(join(repository.top, name), target.options.signal);
    const innerFolder = `${folder}/${name}`;
    all.push(...(await pullTree(target, inner, innerFolder, restoredAt, join(below, name))));
  }
  return all;
}

/** The files on which both sides agreed last. What is unknown here counts as changed here too, so nothing is overwritten. */
async function findAgreed(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  restoredAt: string | undefined,
) {
  const args = [folder, restoredAt ?? "-"];
  const output = await runScript(target, readAgreedScript, args).catch((thrown: unknown) => {
    if (thrown instanceof Failure && thrown.code === "nothing_sent") return undefined;
    throw thrown;
  });
  if (output === undefined) return undefined;
  const lines = output.toString("latin1").trim().split("\n");
  const [home = "-", commit = "-", state = "-", restored = ""] = lines;
  const isRestored = restored === "restored";
  // Another checkout may have sent last. What this one sent before says nothing about the files that are there now.
  const isOurs = isRestored || state === (await findId(repository, "refs/berth/state"));
  const candidates = [...(isRestored ? [] : [home]), ...(isOurs ? ["refs/berth/state:w"] : [])];
  for (const candidate of candidates) {
    const files = await findId(repository, candidate);
    if (files !== undefined && (await hasTree(repository, files))) {
      return {
        files,
        ...(commit !== "-" && { commit }),
        ...(isRestored && restoredAt && { restoredAt }),
      };
    }
  }
  const empty = await repository.raw.text(["hash-object", "-t", "tree", "-w", "--stdin"], {
    input: "",
  });
  return { files: empty, ...(commit !== "-" && { commit }) };
}

async function findId({ raw }: Repository, name: string): Promise<string | undefined> {
  const args = ["rev-parse", "--quiet", "--verify", name];
  const { code, stdout } = await raw.run(args, { okCodes: [1, 128] });
  return code === 0 ? stdout.toString().trim() : undefined;
}

async function hasTree({ raw }: Repository, id: string): Promise<boolean> {
  return (await raw.run(["cat-file", "-e", id], { okCodes: [1, 128] })).code === 0;
}
