/** `berth gc`: removes from `.git/berth` what no state and no kept work needs. */
import { flag } from "../args/option.ts";
import { readCheckout } from "../checkout/checkout.ts";
import { command } from "../command.ts";
import { formatSize } from "../output/format.ts";
import { dropKept, listKept } from "../sync/kept-work.ts";
import { openRepository } from "../sync/repository.ts";
import { measureStore, pruneStore } from "../sync/store-size.ts";

export const gcCommand = command({
  name: "gc",
  summary: "Remove what is no longer needed from `.git/berth`",
  group: "Sandbox",
  about:
    "It also runs by itself after a sync when the folder has grown. What `berth kept` lists stays unless `--kept` is given.",
  options: { kept: flag("--kept", "Remove all kept work, too (see `berth kept`)") },
  examples: [["After large files", "berth gc"]],
  async run(context, { options }) {
    const { folder } = readCheckout(context.cwd, false);
    const repository = await openRepository(folder, context.interrupts.requested);
    const before = measureStore(repository);
    context.progress.show("Removing what is no longer needed");
    if (options.kept) {
      for (const { number } of await listKept(repository)) await dropKept(repository, number);
    }
    await pruneStore(repository);
    context.progress.end();
    const after = measureStore(repository);
    const text = `.git/berth has ${formatSize(after)}; it had ${formatSize(before)}.`;
    context.output.printResult({ bytesBefore: before, bytesAfter: after }, text);
  },
});
