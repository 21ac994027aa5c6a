import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { signToken } from "../../../src/worker/auth/tokens.ts";
import { newFolder } from "../../new-folder.ts";
import { secretsWritten } from "./log-noise.ts";

it("[SC18] the log check finds a key, secret or token", () => {
  const data = newFolder("hushed");
  const token = signToken(
    { tenant: "local", sandbox: "s", generation: 0, rights: ["read"], expiresAt: 1 },
    "a secret of this test alone",
  );
  mkdirSync(join(data, "logs"));
  for (const name of ["key", "secret"]) writeFileSync(join(data, name), `${name}-of-the-test\n`);
  writeFileSync(join(data, "logs", "engine.log"), "nothing to see\n");
  expect(secretsWritten(data, { stdout: "ready on http://127.0.0.1\n", stderr: "" })).toEqual([]);
  writeFileSync(join(data, "logs", "workerd.log"), "GET /?key=key-of-the-test\n");
  writeFileSync(join(data, "logs", "workerd.log.old"), `Bearer ${token}\n`);
  expect(secretsWritten(data, { stderr: "signed with secret-of-the-test" })).toEqual([
    "the secret is in stderr",
    "the key is in workerd.log",
    "a token is in workerd.log.old",
  ]);
  expect(secretsWritten(join(data, "gone"), {})).toEqual([]);
});
