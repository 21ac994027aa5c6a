import { describe, expect, it } from "vitest";
import type { z } from "zod";
import * as schemas from "../../../src/protocol/verbs/schemas.ts";
import { validate } from "../../../src/worker/http/validate.ts";

const refusalOf = (schema: z.ZodType, value: unknown) => {
  try {
    validate(schema, value);
  } catch (error) {
    return error;
  }
  throw new Error("it was accepted");
};

const { acquireCallSchema, createCallSchema, eventsQuerySchema, execCallSchema } = schemas;

describe("the message of a call that does not fit", () => {
  it.each<[z.ZodType, unknown, string]>([
    [execCallSchema, null, "body: must be an object, not null"],
    [execCallSchema, { command: 5 }, "command: must be a string, not 5"],
    [execCallSchema, {}, "command: give either command or argv"],
    [createCallSchema, { network: {} }, "network.internet: is missing"],
    [createCallSchema, { onIdle: "x" }, 'onIdle: must be one of pause, destroy, none, not "x"'],
    [createCallSchema, { env: { A: [] } }, "env.A: must be a string, not a list"],
    [createCallSchema, { idleTimeoutMs: 1.5 }, "idleTimeoutMs: must be a whole number from"],
    [eventsQuerySchema, { after: "0x1" }, "after: must be a whole number from 0 to"],
    [
      eventsQuerySchema,
      { limit: "1001" },
      "limit: must be a whole number from 1 to 1000, not 1001",
    ],
    [acquireCallSchema, { holder: "" }, 'holder: must have at least 1 characters, not ""'],
    [schemas.tokenCallSchema, { rights: [] }, "rights: must have at least 1 entries"],
  ])("names the field, what is expected and what was given: %#", (schema, value, message) => {
    const [field] = message.split(":");
    const refused = refusalOf(schema, value);
    expect(refused).toMatchObject({ code: "bad_request", facts: { field } });
    expect((refused as Error).message).toContain(message);
  });

  it("does not repeat a long value", () => {
    const refused = refusalOf(execCallSchema, { command: "true", timeoutMs: "9".repeat(1000) });
    expect((refused as Error).message.length).toBeLessThan(100);
  });

  it.each([
    ["timeout", "Did you mean `timeoutMs`?"],
    ["comand", "Did you mean `command`?"],
    ["max_output_bytes", "Did you mean `maxOutputBytes`?"],
    ["colour", "All calls are described in /openapi.json."],
  ])("says which field was probably meant by an unknown one: %s", (field, hint) => {
    expect(refusalOf(execCallSchema, { command: "true", [field]: 5 })).toMatchObject({
      message: `${field}: is not a field of this call`,
      hint: expect.stringContaining(hint),
      facts: { field },
    });
  });
});
