/** Says what a sync has kept before it replaced it, in one line each. */
import type { Context } from "../context.ts";
import type { Synced } from "../sync/sync.ts";
import { formatPaths } from "./report.ts";

/** What happens to work in a terminal, and to copies. */
export const nextExecWords =
  "The next `berth exec` replaces the files by this checkout's; what only the sandbox has it keeps first. `berth pull` fetches it.";

export function reportKept({ output, json }: Pick<Context, "output" | "json">, sent: Synced): void {
  if (json) return;
  for (const { below, kept, left, aside } of sent.news) {
    const there = below === "" ? "" : ` in ${below}:`;
    for (const { number, paths, commits } of kept) {
      const files = paths.length === 0 ? [] : [formatPaths(paths)];
      const history = commits === 0 ? [] : [commits === 1 ? "1 commit" : `${commits} commits`];
      const what = [...files, ...history].join(" and ");
      output.info(`Only the sandbox had${there} ${what}: kept. See \`berth kept show ${number}\`.`);
    }
    if (left.length > 0) {
      output.info(`Still in the sandbox, with work of its own:${there} ${formatPaths(left)}.`);
    }
    if (aside.length > 0) {
      output.info(
        `Made room in the sandbox; the repository is now at${there} ${formatPaths(aside)}.`,
      );
    }
  }
}

/** With `--json`, as part of the document. */
export function toKeptDocument({ news }: Synced): unknown {
  return news.flatMap(({ below, kept }) =>
    kept.map(({ number, paths, commits }) => ({ number, repository: below, paths, commits })),
  );
}
