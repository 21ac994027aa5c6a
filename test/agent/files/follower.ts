/** Follows a watch as a caller would, and stores its events. */
import { expect } from "vitest";
import { fileChangesSchema } from "../../../src/protocol/file.ts";
import { until } from "../../until.ts";
import type { Agent } from "../agent.ts";
import { queryOf } from "./files.ts";

export class Follower {
  readonly events: { name: string; data: unknown }[] = [];
  readonly view = new Map<string, string>();
  ended = false;
  readonly #caller = new AbortController();

  static async open(agent: Agent, path: string, more: Record<string, string> = {}) {
    const follower = new Follower();
    const response = await agent.request(`/v1/files/watch?${queryOf({ path, ...more })}`, {
      signal: follower.#caller.signal,
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    follower.#read(response).catch(() => {});
    await until("it is ready", () => follower.events[0]?.name === "ready");
    return follower;
  }

  close(): void {
    this.#caller.abort();
  }

  has(name: string): boolean {
    return this.events.some((event) => event.name === name);
  }

  async #read(response: Response): Promise<void> {
    let held = "";
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
      held += Buffer.from(bytes).toString();
      const blocks = held.split("\n\n");
      held = blocks.pop() ?? "";
      for (const block of blocks) this.#take(block);
    }
    this.ended = true;
  }

  #take(block: string): void {
    const [, name = "", text = ""] = /^event: (\w+)\ndata: (.*)$/s.exec(block) ?? [];
    if (name === "") return;
    const data: unknown = JSON.parse(text);
    this.events.push({ name, data });
    if (name !== "change") return;
    for (const { path, what, kind } of fileChangesSchema.parse(data).changes) {
      if (what !== "removed") this.view.set(path, kind);
      else {
        for (const known of this.view.keys()) {
          if (known === path || known.startsWith(`${path}/`)) this.view.delete(known);
        }
      }
    }
  }
}
