/**
 * Owns that what the tests run is built from the sources as they are, whoever started the tests.
 */
import { build } from "../container/launch/build.js";

export async function setup(): Promise<void> {
  await build();
}
