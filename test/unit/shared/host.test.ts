import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import type { ObjectHost } from "../../../src/objects/shared/host.ts";
import { transaction } from "../../fakes/transaction.ts";

describe("a transaction of an object", () => {
  it("refuses async work at compile time, and commits synchronous work", () => {
    const rows = new DatabaseSync(":memory:");
    const host: Pick<ObjectHost, "transaction"> = {
      transaction: <T>(work: () => T) => transaction(rows, work),
    };
    expect(host.transaction(() => 7)).toBe(7);
    expect(host.transaction(() => {})).toBeUndefined();
    // @ts-expect-error: what an async function writes after its first await would be outside of the transaction.
    void host.transaction(async () => 7);
    // @ts-expect-error: the same for a function that returns a promise.
    void host.transaction(() => Promise.resolve(7));
  });
});
