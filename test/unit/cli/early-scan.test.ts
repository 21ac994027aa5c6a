/** Tests when a checkout that was read early may be sent. */
import { expect, it } from "vitest";
import { Interrupts } from "../../../src/cli/interrupts.ts";
import { EarlyScan } from "../../../src/cli/sync/early-scan.ts";
import { Checkout } from "../../system/cli/sync/checkout.ts";

const context = { interrupts: new Interrupts() } as never;
const lease = (hasWaited: boolean) => ({ hasWaited }) as never;

it("[SY37] a checkout that was read early counts once, and only if nobody else had the lease", async () => {
  using checkout = Checkout.begun({ "a.txt": "a\n" });
  using early = new EarlyScan(context);
  expect(early.take(lease(false))).toBeUndefined();
  early.start(checkout.root);
  const scanned = early.take(lease(false));
  expect((await scanned)?.state.head).toBe(checkout.git("rev-parse", "HEAD").trim());
  expect(early.take(lease(false))).toBeUndefined();
  early.start(checkout.root);
  expect(early.take(lease(true))).toBeUndefined();
});

it("[SY37] what cannot be read is reported where it is needed, and an end stops the reading", async () => {
  const early = new EarlyScan(context);
  early.start("/");
  await expect(early.take(lease(false))).rejects.toThrow(/No git checkout/);
  using checkout = Checkout.begun({ "a.txt": "a\n" });
  early.start(checkout.root);
  const scanned = early.take(lease(false));
  early[Symbol.dispose]();
  await expect(scanned).rejects.toMatchObject({ name: "AbortError" });
});
