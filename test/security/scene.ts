/**
 * Makes the sandboxes that bad calls are sent to, the values of their placeholders, and reads all that can be seen of them.
 */
import { join } from "node:path";
import { Attacked, otherKey } from "./attacked-server.ts";
import { rowsBelow } from "./rows.ts";

const ticket = "ticket-that-was-released";
const leaseMs = 300_000;

export class Scene implements AsyncDisposable {
  readonly berth: Attacked;
  /** What `${name}` of a row stands for. */
  readonly names: Record<string, string>;

  private constructor(berth: Attacked, names: Record<string, string>) {
    this.berth = berth;
    this.names = names;
  }

  /** `held` is leased; `asleep` has no container; `foreign` is another tenant's; `destroyed` was one. */
  static async set(): Promise<Scene> {
    const berth = await Attacked.start();
    try {
      const held = await berth.create({ metadata: { a: "1", b: "2", c: "3" } });
      const lease = async (id: string, call: object = {}) =>
        String((await berth.ok("POST", `/v1/sandboxes/${id}/lease`, call)).token);
      const released = await lease(held, { ticket });
      await berth.ok("DELETE", `/v1/sandboxes/${held}/lease`, undefined, {
        headers: { "berth-lease": released },
      });
      const asleep = await berth.create({ start: false, metadata: { a: "1", b: "2", c: "3" } });
      const destroyedId = await berth.create({ start: false });
      const destroyed = await lease(destroyedId);
      await berth.ok("DELETE", `/v1/sandboxes/${destroyedId}?force=true`);
      const foreign = await berth.create({ start: false }, otherKey);
      await berth.ok("PUT", "/v1/plans/mine", {});
      const others = await lease(asleep);
      await berth.ok("DELETE", `/v1/sandboxes/${asleep}/lease`, undefined, {
        headers: { "berth-lease": others },
      });
      const mine = await lease(held, { holder: "the holder", ttlMs: leaseMs });
      const invented = `${held.slice(0, -8)}${"a".repeat(8)}`;
      const secrets = { mine, released, others, destroyed };
      return new Scene(berth, {
        ...secrets,
        held,
        asleep,
        gone: destroyedId,
        foreign,
        invented,
        otherKey,
      });
    } catch (thrown) {
      await berth.end();
      throw thrown;
    }
  }

  /** Everything of both tenants that a call could have changed: sandboxes, lists, objects, containers. */
  async seen(): Promise<Record<string, unknown>> {
    const { held, asleep, foreign } = this.names;
    const parts = ["", "/lease", "/metadata", "/events?limit=1000"];
    const mine = [held, asleep].flatMap((id) => parts.map((part) => `/v1/sandboxes/${id}${part}`));
    const foreignPaths = parts.map((part) => `/v1/sandboxes/${foreign}${part}`);
    const lists = ["/v1/sandboxes", "/v1/counts", "/v1/events?limit=1000", "/v1/plans"];
    const texts = await Promise.all([
      ...[...mine, ...lists, "/v1/plans/mine"].map(async (path) => [
        path,
        (await this.berth.send({ method: "GET", path })).text,
      ]),
      ...[...foreignPaths, ...lists].map(async (path) => [
        `other ${path}`,
        (await this.berth.send({ method: "GET", path, key: otherKey })).text,
      ]),
    ]);
    return {
      ...Object.fromEntries(texts),
      containers: this.berth.containers(),
      objects: this.berth.objects(),
    };
  }

  /** Every row of every object. */
  rows(): Record<string, unknown> {
    return rowsBelow(join(this.berth.server.data, "objects"), this.berth.objects());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.berth.end();
  }
}
