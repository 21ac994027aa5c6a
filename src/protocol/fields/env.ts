/** Fields that end up in an exec call of the kernel: environments, arguments and paths. */
import { z } from "zod";
import { limits } from "../limits.ts";
import { envNamePattern } from "./forms.ts";

/** The length of well-formed text in UTF-8. Without an encoder, so that it runs on every platform. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    const pair = unit >= 0xd800 && unit <= 0xdbff;
    bytes += pair || unit < 0x800 ? (pair ? 2 : 1) : 2;
    if (pair) index++;
  }
  return bytes;
}

/** Text for the kernel: no NUL, no unpaired surrogate, at most `bytesMax` bytes. */
export function kernelText(bytesMax: number) {
  return z
    .string()
    .refine((text) => !text.includes("\0"), "must not contain a NUL")
    .refine((text) => text.isWellFormed(), "must be well-formed Unicode")
    .refine((text) => utf8Bytes(text) <= bytesMax, `must be at most ${bytesMax} bytes of UTF-8`);
}

export const envNameSchema = z
  .string()
  .regex(envNamePattern, "must be letters, digits and _, not beginning with a digit")
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

/** The environment of a sandbox, which is stored in one row with its record. */
export const sandboxEnvSchema = envSchema
  .refine(
    (env) => utf8Bytes(JSON.stringify(env)) <= limits.sandboxEnvBytesMax,
    `must be at most ${limits.sandboxEnvBytesMax} bytes as JSON, all of it together`,
  )
  .meta({ id: "SandboxEnv", example: { NODE_ENV: "test" } });

export const pathSchema = kernelText(limits.pathBytesMax).refine(
  (path) => path.length > 0,
  "must not be empty",
);

export type Env = z.infer<typeof envSchema>;
