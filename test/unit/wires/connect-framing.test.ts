import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ConnectError,
  decodeRequest,
  encodeEnd,
  encodeMessage,
} from "../../../src/wires/e2b/connect-framing.ts";

const refusal = (bytes: Uint8Array) => {
  try {
    decodeRequest(bytes);
  } catch (thrown) {
    return (thrown as ConnectError).code;
  }
  return undefined;
};

describe("the framing of the Connect protocol", () => {
  it("[WE1] gives each message back as it was", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (message) => {
        const bytes = encodeMessage(message);
        expect(bytes[0]).toBe(0);
        expect(decodeRequest(bytes)).toEqual(JSON.parse(JSON.stringify(message)));
      }),
    );
  });

  it("[WE1] refuses whatever is not exactly one complete envelope", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const code = refusal(bytes);
        const isWhole = bytes.length >= 5 && bytes[0] === 0;
        if (!isWhole) expect(["invalid_argument", "unimplemented"]).toContain(code);
      }),
    );
    const envelope = encodeMessage({ text: "ü" });
    expect(refusal(envelope)).toBeUndefined();
    for (let length = 0; length < envelope.length; length += 1) {
      expect(refusal(envelope.subarray(0, length))).toBe("invalid_argument");
    }
    expect(refusal(new Uint8Array([...envelope, 0]))).toBe("invalid_argument");
    expect(refusal(new Uint8Array([1, ...envelope.subarray(1)]))).toBe("unimplemented");
  });

  it("[WE1] marks the end, with the error where there is one", () => {
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes.subarray(5));
    expect(encodeEnd()[0]).toBe(2);
    expect(text(encodeEnd())).toBe("{}");
    const error = { code: "not_found", message: "no such process" } as const;
    expect(JSON.parse(text(encodeEnd(new ConnectError(error.code, error.message))))).toEqual({
      error,
    });
  });
});
