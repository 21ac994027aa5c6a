/** `berth events`: what happened to a sandbox, oldest first. */
import { flag, wholeNumber } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { findExistingSandbox } from "../find-sandbox.ts";

const shown = 20;
const shownMax = 10_000;

export const eventsCommand = command({
  name: "events",
  summary: "Print what happened to the sandbox",
  group: "Sandbox",
  options: {
    ...sandboxOptions,
    follow: flag("-f, --follow", "Continue with new events until the sandbox is removed"),
    last: wholeNumber("--last <count>", `How many of the newest (default: ${shown})`, {
      min: 0,
      max: shownMax,
    }),
  },
  examples: [
    ["The newest", "berth events"],
    ["As they happen", "berth events -f"],
  ],
  json: "Print JSON documents on stdout, one per line",
  async run(context, { options: { follow, last = shown, ...which } }) {
    const { sandbox } = await findExistingSandbox(context, which);
    const newest: Entry[] = [];
    let after = 0;
    for await (const next of sandbox.events({ follow: false })) {
      if (next.type !== "event") continue;
      after = next.seq;
      newest.push(next);
      if (newest.length > last) newest.shift();
    }
    for (const entry of newest) print(context, entry);
    if (!follow) return;
    for await (const next of sandbox.events({ after })) {
      if (next.type === "event") print(context, next);
    }
  },
});

type Entry = { seq: number; at: string; event: { type: string } };

function print({ output, json }: Context, entry: Entry): void {
  if (json) {
    output.printJson(entry);
    return;
  }
  const { at, event } = entry;
  const { type, ...facts } = event;
  const text = Object.entries(facts).map(([name, value]) => `${name}=${formatValue(value)}`);
  output.print([at, type.padEnd(typeColumns), ...text].join("  ").trimEnd());
}

const typeColumns = 10;

function formatValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
