/**
 * Owns the form of environments, arguments and paths: text that ends up in an exec call of the kernel.
 * Does not own what a sandbox adds to them (PATH, HOME): the agent does.
 */
import { z } from "zod";
import { limits } from "../limits.ts";

/** The length of well-formed text in UTF-8, without an encoder: this runs wherever the contract does. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    const pair = unit >= 0xd800 && unit <= 0xdbff;
    bytes += pair || unit < 0x800 ? (pair ? 2 : 1) : 2;
    if (pair) at++;
  }
  return bytes;
}

/** Text that the kernel can take: no NUL, no half of a surrogate pair, at most so many bytes. */
export function kernelText(bytesMax: number) {
  return z
    .string()
    .refine((text) => !text.includes("\0"), "must not contain a NUL")
    .refine((text) => text.isWellFormed(), "must be well-formed Unicode")
    .refine((text) => utf8Bytes(text) <= bytesMax, `must be at most ${bytesMax} bytes of UTF-8`);
}

export const envNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be letters, digits and _, not beginning with a digit")
  .refine(
    (name) => name.length <= limits.envNameBytesMax,
    `must be at most ${limits.envNameBytesMax} characters`,
  );

export const envSchema = z
  .record(envNameSchema, kernelText(limits.envValueBytesMax))
  .refine(
    (env) => Object.keys(env).length <= limits.envCountMax,
    `must have at most ${limits.envCountMax} variables`,
  )
  .meta({ id: "Env", example: { NODE_ENV: "test" } });

/** A sandbox's own: it is kept in a row, and goes with it from object to object. */
export const keptEnvSchema = envSchema
  .refine(
    (env) => utf8Bytes(JSON.stringify(env)) <= limits.sandboxEnvBytesMax,
    `must be at most ${limits.sandboxEnvBytesMax} bytes as JSON, all of it together`,
  )
  .meta({ id: "KeptEnv", example: { NODE_ENV: "test" } });

export const pathSchema = kernelText(limits.pathBytesMax).refine(
  (path) => path.length > 0,
  "must not be empty",
);

export type Env = z.infer<typeof envSchema>;
