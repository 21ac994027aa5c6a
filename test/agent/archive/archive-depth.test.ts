/** Archives of trees that are deeper than a path reaches. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Agent } from "../agent.ts";
import { expectNothingLeft } from "../files/files.ts";
import { Archives } from "./archives.ts";

const depth = 5_000;
const blockBytes = 512;

describe("archives of deep trees", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const archives = new Archives(agent);
  expectNothingLeft(agent, () => archives.bytes("."));

  test(`[AR14] ${depth} nested folders are downloaded with what is in the last one, and need few descriptors`, async () => {
    const make = `mkdir 'deep'; chdir 'deep'; for (1..${depth}) { mkdir 'd'; chdir 'd' } exec 'touch', 'a', 'file'`;
    expect((await agent.exec({ argv: ["perl", "-e", make] })).exitCode).toBe(0);
    const before = agent.descriptors();
    const response = await archives.get("deep");
    expect(response.status).toBe(200);
    const chunks: Uint8Array[] = [];
    let descriptors = 0;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      descriptors = Math.max(descriptors, agent.descriptors());
    }
    expect(descriptors - before).toBeLessThan(200);
    const names = namesIn(Buffer.concat(chunks));
    const last = `./${"d/".repeat(depth)}`;
    expect(names.length).toBe(depth + 3);
    expect(names).toContain(`${last}file`);
    expect(names).toContain(`${last}a`);
    rmSync(join(agent.workspace, "deep"), { recursive: true });
  });
});

/** The paths of the members of a tar, which for long ones are in a pax header before them. */
function namesIn(tar: Buffer): string[] {
  const names: string[] = [];
  let long: string | undefined;
  for (let offset = 0; tar[offset] !== 0 && offset < tar.length; ) {
    const text = (start: number, length: number) =>
      tar.toString("latin1", offset + start, offset + start + length).replace(/\0.*$/s, "");
    const size = Number.parseInt(text(124, 12), 8);
    const body = tar.subarray(offset + blockBytes, offset + blockBytes + size);
    if (text(156, 1) === "x") long = /\d+ path=(.*)\n/.exec(body.toString("latin1"))?.[1];
    else {
      names.push(long ?? text(0, 100));
      long = undefined;
    }
    offset += blockBytes + Math.ceil(size / blockBytes) * blockBytes;
  }
  return names;
}
