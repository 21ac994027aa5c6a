/** Builds what the tests run from the current sources, also where vitest was started directly. */
import { build } from "../container/launch/build.js";

export async function setup(): Promise<void> {
  await build();
}
