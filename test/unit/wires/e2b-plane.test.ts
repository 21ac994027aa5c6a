import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { planeOf } from "../../../src/wires/e2b/plane.ts";
import { isSigned } from "../../../src/wires/e2b/signature.ts";

const id = "k3v9q2m7x1c5b8n4tq0w8e2r";
const planeAt = (url: string, headers: Record<string, string> = {}) =>
  planeOf(new Request(url, { headers }));

describe("requests of E2B's clients", () => {
  it("[WE3] are distinguished by host and headers, and never taken for the API's own", () => {
    expect(planeAt("http://api.test/v1/sandboxes")).toBeUndefined();
    expect(planeAt("http://api.test/health")).toBeUndefined();
    expect(planeAt("http://api.test/sandboxes")).toEqual({ kind: "control" });
    expect(planeAt("http://api.test/v2/sandboxes?limit=1")).toEqual({ kind: "control" });
    expect(planeAt(`http://49983-${id}.api.test/files`)).toEqual({ kind: "daemon", sandbox: id });
    expect(planeAt(`http://8000-${id}.api.test/`)).toBeUndefined();
    const headersFor = (port: string) => ({ "e2b-sandbox-id": id, "e2b-sandbox-port": port });
    expect(planeAt("http://api.test/health", headersFor("49983"))).toEqual({
      kind: "daemon",
      sandbox: id,
    });
    expect(planeAt("http://api.test/v1/x", headersFor("80"))).toEqual({
      kind: "port",
      sandbox: id,
      port: 80,
    });
    for (const port of ["0", "65536", "x", "-1"]) {
      expect(() => planeAt("http://api.test/", headersFor(port))).toThrow("must be a port");
    }
    expect(() => planeAt("http://api.test/", { "e2b-sandbox-id": id })).toThrow("is missing");
  });

  it("[WE4] open files by a signature of path, operation, user, token and time, and by nothing else", () => {
    const sign = (...parts: string[]) => {
      const digest = createHash("sha256").update(parts.join(":")).digest("base64");
      return `v1_${digest.replace(/=+$/, "")}`;
    };
    const check = (query: Record<string, string>, method = "GET") => {
      const url = `http://api.test/files?${new URLSearchParams(query)}`;
      return isSigned({ url, method }, "token", 1_000_000);
    };
    const signature = sign("a b", "read", "", "token", "1001");
    const valid = { path: "a b", signature, signature_expiration: "1001" };
    expect(check(valid)).toBeUndefined();
    expect(check(valid, "POST")).toBe("invalid signature");
    expect(check({ ...valid, path: "a" })).toBe("invalid signature");
    expect(check({ ...valid, username: "user" })).toBe("invalid signature");
    expect(check({ ...valid, signature_expiration: "2000" })).toBe("invalid signature");
    expect(check({ path: "a b" })).toBe("missing signature query parameter");
    const expired = sign("a b", "read", "", "token", "999");
    expect(check({ ...valid, signature: expired, signature_expiration: "999" })).toBe(
      "signature is already expired",
    );
  });
});
